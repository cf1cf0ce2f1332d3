"""The door to devices: by its name, one's lanes (device_turns.py), or an error that says what is missing.

Libraries are looked for when a Monitor is asked for a device, never before.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from skyband.errors import QueryError

NAMES = ("cuda",)


def open_cuda() -> Callable[..., Any]:
    """The lanes of an NVIDIA GPU."""
    try:
        torch: Any = importlib.import_module("torch")
        importlib.import_module("triton")
    except ImportError as error:
        raise QueryError(
            f'Monitor: device="cuda" needs PyTorch and Triton, and {error.name or "one of them"} is not installed: '
            'pip install "skyband[gpu]" (or the PyTorch for your CUDA version, from its own site). Or leave device= '
            "out: the answers are the same."
        ) from error
    if not torch.cuda.is_available():
        raise QueryError(
            f'Monitor: device="cuda": PyTorch {torch.__version__} finds no GPU that it can use. Run where there is one '
            "(nvidia-smi lists them), or leave device= out: the answers are the same."
        )
    if torch.cuda.get_device_capability()[0] < 8:
        raise QueryError(
            f'Monitor: device="cuda": {torch.cuda.get_device_name()} multiplies no bfloat16 (compute capability 8.0 '
            "and later do). Leave device= out: the answers are the same."
        )
    lanes: Callable[..., Any] = importlib.import_module("skyband.engines.topk.torch_device").TorchLanes
    return lanes


DOORS: dict[str, Callable[[], Callable[..., Any]]] = {"cuda": open_cuda}


def check_device(name: Any) -> None:
    """Refuse a device that is not there."""
    if name is None:
        return
    if not isinstance(name, str) or name not in DOORS:
        known = " or ".join(repr(one) for one in NAMES)
        raise QueryError(f"Monitor: device={name!r} is unknown. Use {known}, or None for the processor.")
    DOORS[name]()


def lanes_on(name: str, d: int, room: int, form: int, turned: bool, timed: bool) -> Any:
    """Lanes without queries on a device."""
    return DOORS[name]()(d, room, form, turned=turned, timed=timed)
