"""Scores of pairs of live objects, for REFILL: of one object with all older ones, and of all with each other."""

from __future__ import annotations

from skyband.engines.pairs.kernels.programs import CHUNK, Program, prepare, write_gathered
from skyband.engines.pairs.kernels.records import TYPED, Floats, Ints, Rules, Scratch
from skyband.engines.pairs.kernels.scores import fill
from skyband.kernels.compile import kernel, uncounted


@kernel
def score_older(rules: Rules, data: Floats, at: int, out: Floats) -> None:
    """Write the keys of the object at an index with all objects before it."""
    scoring, values, size = rules.scoring, data[:, at], at
    if scoring.form == TYPED:
        prepare(scoring.program, values, min(CHUNK, size))
    low = 0
    while low < size:
        part = out[low : min(size, low + CHUNK)]
        fill(part, len(part), scoring, data, low, values)
        for i in range(len(part)):
            part[i] *= scoring.sign
        low += CHUNK


@kernel
def join_older(rules: Rules, data: Floats, at: int, scratch: Scratch, others: Ints) -> int:
    """Of these older objects keep, in front, those that are a pair with the one at an index; return their number."""
    return _joined(rules.on, data, data[:, at], scratch, others, 0, len(others))


@uncounted
def _joined(on: Program, data: Floats, values: Floats, scratch: Scratch, others: Ints, begin: int, end: int) -> int:
    """The same for a part of a list of objects; returns where it ends now."""
    if len(on.code) == 0:
        return end
    prepare(on, values, min(CHUNK, end - begin))
    kept = begin
    while begin < end:
        size = min(CHUNK, end - begin)
        write_gathered(on, data, others, begin, size, False, scratch.gathered, scratch.buffer)
        for i in range(size):
            others[kept] = others[begin + i]
            kept += scratch.buffer[i] == 1.0
        begin += size
    return kept


@kernel
def find_best(
    rules: Rules, data: Floats, eligible: Ints, scratch: Scratch, bar: float, begin: int, keys: Floats, members: Ints
) -> tuple[int, int]:
    """Find the pairs with a key of at least `bar`, one newer member after another, from `begin` on.

    Writes keys and the indices of the older (members[0]) and newer members; returns how far it came before these were
    full, and how many there are.
    """
    scoring, found, size = rules.scoring, 0, len(eligible)
    older, newer, buffer = members[0], members[1], scratch.buffer
    for place in range(begin, size):
        if found + place > len(keys):
            return place, found
        values, start, low = data[:, eligible[place]], found, 0
        if scoring.form == TYPED:
            prepare(scoring.program, values, min(CHUNK, eligible[place]))
        at = 0
        while low < eligible[place] and at < place:
            many = min(CHUNK, eligible[place] - low)
            fill(buffer, many, scoring, data, low, values)
            while at < place and eligible[at] < low + many:
                key = scoring.sign * buffer[eligible[at] - low]
                older[found] = eligible[at]
                keys[found] = key
                found += key >= bar
                at += 1
            low += many
        if len(rules.on.code):
            found = _keep(rules.on, data, values, scratch, keys, older, start, found)
        for i in range(start, found):
            newer[i] = eligible[place]
    return size, found


@uncounted
def _keep(
    on: Program, data: Floats, values: Floats, scratch: Scratch, keys: Floats, older: Ints, begin: int, end: int
) -> int:
    """Keep the pairs from `begin` on that satisfy the condition, with their keys."""
    for i in range(begin, end):
        scratch.other[i - begin] = older[i]
    kept = _joined(on, data, values, scratch, scratch.other, 0, end - begin)
    at = begin
    for i in range(kept):
        while older[at] != scratch.other[i]:
            at += 1
        older[begin + i], keys[begin + i] = older[at], keys[at]
        at += 1
    return begin + kept
