"""A generator as a stream without end, any part of which can be generated again: row numbers in, rows out.

Rows are drawn block by block, each block from a seed of its own, so row 10^9 costs no more than row 0.
"""

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.datasets import generators
from skyband.errors import QueryError

#: The generators that can run without end.
STREAMS = (
    *("uniform", "independent", "correlated", "anticorrelated", "clustered", "drifting", "rising", "falling"),
    *("flights_like", "appearances"),
)
_BLOCK = 16_384  # rows; flights_like: a day's flights
_DAY = 10_000_000  # of these at most
_START = np.datetime64("2013-01-01T00:00:00", "us")


def endless(name: str, start: int, stop: int, *, seed: int = 0, **options: Any) -> pa.Table:
    """Rows `start` to `stop` (not included) of the endless stream of a generator.

    `options` are the generator's. Columns: the generator's, and where it has none `id` (int64, the row's number) and
    `time` (timestamp[us], a millisecond per row). One block of `flights_like` is one day. `rising` and `falling` go on
    rising and falling; `clustered` and `drifting` draw their centres and phases anew for each block.

    >>> endless("uniform", 10**9, 10**9 + 2).column_names
    ['x1', 'x2', 'id', 'time']
    >>> endless("flights_like", 15_990, 16_010, seed=7).equals(endless("flights_like", 0, 16_010, seed=7).slice(15_990))
    True
    """
    if name not in STREAMS:
        raise QueryError(f"{name!r} cannot run without end. These can: {', '.join(STREAMS)}.")
    size = options.pop("per_day", 16_000) if name == "flights_like" else _BLOCK
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= _DAY:
        raise QueryError(f"per_day={size!r}: per_day is a whole number from 1 to {_DAY:,}: a day is made at once.")
    given = tuple(sorted(options.items()))
    first, last = start // size, max(start, stop - 1) // size
    blocks = [_block(name, number, size, seed, given) for number in range(first, last + 1)]
    return pa.concat_tables(blocks).slice(start - first * size, stop - start).combine_chunks()


@lru_cache(maxsize=16)
def _block(name: str, number: int, size: int, seed: int, given: tuple[tuple[str, Any], ...]) -> pa.Table:
    own = int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0])
    options = dict(given, per_day=size) if name == "flights_like" else dict(given)
    table = getattr(generators, name)(size, seed=own, **options)
    begin = number * size
    for place, column in enumerate(table.column_names):
        values = table.column(place)
        if column == "score":
            values = pc.add(values, float(number if name == "rising" else -number))
        elif pa.types.is_timestamp(values.type):
            values = pc.add(values, pa.scalar(number * 86_400_000_000, pa.duration("us")))
        elif column in ("id", "flight", "time"):
            values = pc.add(values, begin)
        table = table.set_column(place, column, values)
    if "time" not in table.column_names:
        rows = np.arange(begin, begin + size)
        table = table.append_column("id", pa.array(rows))
        table = table.append_column("time", pa.array(_START + rows.astype("timedelta64[ms]")))
    return table
