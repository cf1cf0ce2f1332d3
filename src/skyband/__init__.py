"""skyband: which k are best right now, over the last n events or the last t minutes?

>>> import skyband as sb
>>> m = sb.Monitor(sb.TopK(k=2, by="delay", window=sb.Last(3)), id="flight")
>>> _ = m.push({"flight": ["A", "B", "C", "D"], "delay": [5, 30, 20, 10]})
>>> m.answer().select(["rank", "id", "score"]).to_pylist()
[{'rank': 1, 'id': 'B', 'score': 30.0}, {'rank': 2, 'id': 'C', 'score': 20.0}]

Names are loaded when they are first used, and kernels with the first push: `import skyband` loads no other library.
"""

from typing import TYPE_CHECKING, Any

from skyband.errors import BatchError, QueryError, SkybandError, StateError
from skyband.explain import explain

if TYPE_CHECKING:  # for type checkers and editors; at run time __getattr__ loads the same
    from skyband import plot
    from skyband.explain.explanation import Explanation
    from skyband.monitor.monitor import Monitor
    from skyband.query.each import Each
    from skyband.query.kinds import Above, TopK, TopKGroups, TopKIncomplete, TopKPairs, TopKUncertain
    from skyband.query.scoring import Global, Linear, Nearest, Product, Quadratic, Similar
    from skyband.query.sql.parser import sql
    from skyband.query.windows import Ever, Last, Session, UntilDeleted

__version__ = "0.1.0"

__all__ = [
    "Above",
    "BatchError",
    "Each",
    "Ever",
    "Explanation",
    "Global",
    "Last",
    "Linear",
    "Monitor",
    "Nearest",
    "Product",
    "Quadratic",
    "QueryError",
    "Session",
    "Similar",
    "SkybandError",
    "StateError",
    "TopK",
    "TopKGroups",
    "TopKIncomplete",
    "TopKPairs",
    "TopKUncertain",
    "UntilDeleted",
    "explain",
    "plot",
    "sql",
]

_LAZY = {
    "skyband.explain.explanation": ("Explanation",),
    "skyband.monitor.monitor": ("Monitor",),
    "skyband.query.each": ("Each",),
    "skyband.query.kinds": ("Above", "TopK", "TopKGroups", "TopKIncomplete", "TopKPairs", "TopKUncertain"),
    "skyband.query.scoring": ("Global", "Linear", "Nearest", "Product", "Quadratic", "Similar"),
    "skyband.query.sql.parser": ("sql",),
    "skyband.query.windows": ("Ever", "Last", "Session", "UntilDeleted"),
}
_FOLDERS = ("datasets", "engines", "monitor", "plot", "query", "tables")

if not TYPE_CHECKING:  # else a type checker would take any name for one of ours

    def __getattr__(name: str) -> Any:
        """Load a public name or folder when it is first used."""
        from importlib import import_module

        if name in _FOLDERS:
            return import_module(f"skyband.{name}")
        for module, names in _LAZY.items():
            if name in names:
                value = globals()[name] = getattr(import_module(module), name)
                return value
        raise AttributeError(f"module 'skyband' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
