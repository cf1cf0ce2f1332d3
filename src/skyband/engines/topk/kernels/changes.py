"""How a step's changes are written down: who enters and who leaves which answer."""

from __future__ import annotations

from skyband.kernels.compile import inlined, part
from skyband.kernels.records import BITS, Records


@inlined
def enter(objects: Records, i: int, q: int, out: Records, tally: Records, step: Records, net: bool) -> None:
    objects[i]["inside"] |= BITS[q]
    if not net:
        write(objects, i, q, 1, out, tally, step)


@inlined
def leave(objects: Records, i: int, q: int, out: Records, tally: Records, step: Records, net: bool) -> None:
    objects[i]["inside"] &= ~BITS[q]
    if not net:
        write(objects, i, q, -1, out, tally, step)


@inlined
def write(objects: Records, i: int, q: int, diff: int, out: Records, tally: Records, step: Records) -> None:
    """Report that object i enters or leaves the answer of query q in this step."""
    n = tally[1]
    out[n] = step[0]
    out[n]["key"] = objects[i]["key"]
    out[n]["stamp"] = objects[i]["stamp"]
    out[n]["serial"] = objects[i]["serial"]
    out[n]["query"] = q
    out[n]["diff"] = diff
    out[n]["first"] = diff > 0 and not objects[i]["shown"] & BITS[q]
    if diff > 0:
        objects[i]["shown"] |= BITS[q]
    tally[1] = n + 1


@part
def lose(objects: Records, i: int, out: Records, tally: Records, step: Records) -> None:
    """Within a net batch object i is dropped: answers that had it at the start have lost it."""
    for q in range(32):
        if objects[i]["was"] & BITS[q]:
            write(objects, i, q, -1, out, tally, step)
