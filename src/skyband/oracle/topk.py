"""TopK and Above: the answer as a function of the valid arrivals.

TopK is the k objects that rank highest (pripuzic2015, Definition 3.5). Above is all objects with a score
strictly above the threshold (mouratidis2006, section 7).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from skyband.oracle.objects import Arrival, Member, same
from skyband.oracle.orders import answer_of, ranking, score_of_keys
from skyband.query.kinds import Above, TopK
from skyband.query.windows import Ever, UntilDeleted


def best_first(objects: Iterable[Arrival], descending: bool) -> list[Arrival]:
    """The objects that can be an answer, by rank: the better score, of equal scores the newer object."""
    eligible = [o for o in objects if o.eligible]
    return sorted(eligible, key=lambda o: (o.key if descending else -o.key, o.age), reverse=True)


def top_k(query: TopK, valid: list[Arrival], k: int) -> list[Member]:
    """Ranks offset + 1 to offset + k; with ties every object that fewer than k others rank above by their keys."""
    chosen = answer_of(query, counted(query, ranking(query, valid)), k)
    return [Member(o, (o,), score_of_keys(query, o.keys), place=place) for o, place in chosen]


def counted(query: TopK, ranked: list[Arrival]) -> list[Arrival]:
    """The objects that count, best first: with `distinct` one of each id."""
    chosen: dict[Hashable, Arrival] = {}
    for o in ranked:
        known = chosen.setdefault(same(o.id), o)
        if query.distinct == "last" and o.age > known.age:
            chosen[same(o.id)] = o
    return ranked if query.distinct is None else [o for o in ranked if chosen[same(o.id)] is o]


def above(query: Above, valid: list[Arrival]) -> list[Member]:
    return [Member(o, (o,), o.score) for o in best_first(valid, True) if o.score > query.threshold]


def skyband(query: TopK, valid: list[Arrival]) -> list[Arrival]:
    """The objects with fewer than k dominators (pripuzic2015, Definition 3.8), best first.

    a dominates b when a ranks above b and does not expire before b. Under `UntilDeleted` any object may
    be the next to leave, so none dominates another.
    """
    if isinstance(query.window, UntilDeleted):
        return ranking(query, valid)
    if isinstance(query.window, Ever):  # nothing expires, so every object that ranks above dominates
        return ranking(query, valid)[: query.most]
    timed = query.window.timed

    def expires_before(a: Arrival, b: Arrival) -> bool:
        return bool(a.time < b.time) if timed else a.number < b.number

    ranked = ranking(query, valid)
    kept = []
    for rank, b in enumerate(ranked):
        dominators = [a for a in ranked[:rank] if not expires_before(a, b)]
        if len(dominators) < query.most:
            kept.append(b)
    return kept
