"""The face of a Monitor: its text, its HTML, and a refusal to be pickled, since its snapshot is its copy."""

from __future__ import annotations

from typing import Any, NoReturn

from skyband.errors import StateError
from skyband.query.html import monitor_html


class Shown:
    """The face of a Monitor."""

    queries: Any

    def __repr__(self) -> str:
        return f"Monitor({self.queries!r})"

    def _repr_html_(self) -> str:
        return monitor_html(self)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise StateError(
            "a Monitor is neither pickled nor copied: two would change one state. Monitor.restore(monitor.snapshot()) "
            "is another one that knows the same, and the bytes of snapshot() can be sent to another process."
        )
