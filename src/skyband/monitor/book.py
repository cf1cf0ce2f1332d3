"""A book: adapters by the names of their queries, which also knows each adapter once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from skyband.engines.adapter import Adapter


class Book(dict[str, Adapter]):
    """Adapters by query, in order of registration. What is asked at each push takes no look at every query."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._count: dict[Adapter, int] = {}  # queries of each
        for adapter in self.values():
            self._count[adapter] = self._count.get(adapter, 0) + 1
        self._once: list[Adapter] | None = None

    def each_once(self) -> list[Adapter]:
        """The adapters, in the order in which their first queries are here."""
        if self._once is None:
            self._once = list(dict.fromkeys(self.values()))
        return list(self._once)

    def keep_order(self, adapters: Iterable[Adapter]) -> None:
        """Have the adapters in this order: what is stored of them is, whichever queries have left since."""
        self._once = [adapter for adapter in dict.fromkeys(adapters) if adapter in self._count]

    def __setitem__(self, name: str, adapter: Adapter) -> None:
        if name in self:
            self._lose(self[name])
        if adapter not in self._count:
            self._once = None
        self._count[adapter] = self._count.get(adapter, 0) + 1
        super().__setitem__(name, adapter)

    def __delitem__(self, name: str) -> None:
        adapter = self[name]
        super().__delitem__(name)
        self._lose(adapter)

    def _lose(self, adapter: Adapter) -> None:
        self._count[adapter] -= 1
        if not self._count[adapter]:
            del self._count[adapter]
            self._once = None

    def __ior__(self, others: Any) -> Book:  # type: ignore[misc, override]
        self.update(others)
        return self

    def update(self, others: Any = (), **more: Any) -> None:  # type: ignore[override]
        for name, adapter in dict(others, **more).items():
            self[name] = adapter

    def pop(self, name: str, *default: Any) -> Any:
        if name not in self and default:
            return default[0]
        adapter = self[name]
        del self[name]
        return adapter
