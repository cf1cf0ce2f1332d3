"""Columns that can be kept with an object (ids, groups, kept columns, inputs of pairs) and given back as they were.

Found out before anything changes. Numbers, texts, bytes and times always can, and so can lists and structs of numbers,
texts and bytes. What else there is (unions, extensions, times inside lists) is tried with the values at hand, at the
price of a copy.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skyband.errors import BatchError
from skyband.tables.columns import is_fixed


def decoded(column: Any) -> Any:
    """The column without run ends and 8-bit booleans, which Arrow can neither take from nor make."""
    if pa.types.is_run_end_encoded(column.type):
        return pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], column.type.value_type)
    if isinstance(column.type, pa.Bool8Type):
        return pa.chunked_array([chunk.storage.cast(pa.bool_()) for chunk in column.chunks], pa.bool_())
    return column


def check_kept(name: str, column: Any) -> None:
    """Raise a BatchError if the values of a column cannot be kept and given back."""
    type_ = column.type
    if is_fixed(type_) or pa.types.is_interval(type_) or _always_can(type_):
        return
    try:
        values = column.to_pylist()
        same = repr(pa.array(values, type_).to_pylist()) == repr(values)
        why = "" if same else "its values do not come back as they were"
    except Exception as error:  # of many kinds, by type and value
        why = f"{type(error).__name__}: {error}"
    if why:
        raise BatchError(
            f"column {name!r} holds {type_}, which cannot be kept with an object ({why}). Convert it to numbers, "
            "strings, times, or lists of these."
        )


@cache
def _always_can(type_: Any) -> bool:
    """Whether every value of the type is one of Python's too; times are not: Python's are fewer."""
    if pa.types.is_struct(type_):
        fields = [type_.field(place) for place in range(type_.num_fields)]
        return len({one.name for one in fields}) == len(fields) and all(_always_can(one.type) for one in fields)
    if pa.types.is_map(type_):
        return _always_can(type_.key_type) and _always_can(type_.item_type)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        return _always_can(type_.value_type)
    return any(is_kind(type_) for is_kind in _PLAIN)


_PLAIN = (
    pa.types.is_null, pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal,
    pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
)  # fmt: skip
