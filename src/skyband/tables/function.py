"""Scores by the user's own function: the batch as it sees it, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.errors import BatchError
from skyband.tables.input import Batch

Floats = NDArray[np.float64]


class Columns(Mapping[str, NDArray[Any]]):
    """The batch as a user's scoring function sees it: column name -> NumPy array, converted when asked for."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._batch.names:
            raise KeyError(name)
        array: NDArray[Any] = self._batch.array(name).to_numpy(zero_copy_only=False)
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._batch.names)

    def __len__(self) -> int:
        return len(self._batch.names)


def call(function: Callable[..., Any], batch: Batch) -> Floats:
    """The scores that a user's function gives."""
    name = getattr(function, "__qualname__", repr(function))
    try:
        scores = np.array(function(Columns(batch)), dtype=np.float64)  # a copy: kernels are for plain arrays
    except Exception as error:
        raise BatchError(
            f"the scoring function {name} failed: {type(error).__name__}: {error}. Nothing was pushed."
        ) from error
    if scores.shape != (batch.rows,):
        raise BatchError(
            f"the scoring function {name} returned shape {scores.shape} for {batch.rows} rows. "
            "Return one float per row."
        )
    return scores
