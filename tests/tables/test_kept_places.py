"""Kept columns of many objects at once: a table of places finds what bisection finds."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from engines.streams import examples
from skyband.tables import columns
from skyband.tables.columns import KeptColumns


@examples(100)
@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=40, unique=True),
    st.data(),
    st.sampled_from([1, 3, 16]),
    st.sampled_from([0, 10**12]),
)
def test_values_are_those_of_the_objects(serials: list[int], data: st.DataObject, sparse: int, begin: int) -> None:
    """Whichever way: few or many, dense or with gaps, far from 0, each as often as it is asked for."""
    kept = KeptColumns()
    rising = begin + np.array(sorted(serials))
    kept.add(rising, {"double": pa.array(2 * rising)})
    wanted = np.array(data.draw(st.lists(st.sampled_from(rising.tolist()), min_size=1, max_size=50)))
    with patch.object(columns, "_MANY", 1), patch.object(columns, "_SPARSE", sparse):
        assert kept.read("double", wanted).to_pylist() == (2 * wanted).tolist()


def test_the_table_is_used() -> None:
    kept = KeptColumns()
    kept.add(np.arange(5000) * 2, {"x": pa.array(np.arange(5000))})
    wanted = np.random.default_rng(1).permutation(5000)
    with patch.object(np, "searchsorted", side_effect=AssertionError):
        assert kept.read("x", 2 * wanted).to_pylist() == wanted.tolist()
        assert kept.read("x", 2 * wanted[: columns._MANY]).to_pylist() == wanted[: columns._MANY].tolist()


def test_what_is_not_kept_is_no_error() -> None:
    """As with bisection: callers ask for what they keep; a forged state is refused elsewhere, and does no harm here."""
    kept = KeptColumns()
    kept.add(np.arange(10, 2010), {"x": pa.array(np.arange(2000))})
    beyond = np.arange(5, 2005)
    assert len(kept.read("x", beyond)) == 2000
