"""The changes of a step: objects that enter or leave an answer."""

from __future__ import annotations

from skyband.engines.topk.kernels.state import Report
from skyband.kernels.compile import close, uncounted
from skyband.kernels.records import BITS, Records


@close
def enter(objects: Records, i: int, q: int, report: Report) -> None:
    """Object i enters the answer of query q."""
    objects[i]["inside"] |= BITS[q]
    if not report.net:
        write(objects, i, q, 1, report)


@close
def leave(objects: Records, i: int, q: int, report: Report) -> None:
    """Object i leaves the answer of query q."""
    objects[i]["inside"] &= ~BITS[q]
    if not report.net:
        write(objects, i, q, -1, report)


@close
def write(objects: Records, i: int, q: int, diff: int, report: Report) -> None:
    """Report that object i enters or leaves the answer of query q in this step."""
    changes, n = report.changes, report.tally[1]
    changes[n] = report.step[0]
    changes[n]["key"] = objects[i]["key"]
    changes[n]["stamp"] = objects[i]["stamp"]
    changes[n]["serial"] = objects[i]["serial"]
    changes[n]["query"] = q
    changes[n]["diff"] = diff
    changes[n]["first"] = diff > 0 and not objects[i]["shown"] & BITS[q]
    if diff > 0:
        objects[i]["shown"] |= BITS[q]
    report.tally[1] = n + 1


@close
def drop(objects: Records, i: int, report: Report) -> None:
    """Object i is kept no longer."""
    if objects[i]["serial"] >= report.serial:
        report.alive[objects[i]["serial"] - report.serial] = False
    if objects[i]["was"]:
        lose(objects, i, report)


@uncounted
def lose(objects: Records, i: int, report: Report) -> None:
    """Within a net batch object i is dropped: report it to the answers that had it when the batch began."""
    for q in range(32):
        if objects[i]["was"] & BITS[q]:
            write(objects, i, q, -1, report)


@uncounted
def begin_batch(objects: Records, groups: Records, g: int, report: Report) -> None:
    """Remember the answers of a group for a net batch, unless it goes on from earlier arrivals."""
    if report.net:
        if not groups[g]["open"]:
            for i in range(groups[g]["head"], groups[g]["head"] + groups[g]["size"]):
                objects[i]["was"] = objects[i]["inside"]
        groups[g]["open"] = report.more


@uncounted
def end_batch(objects: Records, groups: Records, g: int, Q: int, report: Report) -> None:
    """Report a net batch: what has left the answers since it began, then what has entered them."""
    for diff in (-1, 1):
        for i in range(groups[g]["head"], groups[g]["head"] + groups[g]["size"]):
            before, after = objects[i]["was"], objects[i]["inside"]
            moved = before & ~after if diff < 0 else after & ~before
            if moved:
                for q in range(Q):
                    if moved & BITS[q]:
                        write(objects, i, q, diff, report)
    for i in range(groups[g]["head"], groups[g]["head"] + groups[g]["size"]):
        objects[i]["was"] = 0
