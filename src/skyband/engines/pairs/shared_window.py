"""One window for all scorings of a Monitor, as the stream manager of shen2012 (section III-B) keeps objects once.

Engines of one `per`, `where` and kind of window see the same objects. After a push, each group of theirs reads the
arrays of the one with the most objects, if it has the same ones last; so do the kept columns. In a push every engine
works as if the arrays were its own: it appends, and what several of them append are the same rows, which is tested
before. A group takes arrays of its own where rows differ (a value that only one scoring rejects), where a late row
would move others, and where they are full. Cost: a comparison of the rows of a push, and of a window when arrays are
new, which is as rare as growth.

What stays with each scoring: its pairs, the sorted lists of TA, and the columns that NumPy or a function reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from skyband.engines.adapter import Adapter
    from skyband.engines.pairs.adapter import PairsAdapter
    from skyband.engines.pairs.group import Group
    from skyband.engines.pairs.kernels.records import Stream


class Filled:
    """How far the arrays that several groups have are filled: the objects, and each row of the data."""

    def __init__(self, rows: int, end: int) -> None:
        self.objects, self.rows = end, np.full(rows, end)


# --- before a push


def keep_apart(group: Group, stream: Stream) -> None:
    """Before a group takes arrivals: give it arrays of its own if these would change what others read."""
    if group.filled is None or not len(stream.stamps):
        return
    new = slice(None) if not len(stream.eligible) else stream.eligible
    stamps, serials, values = stream.stamps[new], stream.serial + stream.rows[new], stream.values[:, new]
    end, newest = group.live.stop, group.window.stamps[group.live][-1:]
    late = bool((np.diff(stamps, prepend=newest) < 0).any())
    if late or not _are_there(group, stamps, serials, values):
        group.move_window(len(group.window.stamps))
        return
    last = min(end + len(stamps), len(group.window.stamps))
    group.filled.objects = max(group.filled.objects, last)
    mine = slice(group.first, group.first + len(values))
    group.filled.rows[mine] = np.maximum(group.filled.rows[mine], last)


def _are_there(group: Group, stamps: Any, serials: Any, values: Any) -> bool:
    """Whether what another engine has appended in this push are these objects, as far as it has come."""
    assert group.filled is not None
    window, end = group.window, group.live.stop
    known = slice(end, min(end + len(stamps), group.filled.objects))
    many = known.stop - end
    if many > 0 and not (
        np.array_equal(window.serials[known], serials[:many]) and np.array_equal(window.stamps[known], stamps[:many])
    ):
        return False
    for row, mine in enumerate(values):
        many = min(len(mine), int(group.filled.rows[group.first + row]) - end)
        if many > 0 and not _equal(window.data[row, end : end + many], mine[:many]):
            return False
    return True


def _equal(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether numbers are the same to the bit."""
    return np.array_equal(np.ascontiguousarray(one).view(np.int64), np.ascontiguousarray(other).view(np.int64))


# --- after a push


def share_windows(adapters: Iterable[Adapter], *, everything: bool = False) -> None:
    """Let scorings have one window and one store of kept columns, in the groups of the last push or in all."""
    alike: dict[Any, list[PairsAdapter]] = {}
    for adapter in adapters:
        key = adapter.window_key  # None: of another kind
        if key is not None and adapter.engine is not None:
            alike.setdefault(key, []).append(adapter)  # type: ignore[arg-type]
    for members in alike.values():
        for member in members:
            member.sharers = members
        if len(members) > 1:
            _share_columns(members)
            _share_groups(members, everything=everything)


def _share_columns(members: Sequence[PairsAdapter]) -> None:
    first = members[0].output
    for output in (member.output for member in members[1:]):
        mine, theirs = output.kept_columns, first.kept_columns
        if mine is theirs or output.reports_numbers or mine.columns.keys() != theirs.columns.keys():
            continue
        if all(mine.columns[name].type == column.type for name, column in theirs.columns.items()):
            theirs.add(mine.serials, {name: column.all() for name, column in mine.columns.items()})
            output.kept_columns = theirs


def _share_groups(members: Sequence[PairsAdapter], *, everything: bool) -> None:
    engines = [member.machine for member in members]
    chosen = {g for engine in engines for g in (range(len(engine.groups)) if everything else engine.visited)}
    fields = [member.fields for member in members]
    for g in sorted(chosen):
        states = [(engine.groups.known(g), rows) for engine, rows in zip(engines, fields, strict=True)]
        there = [(group, rows) for group, rows in states if group is not None]
        there.sort(key=lambda one: (_size(one[0]), len(one[1]), len(one[0].window.most)), reverse=True)
        holders: list[tuple[Group, Any]] = []
        for group, rows in there:
            for holder, theirs in holders:
                place = _place(rows, theirs)
                if place is not None and _has_last(holder, group, place):
                    _adopt(group, holder, place)
                    break
            else:
                holders.append((group, rows))


def _size(group: Group) -> int:
    return int(group.live.stop - group.live.start)


def _place(rows: Sequence[Any], others: Sequence[Any]) -> int | None:
    """Where these rows of data stand side by side in others; None: nowhere."""
    return next((i for i in range(len(others) - len(rows) + 1) if others[i : i + len(rows)] == rows), None)


def _has_last(holder: Group, group: Group, place: int) -> bool:
    """Whether the newest objects of one group are those of the other, with the same numbers."""
    mine, end, size = group.live, int(holder.live.stop), _size(group)
    theirs = slice(end - size, end)
    one, other = group.window, holder.window
    if one.stamps is other.stamps and mine == theirs:
        return True  # nothing else was appended to them
    rows = other.data[place : place + len(one.data), theirs]
    return (
        np.array_equal(one.serials[mine], other.serials[theirs])
        and np.array_equal(one.stamps[mine], other.stamps[theirs])
        and _equal(one.data[:, mine], rows)
    )


def _adopt(group: Group, holder: Group, place: int) -> None:
    """Let a group read the arrays of another one, which has its objects last."""
    one, other = group.window, holder.window
    if one.stamps is other.stamps:
        return
    if holder.filled is None:
        holder.filled, holder.first = Filled(len(other.data), int(holder.live.stop)), 0
    group.read_from(holder, other.data[place : place + len(one.data)], same=place == 0)
    group.filled, group.first = holder.filled, holder.first + place
