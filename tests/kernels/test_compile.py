"""Kernels compile and give the same results without the parts of Numba that it does not document."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import sys
import numpy as np
from skyband.kernels import compile as flags
from skyband.kernels.compile import close, inlined, kernel, part, uncounted, uncounted_kernel
from skyband.kernels.routing import number

@part
def doubled(values, factor):
    return values * factor

@uncounted
def largest(values):
    found = -np.inf
    for value in values:
        found = max(found, value)
    return found

@close
def first(values, place):
    return values[place]

@inlined
def last(values):
    return values[len(values) - 1]

@kernel
def whole(values):
    return doubled(values, 2)

@uncounted_kernel
def parts(values):
    return largest(values) + first(values, 0) + last(values)

values = np.array([3.0, 5.0, 1.0])
counts, numbers = np.zeros(2, np.int64), np.empty(4, np.int64)
number(np.array([0, 1, 0, 0]), counts, numbers)
print(whole(values).tolist(), parts(values), numbers.tolist(), counts.tolist(), flags.PLAIN, bool(flags._UNCOUNTED))
"""


@pytest.mark.parametrize("plain", ["0", "1"])
def test_documented_numba_gives_the_same(plain: str, tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(CODE)
    env = {**os.environ, "SKYBAND_PLAIN_NUMBA": plain, "NUMBA_CACHE_DIR": str(tmp_path / plain)}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "code.py")], env=env, check=True, capture_output=True, text=True
    )
    used = "True False" if plain == "1" else "False True"
    assert done.stdout.strip() == f"[6.0, 10.0, 2.0] 9.0 [0, 0, 1, 2] [3, 1] {used}"
