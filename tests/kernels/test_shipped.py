"""Kernels that were compiled ahead are used where they fit, and nowhere else; where none fit, nothing fails."""

from __future__ import annotations

import ast
import ctypes
import hashlib
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numba.core import event

import skyband
from kinds import KINDS, stream
from skyband.cli.compile import entry_points
from skyband.errors import SkybandWarning, StateError
from skyband.kernels import cache, shipped
from skyband.kernels.compile import kernel
from skyband.kernels.shipped import Pack, Unfit
from skyband.kernels.sources import imported_by, source_of

HOME = Path(skyband.__file__).parent
#: Calls one small kernel; prints its result, how many were compiled, and where they are kept.
CALL = """
import numpy as np
from skyband.kernels.routing import number
counts, out = np.zeros(2, np.int64), np.empty(4, np.int64)
number(np.array([0, 1, 0, 0]), counts, out)
print(out.tolist(), sum(number.stats.cache_misses.values()), number.stats.cache_path)
"""
ANSWERS = """
from numba.core import event
import skyband as sb
with event.install_recorder("numba:compile") as compiled:
    m = sb.Monitor(sb.TopK(2, by="x", window=sb.Last(3)))
    m.push({"x": [1.0, 3.0, 2.0]})
    print(m.answer()["score"].to_pylist(), len(compiled.buffer))
"""
PACK = shipped.place().read_bytes() if shipped.place().is_file() else b""
needs_pack = pytest.mark.skipif(not PACK, reason="no kernels were compiled ahead: `make pack` does it")


def run(code: str, place: Path = HOME.parent, **env: str) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own, with the package of `place`; permissions hold for it even as root."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("SKYBAND_", "NUMBA_"))}
    return subprocess.run(
        [sys.executable, "-B", "-c", code],
        env={**inherited, "PYTHONPATH": str(place), **env},
        cwd=place if place.is_dir() else place.parent,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=_heed_permissions,
    )


def _heed_permissions() -> None:
    """Give up what lets root write where no one may: prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE), for what is started."""
    ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)


def copied(to: Path, *, pack: bool = True) -> Path:
    ignored = ("*.nb?", "__pycache__", *(() if pack else (shipped.FILE,)))
    shutil.copytree(HOME, to / "skyband", ignore=shutil.ignore_patterns(*ignored))
    return to


def zipped(to: Path, *, pack: bool) -> Path:
    with zipfile.ZipFile(to, "w") as archive:
        for file in HOME.rglob("*"):
            if file.suffix == ".py" or (pack and file.name == shipped.FILE):
                archive.write(file, file.relative_to(HOME.parent))
    return to


def with_facts(data: bytes, **facts: Any) -> bytes:
    """A pack that says of itself that it is for something else."""
    head = len(shipped._FIRST_LINE)
    size = int.from_bytes(data[head + 32 : head + 40], "big")
    known = json.loads(zlib.decompress(data[head + 40 : head + 40 + size]))
    index = zlib.compress(json.dumps({**known, **facts}).encode())
    body = data[head + 40 + size :]
    return data[:head] + hashlib.sha256(index).digest() + len(index).to_bytes(8, "big") + index + body


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The verdict on a pack with these bytes in place of the package's."""
    monkeypatch.delenv("SKYBAND_KERNELS", raising=False)

    def verdict(data: bytes) -> Pack | Unfit:
        monkeypatch.setattr(shipped, "_read", lambda: data)
        return shipped.installed.__wrapped__()

    return verdict


# --- where they fit


@needs_pack
@pytest.mark.parametrize("mode", ["shipped", "only"])
def test_an_answer_compiles_nothing(mode: str) -> None:
    done = run(ANSWERS, SKYBAND_KERNELS=mode)
    assert (done.stdout, done.stderr) == ("[3.0, 2.0] 0\n", "")


@needs_pack
def test_every_entry_point_is_there() -> None:
    assert set(Pack(shipped.place().read_bytes()).index["kernels"]) == set(entry_points())


@needs_pack
def test_from_an_archive() -> None:
    with tempfile.TemporaryDirectory() as folder:
        done = run(ANSWERS, zipped(Path(folder, "skyband.zip"), pack=True), SKYBAND_KERNELS="only")
    assert (done.stdout, done.stderr) == ("[3.0, 2.0] 0\n", "")


