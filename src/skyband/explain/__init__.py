"""`explain`: which algorithm answers a query and why, how much it keeps, how exact it is.

`import skyband` loads this module, because the function and the folder have one name: the rest of the folder is loaded
when it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skyband.explain.explanation import Explanation
    from skyband.query.kinds import Query

__all__ = ["Explanation", "explain"]


def explain(query: Query, **expected: float) -> Explanation:
    """The algorithm chosen and why, the objects and bytes expected, the error bound.

    What a Monitor would refuse raises the same QueryError.

    Parameters
    ----------
    query
        The query.
    **expected
        What to expect of the stream: rows (arrivals in a window) or rate (arrivals per second) for time windows, of all
        groups together; groups (how many); queries (that differ in their numbers); probability (the mean one). With
        keys instead of groups, and rate, the load on Spark is estimated too, by a model whose error docs/scale.md has:
        `load` with cores, shuffle_bytes per second, state_bytes and trigger_seconds; every: seconds between triggers.

    Examples
    --------
    >>> import skyband as sb
    >>> e = explain(sb.TopK(k=10, by="0.7*x + 0.3*y", window=sb.Last(1000)))
    >>> e.algorithm, e.form, round(e.objects, 1), e.error
    ('BLOCK', 'linear', 55.6, 'exact')

    """
    from skyband.explain.explanation import explanation

    return explanation(query, expected)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name != "Explanation":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from skyband.explain.explanation import Explanation

        return Explanation
