"""TopKUncertain: the top k among objects that exist only with a probability (jin2008).

Each object exists with its own probability, independently of the others, except that alternatives with
the same `group` exclude each other. A possible world is a set of objects that exist together.

    pk-topk   the k objects most probable to be among the first k of a world
    pt-k      all objects that are so with a probability above the threshold
    u-kranks  for each rank, the object most probable to hold it
    u-topk    the k objects most probable to be the first k of a world, together

All numbers are floats: of two answers that are equally probable in mathematics the floats may prefer one.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import product

from skyband.oracle.objects import Arrival, Member
from skyband.oracle.topk import best_first
from skyband.query.kinds import TopKUncertain


def top_k_uncertain(query: TopKUncertain, valid: list[Arrival]) -> list[Member]:
    ranking = best_first(valid, query.descending)
    if query.semantics == "u-topk":
        return most_probable_top_k(ranking, query.k)
    holds = rank_probabilities(ranking, query.k)
    if query.semantics == "u-kranks":
        return _winners(ranking, holds, query.k)
    members = [Member(o, (o,), o.score, probability=_sum(holds[o])) for o in ranking]
    members.sort(key=_probability, reverse=True)  # a stable sort: ties stay in the order of ranking
    if query.threshold is not None:  # pt-k
        return [member for member in members if _probability(member) > query.threshold]
    return members[: query.k]


def rank_probabilities(ranking: list[Arrival], k: int) -> dict[Arrival, list[float]]:
    """For each object the probabilities that it exists and exactly 0, 1, ... k-1 higher ones do."""
    holds = {}
    for position, o in enumerate(ranking):
        exactly = [1.0] + [0.0] * (k - 1)  # [j]: exactly j of the higher objects seen so far exist
        for alternatives in _alternatives(ranking[:position], without=o):
            p = _sum([a.probability for a in alternatives])  # one of them exists, at most one can
            absent = max(0.0, 1 - p)
            exactly = [(exactly[j - 1] * p if j else 0.0) + exactly[j] * absent for j in range(k)]
        holds[o] = [o.probability * chance for chance in exactly]
    return holds


def _winners(ranking: list[Arrival], holds: dict[Arrival, list[float]], k: int) -> list[Member]:
    """u-kranks: one row per rank that an object can hold; ties go to the higher object."""
    winners = []
    for j in range(k):
        best = max(ranking, key=lambda o: holds[o][j], default=None)  # the first of equals
        if best is not None and holds[best][j] > 0:
            winners.append(Member((best, j + 1), (best,), best.score, j + 1, holds[best][j]))
    return winners


def most_probable_top_k(ranking: list[Arrival], k: int) -> list[Member]:
    """u-topk: for each object as the worst member, the best choice of k-1 higher ones; then the best of all.

    Of equally probable answers the one whose worst member ranks higher, then its second worst, and so on.
    A choice is kept as (probability, ranks worst first), ranks negated: the largest choice is the best.
    """
    best: tuple[float, list[int]] | None = None
    rank_of = {o: rank for rank, o in enumerate(ranking)}
    for worst in ranking[k - 1 :]:
        chosen: dict[int, tuple[float, list[int]]] = {0: (1.0, [])}  # by how many are chosen
        for alternatives in _alternatives(ranking[: rank_of[worst]], without=worst):
            absent = max(0.0, 1 - _sum([a.probability for a in alternatives]))
            longer: dict[int, tuple[float, list[int]]] = {}
            for count, (chance, ranks) in chosen.items():
                choices = [(count, (chance * absent, ranks))]
                choices += [(count + 1, (chance * a.probability, sorted([-rank_of[a], *ranks]))) for a in alternatives]
                for size, choice in choices:
                    if size < k:
                        longer[size] = max(choice, longer.get(size, choice))
            chosen = longer
        if k - 1 in chosen:
            chance, ranks = chosen[k - 1]
            answer = (chance * worst.probability, [-rank_of[worst], *ranks])
            best = answer if best is None else max(answer, best)
    if best is None or best[0] <= 0:
        return []
    members = [ranking[-rank] for rank in reversed(best[1])]
    return [Member(o, (o,), o.score, probability=best[0]) for o in members]


def _alternatives(objects: list[Arrival], without: Arrival) -> list[list[Arrival]]:
    """The objects by groups, in order of their best member; those that exclude `without` are left out."""
    groups: dict[Hashable, list[Arrival]] = {}
    for o in objects:
        if o.rival is None:  # alone
            groups[o] = [o]
        elif o.rival != without.rival:
            groups.setdefault(("group", o.rival), []).append(o)
    return list(groups.values())


def _probability(member: Member) -> float:
    return member.probability or 0.0


def _sum(numbers: list[float]) -> float:
    total = 0.0
    for x in numbers:
        total = total + x
    return total


# ------------------------------------------------------------ possible worlds


def worlds(ranking: list[Arrival]) -> list[tuple[float, list[Arrival]]]:
    """Every possible world: its probability, its objects in the order given. Up to 2^n of them."""
    choices: list[list[tuple[float, Arrival | None]]] = []
    no_object = Arrival({}, None, None)
    for alternatives in _alternatives(ranking, without=no_object):
        absent = max(0.0, 1 - _sum([a.probability for a in alternatives]))
        choices.append([(absent, None), *((a.probability, a) for a in alternatives)])
    found = []
    for world in product(*choices):
        chance, present = 1.0, {o for _, o in world if o is not None}
        for p, _ in world:
            chance = chance * p
        found.append((chance, [o for o in ranking if o in present]))
    return found


def rank_probabilities_by_worlds(ranking: list[Arrival], k: int) -> dict[Arrival, list[float]]:
    """The same as `rank_probabilities`, straight from the definition."""
    holds = {o: [0.0] * k for o in ranking}
    for chance, present in worlds(ranking):
        for j, o in enumerate(present[:k]):
            holds[o][j] += chance
    return holds


def top_k_probabilities_by_worlds(ranking: list[Arrival], k: int) -> dict[tuple[Arrival, ...], float]:
    """The probability that each list of k objects is the first k of a world, straight from the definition."""
    answers: dict[tuple[Arrival, ...], float] = {}
    for chance, present in worlds(ranking):
        if len(present) >= k:
            first = tuple(present[:k])
            answers[first] = answers.get(first, 0.0) + chance
    return answers