# --- where they do not


def test_native_code_is_a_choice(tmp_path: Path) -> None:
    done = run(CALL, SKYBAND_KERNELS="native", NUMBA_CACHE_DIR=str(tmp_path))
    assert done.stdout.startswith(f"[0, 0, 1, 2] 1 {tmp_path}")
    assert "since SKYBAND_KERNELS=native" in done.stderr
    again = run(CALL, SKYBAND_KERNELS="native", NUMBA_CACHE_DIR=str(tmp_path))
    assert (again.stdout, again.stderr) == (done.stdout.replace("] 1 ", "] 0 "), "")


def test_bounds_are_checked_when_numba_is_asked_to(tmp_path: Path) -> None:
    beyond = CALL.replace("[0, 1, 0, 0]", "[0, 1, 0, 7]")
    for _ in range(2):  # the second time from disk
        done = run(beyond, NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(tmp_path))
        assert "IndexError" in done.stderr


def test_a_mode_that_is_none() -> None:
    assert "SKYBAND_KERNELS=all: that is none of shipped, native, only" in run(CALL, SKYBAND_KERNELS="all").stderr


@needs_pack
def test_changed_source_is_compiled(tmp_path: Path) -> None:
    """Also where it is another file than the kernel's own, which Numba does not look at."""
    place = copied(tmp_path)
    with (place / "skyband" / "kernels" / "compile.py").open("a") as file:
        file.write("# changed\n")
    reason = "the source of skyband.kernels.routing is not the one that was compiled ahead"
    refused = run(CALL, place, SKYBAND_KERNELS="only")
    assert f"StateError: SKYBAND_KERNELS=only, but {reason}" in refused.stderr
    done = run(CALL, place)
    assert done.stdout.startswith("[0, 0, 1, 2] 1 ")
    assert f"since {reason}" in done.stderr
    kept = run(CALL, place)
    assert (kept.stdout, kept.stderr) == (done.stdout.replace("] 1 ", "] 0 "), "")
    with (place / "skyband" / "kernels" / "compile.py").open("a") as file:
        file.write("# again\n")
    assert run(CALL, place).stdout == done.stdout


@needs_pack
@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"numba": "0.1"}, "for Numba 0.1"),
        ({"triple": "s390x-linux"}, "for s390x-linux"),
        ({"python": "pypy"}, "CPython 3.11 to 3.13"),
        ({"layout": {}}, "CPython 3.11 to 3.13"),
        ({"level": "x86-64-v9", "features": ["avx9"]}, "for x86-64-v9, which this processor is not (no avx9)"),
    ],
)
def test_a_pack_for_something_else(installed: Any, facts: dict[str, Any], reason: str) -> None:
    verdict = installed(with_facts(PACK, **facts))
    assert isinstance(verdict, Unfit)
    assert reason in verdict.reason


@needs_pack
def test_a_damaged_pack_is_not_used(installed: Any) -> None:
    assert isinstance(installed(PACK), Pack)
    for data in (b"", PACK[:20], PACK[:60] + b"\0" + PACK[61:], b"x" + PACK[1:]):
        assert installed(data) == Unfit(f"{shipped.FILE} is damaged.", "install skyband again")
    first, *_ = json.loads(json.dumps(Pack(PACK).index["kernels"])).items()
    name, signature = first[0], next(iter(first[1]))
    begin = len(PACK) - len(Pack(PACK)._body) + first[1][signature][0]
    forged = PACK[: begin + 9] + bytes([PACK[begin + 9] ^ 1]) + PACK[begin + 10 :]
    with pytest.raises(StateError, match="damaged"):
        Pack(forged).read(name, signature)


# --- where nothing can be written


@pytest.fixture
def locked() -> Iterator[Any]:
    """Makes folders that cannot be written, until the test ends."""
    changed: list[str] = []

    def lock(place: Path) -> Path:
        place.mkdir(exist_ok=True)
        for folder, _, _ in os.walk(place):
            os.chmod(folder, 0o500)
            changed.append(folder)
        return place

    yield lock
    for folder in changed:
        os.chmod(folder, 0o700)


