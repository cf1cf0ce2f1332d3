"""The loop in one process."""

from skyband.monitor.monitor import Monitor

__all__ = ["Monitor"]
