"""Mutants: how one is made and tested; tests/*/test_mutants.py list them.

A mutant is a copy of the package with one exact replacement in one file. The tests that it must die of run over it in a
process of its own (forked, so that importing costs nothing), with the kernels as plain Python (NUMBA_DISABLE_JIT: no
compiling) and few examples (SKYBAND_KILL), and stop at the first failure. A pattern that does not occur exactly once
fails loudly: code has moved, fix the mutant.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

REPOSITORY = Path(__file__).parents[1]
PATIENCE = 90  # seconds of work
USUAL = 30  # seconds of work of the tests that a mutant must die of: one that takes three times as long never ends
EVERY = 1 if "SKYBAND_MUTANTS" in os.environ else 29  # of so many one is tried

#: the file, what it says, what the mutant says, and the tests that it must die of
Mutant: TypeAlias = tuple[str, str, str, tuple[str, ...]]

#: Loads what all runs need and forks a run for each line it reads: a copy of the package, and where to write.
NURSERY = """
import gc, os, signal, sys
import _hypothesis_pytestplugin, anyio.pytest_plugin, hypothesis, numpy, pyarrow.compute, pytest, sqlglot
import hypothesis.internal.conjecture.engine
from numba.core.registry import cpu_target

cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
gc.freeze()
for line in sys.stdin:
    source, log, *tests = line.rstrip("\\n").split("\\t")
    if not (child := os.fork()):
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)
        written = os.open(log, os.O_WRONLY | os.O_CREAT)
        os.dup2(written, 1)
        os.dup2(written, 2)
        sys.path.insert(0, source)
        code = pytest.main([*sys.argv[1:], *tests])
        if not sys.modules["skyband"].__file__.startswith(source):
            code = 99
        sys.stdout.flush()
        os._exit(code)
    _, status, spent = os.wait4(child, 0)
    print(os.waitstatus_to_exitcode(status), spent.ru_utime + spent.ru_stime, flush=True)
"""
# hashes overflow on purpose, which only plain Python warns about; and what is loaded is not rewritten
IGNORED = ("RuntimeWarning", "pytest.PytestAssertRewriteWarning")
ARGUMENTS = ["-x", "-q", "--tb=line", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist"]
ARGUMENTS += [word for kind in IGNORED for word in ("-W", f"ignore::{kind}")]

Suite: TypeAlias = Callable[[Path, tuple[str, ...]], tuple[int, str, float]]


@contextmanager
def nursery() -> Iterator[Suite]:
    """Runs the contract suite over a copy of the package; returns the exit code, what was written, and its work."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "SKYBAND_KILL": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    code = NURSERY.replace("PATIENCE", str(PATIENCE))
    command = [sys.executable, "-c", code, *ARGUMENTS]
    with subprocess.Popen(
        command, env=environment, cwd=REPOSITORY, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asks, answers = process.stdin, process.stdout

        def run(source: Path, tests: tuple[str, ...]) -> tuple[int, str, float]:
            log = source / "log"
            print(source, log, *tests, sep="\t", file=asks, flush=True)
            code, seconds = answers.readline().split()
            return int(code), log.read_text(), float(seconds)

        yield run
        asks.close()


def copy_of_the_package(to: Path) -> Path:
    """With the bytecode of what is not changed, and without compiled kernels."""
    shutil.copytree(REPOSITORY / "src" / "skyband", to / "skyband", ignore=shutil.ignore_patterns("*.nb?", "*.pack"))
    return to


def chosen(mutants: Iterable[str]) -> list[str]:
    """Those that are tried: all with SKYBAND_MUTANTS."""
    return list(mutants)[::EVERY]


def replaced(package: Path, mutant: Mutant) -> tuple[Path, str]:
    """The file that a mutant changes, and what stands in it then."""
    file, said, says, _ = mutant
    text = (package / file).read_text()
    assert text.count(said) == 1, f"{file} says this {text.count(said)} times, not once: {said}"
    return package / file, text.replace(said, says)


def all_apply(mutants: Iterable[Mutant]) -> None:
    for mutant in mutants:
        replaced(REPOSITORY / "src" / "skyband", mutant)


def dies(mutant: Mutant, suite: Suite, folder: Path) -> None:
    file, text = replaced(copy_of_the_package(folder) / "skyband", mutant)
    file.write_text(text)
    code, written, _ = suite(folder, mutant[3])
    if code == -signal.SIGPROF:  # it never ends, or these tests take long anyway
        shutil.rmtree(folder / "skyband")
        code, written, seconds = suite(copy_of_the_package(folder), mutant[3])
        assert code == 0 and seconds < USUAL, f"without it {seconds:.0f} s:\n{written[-4000:]}"
    else:
        assert code == 1, f"it lives:\n{written[-4000:]}"
        assert "1 failed" in written, written[-4000:]


def passes(tests: tuple[str, ...], suite: Suite, folder: Path) -> None:
    """A copy without a change does not die of being one."""
    code, written, _ = suite(copy_of_the_package(folder), tests)
    assert code == 0, written[-4000:]
