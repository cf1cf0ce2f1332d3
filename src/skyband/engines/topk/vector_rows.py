"""Rows of vectors for engines of slots: which are rejected, which some may reject, and their arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Vectors
from skyband.query.scoring.forms import COSINE, DISTANCE, DOT, TAME
from skyband.query.scoring.similar import Similar, distances, dots, squares
from skyband.tables.input import Batch
from skyband.tables.scores import Scored
from skyband.tables.vectors import Vectors as Column

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
CODES = {"cosine": COSINE, "dot": DOT, "euclidean": DISTANCE}  # of metrics, in kernels


def rejected(batch: Batch, by: Similar, d: int) -> Scored:
    """The rows that no vector of d components can be compared with, without scores."""
    scored, column = Scored(np.zeros(batch.rows)), batch.vectors(by.column, d)
    faults = column.faults | (column.norm_faults(by.column) if by.metric == "cosine" else {})
    for reason, rows in faults.items():
        scored.reject(reason, rows)
    return scored


def wild_vectors(column: Column, metric: str) -> Bools:
    """The rows with norms so large or small that some vectors may have no score for them."""
    wild: Bools = ~((column.norms <= TAME) & ((column.norms >= 1 / TAME) | (metric != "cosine")))
    return wild


def keys_of_row(points: Floats, column: Column, row: int, metric: str) -> Floats:
    """The keys of one row for many vectors."""
    vector = column.matrix[row].astype(np.float64)
    with np.errstate(all="ignore"):
        if metric == "euclidean":
            return distances(points, vector)
        key = dots(points, vector)
        return key / (column.norms[row] * np.sqrt(squares(points))) if metric == "cosine" else key


def arrays_of(batch: Batch, by: Similar, d: int, rows: Ints) -> dict[str, Any]:
    """The vectors of these rows, as engines take them."""
    if not batch.rows:
        return {"vectors": Vectors(np.empty((0, d), np.float32), np.empty(0))}
    column = batch.vectors(by.column, d)
    matrix = column.matrix.astype(np.float32) if column.matrix.dtype == np.float16 else column.matrix
    vectors = Vectors(matrix, column.norms)
    return {"vectors": vectors if len(rows) == batch.rows else vectors.only(rows)}
