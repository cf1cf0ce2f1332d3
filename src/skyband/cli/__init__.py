"""The command `skyband`."""

from skyband.cli.app import app

__all__ = ["app"]
