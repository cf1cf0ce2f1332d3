"""Slots: many standing queries of one scoring form as rows of columns, in one engine that they join and leave.

The interface, for whoever builds an adapter over it (plain queries: engines/topk/adapter.py; subscriptions too):

    engine = Slots((), tuning, timed=..., net=..., shape=Shape(form, turned, d, attributes))
    slots = engine.join(SlotColumns(points, weights, k, length, lows, highs), serial)   # int64, one for each row
    engine.leave(slots)                                  # nothing is reported; the numbers are free for the next join
    changes = engine.take(arrivals)                      # Changes.query is the slot, by slot and then by step
    answer = engine.answers(slots, now)                  # Answer.group is the place in `slots`, each best first
    engine.snapshot(...), engine.restore(...)            # every slot's columns are among the arrays

- A slot sees only arrivals that are taken after it joined: its `birth` is the serial of the next row.
- `Arrivals.attributes` has the d columns that the form reads, in order, then further ones that only boxes read. A box
  is `lows[j] <= attribute j <= highs[j]` for each attribute; -inf and inf demand nothing, and NaN lies in no range. An
  equality (`city = :city`) is a range of one number: the adapter gives values of such a column as codes.
- `Arrivals.eligible` is for what no slot may have; what one slot demands is its box.
- stamps and now are the same for all slots (the numbers of one sequence, or times). A slot whose numbers are others
  (it was added later, its window's length is another) differs in output only: that is the adapter's (numbering.py).
- `engine.missing(attributes)` names the slots and rows for which a score is NaN: only rows with wild numbers have any.

Slots lie in chunks of some thousands with one class of window lengths, so columns grow without being copied, and a
kernel works on one chunk for the whole batch.
"""

from __future__ import annotations

from dataclasses import dataclass

from skyband.engines.contract import Floats, Ints


@dataclass(frozen=True)
class Shape:
    """What all slots of an engine have in common."""

    form: int  # query/scoring/forms.py
    turned: bool  # the smallest score is best
    d: int  # attributes that the form reads
    attributes: int  # and those that boxes may read besides, d of them included


@dataclass(frozen=True)
class SlotColumns:
    """Queries as columns, one row each."""

    points: Floats  # d numbers each: the weights of a linear form, or the point of a distance
    weights: Floats  # of a distance: d numbers each, or no columns
    k: Ints
    length: Ints  # of the window: arrivals, or units of time
    lows: Floats  # one number for each attribute; no columns: no slot has a box
    highs: Floats
