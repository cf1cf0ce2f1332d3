"""Instants written as text (ISO 8601): a column of strings as timestamps, and which of them are none.

Accepted, as by Arrow's cast: 2013-07-01, 2013-07-01T06, 2013-07-01T06:30, 2013-07-01 06:30:00 and up to six digits of
a fraction; behind a time of day also Z or an offset (+02:00, +0200, +02). One cast over the column; only where that
fails regular expressions find the strings at fault. No loop per row.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyband.tables.columns import as_arrow

Bools = NDArray[np.bool_]
_DAY = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_CLOCK = r"[T ]([01][0-9]|2[0-3])(:[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?)?"
_OFFSET = r"(Z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)$"
_LOCAL, _ZONED = f"{_DAY}({_CLOCK})?$", f"{_DAY}{_CLOCK}{_OFFSET}"
_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


def instants(texts: Any, type_: Any | None) -> tuple[Any, Bools]:
    """Strings as timestamps (null where there is none), and which strings are no instant.

    type_: the timestamps of earlier batches; None: the first instant decides whether all have an offset (then they are
    UTC) or none has. If there is no instant, the type is null.
    """
    for zone in (None, "UTC") if type_ is None else (type_.tz,):
        with suppress(pa.ArrowInvalid):
            if texts.null_count < len(texts):
                return texts.cast(pa.timestamp("us", zone)), np.zeros(len(texts), np.bool_)
    local, zoned = _matches(texts, _LOCAL), _matches(texts, _ZONED)
    if type_ is None:
        either = local | zoned
        if not either.any():
            return pa.nulls(len(texts)), np.asarray(texts.is_valid(), np.bool_)
        zone = "UTC" if zoned[either.argmax()] else None
    else:
        zone = type_.tz
    fits = _with_real_days(texts, local if zone is None else zoned)
    found = pc.if_else(as_arrow(fits), texts, pa.scalar(None, texts.type)).cast(pa.timestamp("us", zone))
    return found, np.asarray(texts.is_valid(), np.bool_) & ~fits


def _matches(texts: Any, pattern: str) -> Bools:
    return np.asarray(pc.match_substring_regex(texts, pattern).fill_null(False), np.bool_)


def _with_real_days(texts: Any, fits: Bools) -> Bools:
    """Without those whose day the month does not have."""
    suspects = np.flatnonzero(fits)
    dates = texts.take(as_arrow(suspects))
    year, month, day = (
        np.asarray(pc.utf8_slice_codeunits(dates, start, stop).cast(pa.int32()))
        for start, stop in ((0, 4), (5, 7), (8, 10))
    )
    leap = (month == 2) & (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    real = fits.copy()
    real[suspects] = day <= _DAYS[month] + leap
    return real
