"""The arrays of what finds rows (kernels/finders.py), and their invariants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skyband.engines.incomplete.kernels.batches import ALL_MOST, LAST_MOST, LAST_TOTAL, MOST
from skyband.engines.incomplete.kernels.finders import LINK, OUT, index_lasts

if TYPE_CHECKING:
    from skyband.engines.incomplete.linked_rows import LinkedRows

QUEUED, LOOKED_UP = (MOST, ALL_MOST), (LAST_TOTAL, LAST_MOST)


def empty_finders(engine: LinkedRows) -> None:
    """What finds rows, for all places of rows and of objects, with nothing in it."""
    rows, repeat, V = len(engine.rows), engine.repeat, len(engine.views)
    engine.links = np.zeros(rows * ((repeat in QUEUED) + V * (repeat == LAST_MOST)), LINK)
    engine.links["before"] = OUT
    engine.firsts = np.full(len(engine.values) * (repeat in QUEUED or repeat == LAST_MOST), -1, np.int32)
    lasts = 1 << (2 * rows).bit_length() if repeat in LOOKED_UP else len(engine.objects) * engine.d
    engine.lasts = np.full(lasts * (repeat in QUEUED or repeat in LOOKED_UP), -1, np.int32)


def enlarge_finders(engine: LinkedRows) -> None:
    """Capacity for all places; what has been found stays."""
    links, firsts, lasts = engine.links, engine.firsts, engine.lasts
    empty_finders(engine)
    engine.links[: len(links)], engine.firsts[: len(firsts)] = links, firsts
    if engine.repeat in QUEUED:
        engine.lasts[: len(lasts)] = lasts
    find_lasts(engine)


def find_lasts(engine: LinkedRows) -> None:
    """Find the last rows of parts again: they have other places, or their parts other numbers."""
    if engine.repeat in LOOKED_UP:
        engine.lasts[:] = -1
        index_lasts(engine.store)


def check_finders(engine: LinkedRows, o: int, v: int, chain: list[int], bound: int) -> None:
    """What finds the rows of an object, given from the oldest, in a view without those up to the bound."""
    rows, links, V = engine.rows, engine.links, len(engine.views)
    valid = [r for r in chain if rows["stamp"][r] > bound]
    for p in range(engine.d if engine.repeat in QUEUED else 0):
        queue, r = list[int](), int(engine.lasts[o * engine.d + p])
        while r >= 0:
            queue.insert(0, r)
            r = int(links["before"][r])
        mine = [r for r in chain if rows["part"][r] == p or engine.repeat == ALL_MOST]
        wanted = [r for n, r in enumerate(mine) if all(rows["value"][r] > rows["value"][q] for q in mine[n + 1 :])]
        assert queue == wanted, "a queue has the rows that no newer one reaches"
        assert links["next"][queue].tolist() == [*queue[1:], -1][: len(queue)], "it is linked both ways"
        first = next((r for r in queue if r in valid), -1)
        assert engine.firsts[(o * V + v) * engine.d + p] == first, "the first that is valid is known"
    if engine.repeat == LAST_MOST:
        found, open_ = list[int](), [int(engine.firsts[o * V + v])]
        while open_ and open_[0] >= 0:
            r = open_.pop()
            found.append(r)
            child = int(links["down"][r * V + v])
            while child >= 0:
                assert rows["value"][child] <= rows["value"][r], "a parent is at least as large"
                open_.append(child)
                child = int(links["next"][child * V + v])
        assert sorted(found) == sorted(valid), "a heap has the valid rows"
    if engine.repeat in LOOKED_UP and v == 0:
        assert sorted(engine.lasts[np.isin(engine.lasts, chain)]) == sorted(chain), "the last rows can be looked up"
