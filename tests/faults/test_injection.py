"""Faults injected into calls: after any of them a Monitor is as if the call had not been made, or says it is broken.

Every Python line of a call fails once (an interrupt or a want of memory), every allocation of Python's, and the address
space ends at many places of a larger push. `make test` tries a sample, SKYBAND_FUZZ=10 each line at the first and the
last time that it is run, SKYBAND_FUZZ=20 (`make faults`) every time (of allocations one in a hundred).
"""

from __future__ import annotations

import faulthandler
import json
import linecache
import os
import re
import signal
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

import numpy as np
import pytest

import forks
import skyband as sb
from faults.ledger import note
from faults.subjects import SUBJECTS, Call, calls, rows, started
from skyband.errors import StateError
from skyband.kernels.compile import ENTRY_POINTS

HOUSE = str(Path(sb.__file__).parent)
FUZZ = int(os.environ.get("SKYBAND_FUZZ", "1"))
ALL = FUZZ >= 20
PLACES = 12 * FUZZ  # of each call, if not all
CALLS = [name for name in os.environ.get("SKYBAND_CALLS", "").split(",") if name]  # all if none


@dataclass
class Fault:
    """Raise an error at one line of skyband's, counted from the begin; at 0 none, which notes the lines."""

    at: int
    error: type[BaseException]
    lines: int = field(default=0, init=False)
    places: list[tuple[str, int]] = field(default_factory=list, init=False)

    def chosen(self, most: int) -> list[int]:
        """The lines at which to raise: a sample of about so many, the first and last time of each, or all."""
        if ALL:
            return list(range(1, self.lines + 1))
        if FUZZ < 10:
            return list(range(1, self.lines + 1, max(1, self.lines // most)))
        last = {place: at for at, place in enumerate(self.places, 1)}
        first = {place: at for at, place in reversed(list(enumerate(self.places, 1)))}
        return sorted({*first.values(), *last.values()})

    def __enter__(self) -> Fault:
        self.before = sys.gettrace()
        sys.settrace(self._enter)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self.before)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # the fault may have come while it waited

    def _enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(HOUSE) else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            self.lines += 1
            if not self.at:
                self.places.append((frame.f_code.co_filename, frame.f_lineno))
            if self.lines == self.at:
                raise self.error(f"injected at {Path(frame.f_code.co_filename).name}:{frame.f_lineno}")
        return self._line


def settled(monitor: sb.Monitor) -> bytes:
    """A snapshot whose bytes no later restore changes: some engines keep their objects in another order after one."""
    return sb.Monitor.restore(monitor.snapshot()).snapshot()


def outcome(monitor: sb.Monitor, before: bytes, after: bytes, again: Call) -> str:
    """How a Monitor is after a call that failed: untouched, done or broken. Anything else fails.

    One that is untouched ends up as it should when it is called again: nothing outside its snapshot has changed either.
    """
    if monitor._loop.state.commit.broken is not None:
        for call in (
            monitor.snapshot,
            monitor.answer,
            monitor.stats,
            lambda: monitor.push({}),
            lambda: monitor.advance(1),
        ):
            with pytest.raises(StateError, match=r"cannot be trusted.*restore\("):
                call()
        return "broken"
    found = monitor.snapshot()
    assert found in (before, after), "neither as before nor as after, and it does not say so"
    if found == before:
        again(monitor)
        assert monitor.snapshot() == after, "the same call does not end as it does in a Monitor without a fault"
    with suppress(ZeroDivisionError), monitor._loop.state.commit:
        raise ZeroDivisionError
    with pytest.raises(StateError, match="ZeroDivisionError"):  # its commits are guarded as before
        monitor.stats()
    return "untouched" if found == before else "done"


@pytest.mark.parametrize("kind", SUBJECTS)
def test_every_line_of_a_call_fails_once(kind: str) -> None:
    start = started(kind)
    start.push(rows(0, 40))
    before, counted = settled(start), Counter[str]()
    for name, call in calls(kind).items():
        if CALLS and name not in CALLS:
            continue
        call(sb.Monitor.restore(before))  # what is imported or compiled at a first call is no line of later ones
        whole = sb.Monitor.restore(before)
        with Fault(0, MemoryError) as fault:
            call(whole)
        after = whole.snapshot()
        assert fault.lines > 10, name
        for at in fault.chosen(PLACES):
            monitor = sb.Monitor.restore(before)
            error = (MemoryError, KeyboardInterrupt)[at % 2]
            try:
                with Fault(at, error):
                    call(monitor)
                counted["unharmed"] += 1  # whoever called suppresses it, or a line less was run
            except error:
                counted[outcome(monitor, before, after, call)] += 1
    note({"lines of calls": kind, **counted})
    print(kind, dict(counted))
    assert counted["untouched"] and counted["broken"]
    assert counted["unharmed"] <= counted.total() / 20


@pytest.mark.parametrize("kind", SUBJECTS)
def test_every_line_of_a_first_push_fails_once(kind: str) -> None:
    """Queries come together before it, in commits of their own: that shows in a snapshot, and changes no answer."""
    before, counted = started(kind).snapshot(), Counter[str]()
    sb.Monitor.restore(before).push(rows(0, 40))
    whole = sb.Monitor.restore(before)
    with Fault(0, MemoryError) as fault:
        whole.push(rows(0, 40))
    after = whole.snapshot()
    for at in fault.chosen(2 * PLACES):
        monitor, error = sb.Monitor.restore(before), (MemoryError, KeyboardInterrupt)[at % 2]
        try:
            with Fault(at, error):
                monitor.push(rows(0, 40))
            counted["unharmed"] += 1
        except error:
            now = monitor.snapshot() if monitor._loop.state.commit.broken is None else before
            together = before if now == after else now
            counted[outcome(monitor, together, after, lambda one: one.push(rows(0, 40)))] += 1
    note({"lines of a first push": kind, **counted})
    assert counted["untouched"] and counted["broken"]
    assert counted["unharmed"] <= counted.total() / 20


#: Every array of 64 kB or more is asked of the system, and given back at once: no reserve hides a want of memory.
STRICT_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_TRIM_THRESHOLD_": "0",
    "MALLOC_TOP_PAD_": "0",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}


def in_child(function: str, kind: str) -> Counter[str]:
    """The counts that a function of this file prints in a process of its own: it must not crash."""
    code, out, err = forks.start("faults.test_injection", function, kind, environment=STRICT_MEMORY).finish(
        3000 if ALL else 200
    )
    assert code == 0, f"exit code {code}\n{out}\n{err[-4000:]}"
    *more, last = map(json.loads, out.splitlines())
    for entry in ({function: kind, **last}, *more):
        note(entry)
    return Counter[str](last)


HUNG = "no line: it was ended by the alarm"


def place(trace: str) -> str:
    """The Python line that a process was at when it crashed."""
    found = re.search(r'File "(.+)", line (\d+) in (\S+)', trace)
    if found is None:
        return trace.strip() or HUNG
    file, line, function = found.groups()
    return f"{Path(file).name} {function}: {linecache.getline(file, int(line)).strip()}"


def kernels_called(line: str) -> set[str]:
    return {one.py_func.__name__ for one in ENTRY_POINTS} & set(re.findall(r"(\w+)\(", line))


def allocations(kind: str) -> None:
    """Allocations of Python's during a push fail, each in a process that is forked for it."""
    import _testcapi  # type: ignore[import-not-found]

    start = started(kind)
    start.push(rows(0, 40))
    start.push(rows(40, 60))
    before, batch = settled(start), rows(100, 60, groups="abcde")
    monitor, whole = sb.Monitor.restore(before), sb.Monitor.restore(before)
    whole.push(batch)
    after, crashed = whole.snapshot(), Counter[str]()

    def end(at: int, trace: TextIO) -> str:
        """How a push ends in which one allocation fails; a crash leaves its trace."""
        if not (child := os.fork()):
            faulthandler.enable(trace, all_threads=False)
            signal.alarm(30)  # it would be counted as crashed
            failed, found = False, "wrong"
            _testcapi.set_nomemory(at, at + 1)
            try:
                monitor.push(batch)
            except BaseException:
                failed = True
            _testcapi.remove_mem_hooks()
            with suppress(BaseException):
                found = outcome(monitor, before, after, lambda one: one.push(batch))
                if not failed:
                    found = "unharmed" if found == "done" else "wrong"
            os._exit(ENDS.index(found))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return ENDS[code] if code >= 0 else "crashed"

    ends, at, unharmed = Counter[str](), 1, 0
    while unharmed < (400 if ALL else 8):  # then the push has had its last allocation
        with open(os.memfd_create("trace"), "w+", errors="replace") as trace:
            found = end(at, trace)
            trace.seek(0)
            crashed.update([place(trace.read())] if found == "crashed" else [])
        ends[found] += 1
        assert at < 10**7, ends
        at, unharmed = at + 1 + int(at * (0.01 if ALL else 0.3)), unharmed + 1 if found == "unharmed" else 0
    assert not [line for line in crashed if line == HUNG or kernels_called(line)], crashed
    for line, times in crashed.items():
        print(json.dumps({"crashed at": line, "times": times}))
    print(json.dumps(ends))


ENDS = ["unharmed", "untouched", "done", "broken", "wrong"]


@pytest.mark.parametrize("kind", SUBJECTS)
def test_every_allocation_of_a_push_fails_once(kind: str) -> None:
    """Some places of Python's, NumPy's and Arrow's own crash without memory (docs/reliability.md)."""
    pytest.importorskip("_testcapi", reason="this Python was built without its module of tests")
    ends = in_child("allocations", kind)
    print(kind, dict(ends))
    assert ends["broken"] and ends["untouched"] and not ends["wrong"]
    assert ends["crashed"] <= ends.total() / 25


def test_a_crash_is_attributed_to_a_line() -> None:
    """A kernel's own would fail the test above; what hangs has no trace."""
    whole = sb.Monitor(sb.TopK(1, "x", sb.Last(5)))
    whole.push({"x": [1.0]})
    kernel = ENTRY_POINTS[0].py_func
    line = next(i for i, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "= ENTRY_POINTS[0]" in text)
    trace = f'Fatal Python error\n\n  File "{__file__}", line {line} in one\n  File "{__file__}", line 1 in two\n'
    assert place(trace) == "test_injection.py one: kernel = ENTRY_POINTS[0].py_func"
    assert place("") == HUNG
    assert kernels_called(f"a, b = {kernel.__name__}(x)") == {kernel.__name__}
    assert not kernels_called(f"a.{kernel.__name__} = numpy.max(x)")


def all_there_is() -> list[Any]:
    """The memory that the process has been given and does not use."""
    taken: list[Any] = []
    for size in (1 << 20, 1 << 16, 1 << 12):
        with suppress(MemoryError):
            while True:
                taken.append(np.empty(size, np.uint8))
    return taken


#: Rows of a push, for kinds that take long.
SLOW = {"live pairs": 5_000} | dict.fromkeys(
    ("pairs", "until deleted", "compact", "subscriptions", "vectors", "sources", "orders"), 20_000
)


def address_space(kind: str) -> None:
    """The address space ends at many places of a push of many rows."""
    import resource

    start = started(kind)
    start.push(rows(0, 40))
    start.push(rows(40, 60))
    before = settled(start)
    batch, tried = rows(100, SLOW.get(kind, 100_000), groups="abcdefgh"), []
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    for extra in range(0, 64 if ALL else 32, 1 if ALL else 4):
        monitor = sb.Monitor.restore(before)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used, hard))
        reserve = all_there_is()
        resource.setrlimit(resource.RLIMIT_AS, (used + (extra << 18), hard))
        try:
            monitor.push(batch)
            failed = False
        except MemoryError:
            failed = True
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
            del reserve
        tried.append((monitor, failed))
    whole = sb.Monitor.restore(before)
    whole.push(batch)
    after = whole.snapshot()
    counted = Counter(outcome(monitor, before, after, lambda one: one.push(batch)) for monitor, _ in tried)
    print(json.dumps({**counted, "failed": sum(failed for _, failed in tried)}))


@pytest.mark.parametrize("kind", SUBJECTS)
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_the_address_space_ends(kind: str) -> None:
    assert in_child("address_space", kind)["failed"]


def rare_kernels(kind: str) -> None:
    """Kernels that a refused batch or a growing table needs, after one push of a small batch."""
    from skyband.kernels.routing import drop_last, reindex

    started(kind).push(rows(0, 4))
    print(json.dumps({"loaded": bool(drop_last.overloads) + bool(reindex.overloads)}))  # type: ignore[attr-defined]


def test_kernels_of_rare_steps_are_loaded_with_the_first_groups() -> None:
    """LLVM ends the process if it has no memory to load one, and that is when a batch is refused."""
    assert in_child("rare_kernels", "topk")["loaded"] == 2
