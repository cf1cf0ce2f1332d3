"""skyband: which k are best right now, over the last n events or the last t minutes?

>>> import skyband as sb
>>> m = sb.Monitor(sb.TopK(k=2, by="delay", window=sb.Last(3)), id="flight")
>>> _ = m.push({"flight": ["A", "B", "C", "D"], "delay": [5, 30, 20, 10]})
>>> m.answer().select(["rank", "id", "score"]).to_pylist()
[{'rank': 1, 'id': 'B', 'score': 30.0}, {'rank': 2, 'id': 'C', 'score': 20.0}]
"""

from skyband import plot
from skyband.errors import BatchError, QueryError, SkybandError, StateError
from skyband.explain import Explanation, explain
from skyband.monitor.monitor import Monitor
from skyband.query.kinds import Above, TopK, TopKIncomplete, TopKPairs, TopKUncertain
from skyband.query.scoring import Global, Linear, Nearest, Product, Quadratic
from skyband.query.sql.parser import sql
from skyband.query.windows import Last, UntilDeleted

__version__ = "0.1.0"

__all__ = [
    "Above",
    "BatchError",
    "Explanation",
    "Global",
    "Last",
    "Linear",
    "Monitor",
    "Nearest",
    "Product",
    "Quadratic",
    "QueryError",
    "SkybandError",
    "StateError",
    "TopK",
    "TopKIncomplete",
    "TopKPairs",
    "TopKUncertain",
    "UntilDeleted",
    "explain",
    "plot",
    "sql",
]
