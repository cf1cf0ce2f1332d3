"""The daemon of Python workers: its forks work, share what it has imported, and only its own Python gets it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from skyband.spark.session import _is_this_python

_FORKS = """
import os, sys
import skyband.spark.daemon as daemon
daemon.load()
before = set(sys.modules)
for _ in range(2):
    if os.fork() == 0:
        import numpy as np, pyarrow as pa
        import skyband as sb
        rows = pa.table({"x": np.arange(200_000) % 1000 / 7, "g": np.arange(200_000) % 50})
        rows = rows.sort_by([("g", "ascending"), ("x", "descending")])
        monitor = sb.Monitor(sb.TopK(3, by="x", window=sb.Last(1000), per="g"))
        monitor.push(rows)
        assert monitor.answer(key=7).num_rows == 3
        assert np.dot(np.ones((500, 500)), np.ones((500, 500)))[0, 0] == 500
        os._exit(0)
statuses = [os.wait()[1] for _ in range(2)]
print(statuses, "numba" in before, "pandas" in before)
"""


def test_its_forks_work() -> None:
    """Arrow, NumPy's threads and kernels, in two forks."""
    done = subprocess.run([sys.executable, "-c", _FORKS], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.strip() == "[0, 0] True True", done.stderr


def test_which_python_it_is_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _is_this_python(sys.executable)
    assert not _is_this_python(str(tmp_path / "python"))
    other = tmp_path / "python"
    other.symlink_to(sys.executable)  # what is installed beside it may be something else
    assert not _is_this_python(str(other))
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert _is_this_python(Path(sys.executable).name)
