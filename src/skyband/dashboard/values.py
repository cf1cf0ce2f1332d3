"""Values of columns as JSON can hold them. Every value has a text, whatever bytes and instants a file brings."""

from __future__ import annotations

import json
import math
from datetime import date, datetime, timedelta
from datetime import time as clock_time
from typing import Any

import pyarrow as pa


def plain(value: Any) -> Any:
    """A value as JSON can hold it: no infinities, no integers that JavaScript would round."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**53 else str(value)
    if isinstance(value, datetime | date | clock_time):
        return value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    return value.hex() if isinstance(value, bytes) else str(value)


def listed(column: Any) -> list[Any]:
    """The values of a column; those that Python cannot hold (years past 9999, unknown zones, no UTF-8) as texts."""
    try:
        return [plain(value) for value in column.to_pylist()]
    except Exception:  # pyarrow raises errors of many libraries here
        return [_shown(value) for value in column]


def _shown(value: Any) -> Any:
    try:
        return plain(value.as_py())
    except Exception:
        for type_ in (pa.string(), pa.binary(), pa.int64(), pa.int32()):
            try:
                found = value.cast(type_).as_py()
            except Exception:  # noqa: S112 (the next type)
                continue
            return found.decode(errors="replace") if isinstance(found, bytes) else str(found)
        return f"({value.type})"


def rows_of(table: Any, longest: int | None = None) -> list[list[Any]]:
    """The rows of a table; texts beyond the longest are cut."""
    columns = [listed(column) for column in table.columns]
    if longest is not None:
        columns = [[_cut(value, longest) for value in column] for column in columns]
    return [list(row) for row in zip(*columns, strict=True)]


def _cut(value: Any, longest: int) -> Any:
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False)
    return value[:longest] + " …" if isinstance(value, str) and len(value) > longest else value


def encoded(value: Any) -> bytes:
    """Compact JSON; half a character (a lone surrogate) becomes a question mark."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode(errors="replace")
