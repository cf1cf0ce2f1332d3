"""Cells: where a group is, which cells change when they grow, which are due."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import examples
from skyband.spark import directory
from skyband.spark.directory import NEVER, Directory

_HASHES = np.random.default_rng(3).integers(0, 2**64, 3000, np.uint64)


def place(cells: Directory, hashes: np.ndarray) -> dict[int, set[int]]:
    """Which groups each cell holds, where `address` says."""
    held: dict[int, set[int]] = {cell: set() for cell in range(len(cells))}
    for group, cell in zip(hashes.tolist(), cells.address(hashes).tolist(), strict=True):
        held[cell].add(group)
    return held


@examples(150)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 400), st.integers(0, 500)), min_size=1, max_size=8),
    st.integers(1, 50),
    st.sampled_from([1, 8, 256]),
)
def test_growing_changes_only_the_cells_that_it_returns(
    steps: list[tuple[int, int, int]], cell: int, at_once: int
) -> None:
    """A store of cells that is rewritten only where `grow` says holds every group where `address` looks for it."""
    cells, known = Directory(), 0
    stored: dict[int, set[int]] = {0: set()}
    with (
        patch.object(directory, "CELL", cell),
        patch.object(directory, "_WHOLE", 0),
        patch.object(directory, "_AT_ONCE", at_once),
    ):
        for more, size, groups in steps:
            known += more
            for number in cells.address(_HASHES[known - more : known]).tolist():
                cells.bytes[number] += size
            cells.groups[:] = [len(held) for held in place(cells, _HASHES[:known]).values()]
            stored = place(cells, _HASHES[:known])
            before, total = len(cells), int(cells.bytes.sum())
            moving = set(cells.grow(groups).tolist())
            larger = directory._DENSE if 4 * groups > total // cell else 1
            assert len(cells) == max(before, min(total // (cell * larger), before + max(at_once, groups)))
            assert set(range(before, len(cells))) <= moving
            wanted = place(cells, _HASHES[:known])
            assert {c for c in wanted if wanted[c] != stored.get(c, set())} <= moving
            assert int(cells.bytes.sum()) == total, "what is known of a cell stays until it is written"
            for column in cells.columns().values():
                assert len(column) == len(cells)
            assert (cells.due[before:] == NEVER).all()
            assert (cells.groups[before:] == 0).all()
            cells.bytes[:] = [size * len(held) for held in wanted.values()]


def test_groups_spread_over_any_number_of_cells() -> None:
    for count in (1, 2, 3, 5, 8, 13, 100):
        cells = Directory(*(np.zeros(count, np.int64) for _ in range(4)))
        held = np.bincount(cells.address(_HASHES), minlength=count)
        assert len(held) == count
        assert held.min() * count > 0.2 * len(_HASHES), "a cell that is yet to be split holds twice as much"
        assert held.max() * count < 3.0 * len(_HASHES)


def test_groups_of_one_shard_spread_too() -> None:
    """The shard is the hash modulo their number: the cell must come from other bits."""
    for shards in (2, 7, 64):
        mine = _HASHES[_HASHES % np.uint64(shards) == 1]
        held = np.bincount(Directory(*(np.zeros(8, np.int64) for _ in range(4))).address(mine), minlength=8)
        assert held.max() < 3 * len(mine) / 8


def opened(size: int, groups: int = 0, triggers: int = 100) -> int:
    """The cells of a state of this size after triggers with rows of so many groups."""
    cells = Directory(bytes=np.array([size]))
    for _ in range(triggers):
        cells.grow(groups)
    return len(cells)


def test_cells_are_larger_while_triggers_have_rows_for_most() -> None:
    size, small = 1 << 26, (1 << 26) // directory.CELL
    assert opened(size, 100_000) == opened(size, small // 4 + 1) == small // directory._DENSE
    assert opened(size, small // 4) == opened(size) == small


def test_small_triggers_open_few_cells_each() -> None:
    assert opened(1 << 26, 10, 1) == 1 + directory._AT_ONCE
    assert opened(1 << 26, 3000, 1) == 1 + 3000


def test_cells_of_a_small_state_are_larger() -> None:

    assert opened(0) == opened(1000) == opened(200_000) == 1
    assert opened(1 << 20) == 16
    assert opened(1 << 24) == (1 << 24) // directory.CELL
    assert opened(1 << 26) == (1 << 26) // directory.CELL


def test_due_by() -> None:
    cells = Directory(*(np.zeros(4, np.int64) for _ in range(4)))
    cells.due[:] = [5, NEVER, -3, 6]
    assert cells.due_by(-4).tolist() == []
    assert cells.due_by(-3).tolist() == [2]
    assert cells.due_by(5).tolist() == [0, 2]
    assert cells.due_by(6).tolist() == [0, 2, 3]
    assert Directory.of(cells.columns()).due_by(5).tolist() == [0, 2]
