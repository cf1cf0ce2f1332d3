"""Checks of columns before anything changes: that Arrow finds no damage in them, and that their values can be kept.

Arrow validates offsets, UTF-8 and dictionaries: one pass over strings, nothing for numbers but the size of buffers.

Values of ids, groups, kept columns and inputs of pairs are kept with objects and given back as they were. Numbers,
texts, bytes and times always can be, and so can lists and structs of numbers, texts and bytes. What else there is
(unions, extensions, times inside lists) is tried with the values at hand, at the price of a copy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.errors import BatchError


def validate(column: Any) -> None:
    """Raise Arrow's exception if the column is damaged."""
    type_ = column.type.id
    if type_ in NUMBERS:
        column.validate()
    elif type_ not in _OFFSETS or len(column) < 1000:
        column.validate(full=True)
    else:
        column.validate()
        for chunk in column.chunks:
            if not _is_ascii(chunk, _OFFSETS[type_]):
                chunk.validate(full=True)


def _is_ascii(texts: Any, offsets: str) -> bool:
    """Whether an array of strings, with large enough buffers, is sound and ASCII: faster than a full validation."""
    _, ends, data = texts.buffers()
    if not len(texts) or ends is None or data is None:
        return False
    places = np.frombuffer(ends, offsets, len(texts) + 1, texts.offset * np.dtype(offsets).itemsize)
    if places[0] < 0 or places[-1] > data.size or (places[1:] < places[:-1]).any():
        return False
    return bool(np.frombuffer(data, np.uint8)[places[0] : places[-1]].max(initial=0) < 128)


def from_values(values: Any, **options: Any) -> Any:
    """Values of Python's or NumPy's as an Arrow array; Arrow itself ends the process where they nest too deeply."""
    flat = values.dtype.kind != "O" if isinstance(values, np.ndarray) else not isinstance(values, Collection)
    if not flat and type(next(iter(values), None)) not in _DECISIVE and not set(map(type, values)) <= _FLAT:
        _check_depth(values)
    return pa.array(values, **options)


def _check_depth(values: Any) -> None:
    level = [values]
    for _ in range(DEPTH):
        inside = (value for one in level for value in (one.values() if isinstance(one, Mapping) else one))
        level = list({id(value): value for value in inside if isinstance(value, _NESTED)}.values())
        if not level:
            return
    raise BatchError(f"a column holds values that nest more than {DEPTH} deep. Nothing was pushed.")


def decoded(column: Any) -> Any:
    """The column without run ends and 8-bit booleans, which Arrow can neither take from nor make."""
    type_ = column.type
    if type_.id not in _ENCODED:
        return column
    if pa.types.is_run_end_encoded(type_):
        return pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], type_.value_type)
    if isinstance(type_, pa.Bool8Type):
        return pa.chunked_array([chunk.storage.cast(pa.bool_()) for chunk in column.chunks], pa.bool_())
    return column


def check_kept(name: str, column: Any) -> None:
    """Raise a BatchError if the values of a column cannot be kept and given back."""
    type_ = column.type
    if type_.id in _ALWAYS or _always_can(type_):
        return
    try:
        values = column.to_pylist()
        same = repr(pa.array(values, type_).to_pylist()) == repr(values)
        stored = pa.ipc.read_schema(pa.schema([(name, type_)]).serialize()).field(0).type == type_
        why = "" if same and stored else "its values do not come back as they were"
    except Exception as error:  # of many kinds, by type and value
        why = f"{type(error).__name__}: {error}"
    if why:
        raise BatchError(
            f"column {name!r} holds {type_}, which cannot be kept with an object ({why}). Convert it to numbers, "
            "strings, times, or lists of these."
        )


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


DEPTH = 64  # of lists and structs
_DECISIVE = frozenset({float, str, bool, bytes})  # where a column begins so, Arrow opens no list that comes later
_FLAT = _DECISIVE | {int, type(None), np.float64, np.int64}
_NESTED = (list, tuple, Mapping, Set, np.ndarray)
NUMBERS = frozenset(
    type_.id
    for type_ in (
        pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16(),
        pa.float32(), pa.float64(), pa.bool_(), pa.date32(), pa.date64(), pa.time32("s"), pa.time64("us"),
        pa.timestamp("us"), pa.duration("us"),
    )
)  # fmt: skip
_OFFSETS = {pa.string().id: "i4", pa.large_string().id: "i8"}
_ALWAYS = NUMBERS | {pa.string().id, pa.large_string().id, pa.binary().id, pa.month_day_nano_interval().id}
_ENCODED = {pa.run_end_encoded(pa.int32(), pa.int8()).id, pa.bool8().id}
_PLAIN = (
    pa.types.is_null, pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal,
    pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
)  # fmt: skip