@needs_pack
def test_a_package_that_cannot_be_written_without_a_home(tmp_path: Path, locked: Any) -> None:
    place = locked(copied(tmp_path / "package"))
    done = run(ANSWERS, place, HOME=str(tmp_path / "none"), SKYBAND_KERNELS="only")
    assert (done.stdout, done.stderr) == ("[3.0, 2.0] 0\n", "")


def test_without_kernels_they_are_kept_in_a_private_folder(tmp_path: Path, locked: Any) -> None:
    place, temporary = locked(copied(tmp_path / "package", pack=False)), tmp_path / "temporary"
    temporary.mkdir()
    private = temporary / f"skyband-kernels-{os.getuid()}"
    locked(tmp_path / "home")
    for compiled in (1, 0):
        done = run(CALL, place, HOME=str(tmp_path / "home"), TMPDIR=str(temporary))
        assert done.stdout.startswith(f"[0, 0, 1, 2] {compiled} {private}/"), done.stderr
        assert ("this installation has no compiled kernels" in done.stderr) == bool(compiled)
    assert private.stat().st_mode & 0o777 == 0o700


def test_an_archive_without_kernels_keeps_them_elsewhere(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "skyband.zip", pack=False)
    for compiled in (1, 0):
        done = run(CALL, archive, NUMBA_CACHE_DIR=str(tmp_path / "kept"))
        assert done.stdout.startswith(f"[0, 0, 1, 2] {compiled} {tmp_path}/kept/"), done.stderr


def test_a_private_folder_is_nobody_elses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = Path(cache._private_folder())
    assert found.stat().st_mode & 0o777 == 0o700
    found.chmod(0o755)
    with pytest.raises(PermissionError):
        cache._private_folder()
    found.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").chmod(0o700)
    found.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError):
        cache._private_folder()


def test_without_any_folder_kernels_are_compiled_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "folders", lambda source: iter(["/dev/null/kernels"]))
    cache.writable_folder.cache_clear()
    try:

        @kernel
        def doubled(values: Any) -> Any:
            return values * 2

        with pytest.warns(SkybandWarning, match="every process compiles them.*/dev/null/kernels.*NUMBA_CACHE_DIR"):
            assert doubled(np.array([1.5])).tolist() == [3.0]
        assert doubled(np.array([2.5])).tolist() == [5.0]
    finally:
        cache.writable_folder.cache_clear()
        cache._warn_once.cache_clear()


# --- what is hashed


def test_the_hash_covers_all_that_a_kernel_is_made_of() -> None:
    """Every module of skyband that a kernel's module imports, found here by Python's own parser."""
    for module in sorted({name.rpartition(".")[0] for name in entry_points()}):
        expected = set()
        for node in ast.parse(source_of(module) or b"").body:
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("skyband"):
                expected.add(node.module)
                if hasattr(importlib.import_module(str(node.module)), "__path__"):
                    names = [f"{node.module}.{one.name}" for one in node.names]
                    expected |= {name for name in names if source_of(name) is not None}
        assert set(imported_by(module)) == expected, module


def test_no_kernel_calls_an_entry_point() -> None:
    """Code of the pack is without LLVM's bitcode: Python can call it, a kernel that is compiled cannot."""
    entries = set(entry_points())
    for module in sorted({name.rpartition(".")[0] for name in entries}):
        for one in vars(importlib.import_module(module)).values():
            code = getattr(getattr(one, "py_func", None), "__code__", None)
            for name in code.co_names if code is not None else ():
                called = getattr(sys.modules[one.__module__], name, None)
                known = f"{getattr(called, '__module__', '')}.{getattr(called, '__qualname__', '')}"
                assert known not in entries, f"{one.__qualname__} calls {known}"


@needs_pack
@pytest.mark.parametrize("kind", KINDS)
def test_tables_from_elsewhere_compile_nothing(kind: str) -> None:
    """Memory of a table that was read from a file or a socket is read-only, and may be cut anywhere."""
    for cut in (0, 3):
        sink = pa.BufferOutputStream()
        rows = stream(200)
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        table = pa.ipc.open_stream(sink.getvalue()).read_all().slice(cut)
        with event.install_recorder("numba:compile") as compiled:
            monitor = KINDS[kind].monitor()
            monitor.push(table)
            for name in monitor.queries:
                monitor.answer(name)
        assert not compiled.buffer
