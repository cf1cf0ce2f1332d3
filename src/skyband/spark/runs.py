"""Columns of changes as runs of equal values, while they cross sockets: net changes repeat all but ids and scores.

A run is a value and where it ends. Of very many net changes less than half of the bytes are left, and to find the runs
takes less than to copy the column once.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skyband.tables.columns import plain

_FEW = 1 << 12  # rows: fewer are as they are
_PROBE, _EACH = 1 << 10, 4  # a column whose first rows are runs of so many values on average


def with_runs(table: pa.Table) -> pa.Table:
    """The table with runs in the place of columns that repeat their values."""
    if table.num_rows < _FEW:
        return table
    return pa.Table.from_arrays([_runs(column) for column in table.columns], names=table.column_names)


def without_runs(column: Any) -> Any:
    """The column as one array."""
    if pa.types.is_run_end_encoded(column.type):
        return pc.run_end_decode(column.chunk(0) if column.num_chunks == 1 else column.combine_chunks())
    return plain(column)


def _runs(column: Any) -> Any:
    if column.num_chunks != 1:
        return column
    values = column.chunk(0)
    is_word = pa.types.is_dictionary(values.type) and pa.types.is_string(values.type.value_type)
    if not (is_word or pa.types.is_primitive(values.type)):
        return column
    codes = values.indices if is_word else values
    if _EACH * len(pc.run_end_encode(codes.slice(0, _PROBE)).values) > _PROBE:
        return column
    found = pc.run_end_encode(codes)
    if _EACH * len(found.values) > len(codes):
        return column
    return pa.RunEndEncodedArray.from_arrays(found.run_ends, values.dictionary.take(found.values)) if is_word else found
