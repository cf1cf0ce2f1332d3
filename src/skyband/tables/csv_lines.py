"""Lines of CSV to tables: one row a line, the header given. Arrow reads a block at once; only a block in which it finds
something wrong is looked at line by line.
"""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyband.errors import BatchError
from skyband.tables.lines import BROKEN, Labels, LineParser, Malformed, joined

Bools = NDArray[np.bool_]
# Every value that Arrow reads as such a number; what else matches it finds itself, at the price of a try.
_INTEGER = r"^\s*-?([0-9]+|0[xX][0-9a-fA-F]+)\s*$"
_NUMBER = r"(?i)^\s*[+-]?(nan(\(.*\))?|inf|infinity|[0-9]*\.?[0-9]*(e[+-]?[0-9]+)?)\s*$"
_TIME = r"^\s*[0-9]{4}-[0-9]{2}-[0-9]{2}.*$"


class CsvLines(LineParser):
    """Lines of CSV below a header.

    live: types are known from few lines, so times are read as microseconds. Else as fine as the first ones are.
    """

    def __init__(self, malformed: Malformed, header: bytes, *, delimiter: str = ",", live: bool = False) -> None:
        super().__init__(malformed)
        self.delimiter, self.live = delimiter, live
        try:
            (self.names,) = csv.reader([header.decode().strip("\r\n")], delimiter=delimiter, strict=True)
        except (UnicodeDecodeError, ValueError, csv.Error) as error:
            raise BatchError(f"the first line is no header of CSV: {error}. Write the names of the columns.") from None
        twice = [name for name in self.names if self.names.count(name) > 1]
        if twice:
            raise BatchError(f"the header names {twice[0]!r} twice. Rename a column.")

    def _attempt(self, block: bytes, labels: Labels, *, careful: bool = False) -> Any:
        table = self._parsed(block, self._types(block))
        if table.num_rows != len(labels):
            raise pa.ArrowInvalid("not one row on each line")
        self.columns = table.schema
        return table

    def _types(self, block: bytes) -> dict[str, Any]:
        """The types that are known; of a pipe, also those of the first values here, however its lines are cut."""
        found = {one.name: one.type for one in self.columns or () if not pa.types.is_null(one.type)}
        if not self.live or len(found) == len(self.names):
            return found
        texts = self._parsed(block, dict.fromkeys(self.names, pa.string()))
        for name in [name for name in self.names if name not in found]:
            filled = texts[name].filter(pc.invert(_is_null(texts[name])))
            if len(filled):
                line = b'"%b"\n' % filled[0].as_py().encode().replace(b'"', b'""')
                type_ = _read(line, ["c"], ",", {}).schema.field(0).type
                found[name] = pa.timestamp("us", type_.tz) if pa.types.is_timestamp(type_) else type_
        return found

    def _parsed(self, block: bytes, types: dict[str, Any]) -> Any:
        return _read(block, self.names, self.delimiter, types)

    def _line_by_line(self, block: bytes, labels: Labels) -> Any:
        lines, known = self._split(block, labels)
        good, named = [], []
        for line, label in zip(lines, known, strict=True):
            why = self._misfit(line.decode())
            if why:
                self.malformed.add(label, why)
            else:
                good.append(line)
                named.append(label)
        if good and (self.live or self.columns is not None):
            good, named = self._of_the_types(good, named)
        return joined(self._fitting(good, named))

    def _misfit(self, line: str) -> str:
        """Why a line is no row of these columns (empty: it is one)."""
        try:
            rows = list(csv.reader([line], delimiter=self.delimiter, strict=True))
        except csv.Error as error:  # Arrow has no limit on the size of a value
            return "" if "field limit" in str(error) else f"not CSV: {error}"
        count = len(rows[0]) if rows else 0
        return "" if count == len(self.names) else f"{count} values, not {len(self.names)}"

    def _of_the_types(self, lines: list[bytes], labels: list[int | str]) -> tuple[list[bytes], list[int | str]]:
        """The lines whose values can have the types of the columns; integers become floats where a float comes."""
        block = b"\n".join(lines) + b"\n"
        try:
            texts, types = self._parsed(block, dict.fromkeys(self.names, pa.string())), self._types(block)
        except BROKEN:
            return lines, labels
        if texts.num_rows != len(lines):
            return lines, labels
        fields, fits = [], np.ones(len(lines), np.bool_)
        for name in self.names:
            type_, column = types.get(name, pa.null()), texts[name].combine_chunks()
            right = _can_be(column, type_)
            if pa.types.is_integer(type_) and not right.all():
                numbers = _can_be(column, pa.float64())
                if (numbers & ~right).any():
                    type_, right = pa.float64(), numbers
            for place in np.flatnonzero(fits & ~right).tolist():
                self.malformed.add(labels[place], f"{name} is no {type_}: {column[place].as_py()[:50]!r}")
            fits &= right
            fields.append(pa.field(name, type_))
        self.columns = pa.schema(fields)
        kept = np.flatnonzero(fits).tolist()
        return [lines[place] for place in kept], [labels[place] for place in kept]


def _read(block: bytes, names: list[str], delimiter: str, types: dict[str, Any]) -> Any:
    from pyarrow import csv as arrow

    return arrow.read_csv(
        pa.BufferReader(block),
        read_options=arrow.ReadOptions(column_names=names, block_size=len(block) + 1, use_threads=False),
        parse_options=arrow.ParseOptions(delimiter=delimiter),
        convert_options=arrow.ConvertOptions(column_types=types),
    )


def _is_null(texts: Any) -> Any:
    """Which texts stand for null."""
    from pyarrow import csv as arrow

    return pc.is_in(texts, pa.array(arrow.ConvertOptions().null_values))


def _can_be(texts: Any, type_: Any) -> Bools:
    """Which texts can be values of the type, or null."""
    from pyarrow import csv as arrow

    usual = arrow.ConvertOptions()
    if pa.types.is_integer(type_):
        right = pc.match_substring_regex(texts, _INTEGER)
    elif pa.types.is_floating(type_):
        right = pc.match_substring_regex(texts, _NUMBER)
    elif pa.types.is_boolean(type_):
        right = pc.is_in(texts, pa.array([*usual.true_values, *usual.false_values]))
    elif pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        right = pc.match_substring_regex(texts, _TIME)
    else:
        return np.ones(len(texts), np.bool_)
    found: Bools = np.asarray(pc.or_(_is_null(texts), right), np.bool_)
    return found
