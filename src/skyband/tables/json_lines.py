"""Lines of JSON to tables: one object a line, read by Arrow after a look at the bytes that Arrow would not survive.

Arrow ends the process where a block begins with a lone null, and where brackets nest too deeply for its stack. So each
line must begin with a brace and nest at most `DEPTH` deep. For flat objects that is a few counts of bytes over the
block; only where Arrow refuses a block are its lines looked at one by one.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyband.tables.columns import as_arrow
from skyband.tables.iso import instants
from skyband.tables.lines import NEWLINE, Labels, LineParser, Malformed, bytes_of, is_utf8, joined

DEPTH = 64
Bools = NDArray[np.bool_]
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"')
_WORDS = {bool: "a boolean", int: "an integer", float: "a number", str: "a string", list: "a list", dict: "an object"}


class JsonLines(LineParser):
    """Lines of JSON.

    live: types are known from few lines, so times (strings such as 2013-07-01T06:30:00) are read as microseconds. Else
    they are seconds, as Arrow reads them.
    """

    def __init__(self, malformed: Malformed, *, live: bool = False) -> None:
        super().__init__(malformed)
        self.live = live

    def _is_safe(self, block: bytes, lines: int) -> bool:
        """Whether Arrow can be given the block: every line begins with a brace, none nests too deeply, all is UTF-8."""
        data = bytes_of(block)
        ends = np.flatnonzero(data == NEWLINE)
        begins = np.append(0, ends[:-1] + 1)
        if len(ends) != lines or (data[begins] != _BRACE).any() or not is_utf8(block):
            return False
        opening = data == _BRACE
        if _BRACKET in block:
            opening |= data == _BRACKET
        if np.count_nonzero(opening) - lines < DEPTH:
            return True
        some = np.searchsorted(ends, np.flatnonzero(opening)[:: DEPTH // 2])  # their lines: a deep one has two in a row
        suspects = np.unique(some[1:][np.diff(some) == 0]).tolist()
        return not any(_too_deep(block[begins[line] : ends[line]]) for line in suspects)

    def _attempt(self, block: bytes, labels: Labels, *, careful: bool = False) -> Any:
        rows = len(labels)
        names = None if self.columns is None else self.columns.names
        types = {} if self.columns is None else {one.name: one.type for one in self.columns if _is_known(one.type)}
        as_texts = self.live or careful
        texts = {name: pa.string() for name, type_ in types.items() if as_texts and pa.types.is_timestamp(type_)}
        infer = names is None or len(types) < len(names)
        table = _parsed(block, types | texts, infer=infer)
        if table.num_rows != rows:
            raise pa.ArrowInvalid("not one object on each line")
        if names is None:  # of a pipe those of the first line, however its lines are cut
            names = _names(block) if self.live else table.column_names
        if not names:
            raise pa.ArrowInvalid("no columns")
        fresh = [one for one in table.schema if one.name in names and one.name not in types]
        times = {one.name: pa.string() for one in fresh if self.live and pa.types.is_timestamp(one.type)}
        if times:  # as strings: what Arrow takes for times are seconds
            table = _parsed(block, types | texts | times, infer=infer)
        bad, found = np.zeros(rows, np.bool_), {}
        for name in names:
            type_ = types.get(name)
            column = table[name] if name in table.column_names else pa.nulls(rows, type_ or pa.null())
            if name in texts or (self.live and type_ is None and _holds_times(column)):
                column, wrong = _instants(column, type_)
                bad |= wrong
            found[name] = column if type_ is None or column.type == type_ else column.cast(type_)
        table = pa.table(found)
        self.columns = table.schema
        return self._without(table, bad, labels)

    def _without(self, table: Any, bad: Bools, labels: Labels) -> Any:
        """Without the rows with a time that is no instant."""
        if not bad.any():
            return table
        for place in np.flatnonzero(bad).tolist():
            self.malformed.add(labels[place], "a time is no instant")
        return table.filter(as_arrow(~bad)) if not bad.all() else None

    def _line_by_line(self, block: bytes, labels: Labels) -> Any:
        lines, known = self._split(block, labels)
        good, named, kinds = [], [], self._kinds()
        for line, label in zip(lines, known, strict=True):
            try:
                why = _too_deep(line) or self._misfit(json.loads(line.decode()), kinds)
            except (ValueError, RecursionError) as error:
                why = f"not JSON: {error}"
            if why:
                self.malformed.add(label, why)
            else:
                good.append(line)
                named.append(label)
        if self.columns is not None:
            wider = [kinds.get(one.name) is float and pa.types.is_integer(one.type) for one in self.columns]
            fields = zip(self.columns, wider, strict=True)
            self.columns = pa.schema([one.with_type(pa.float64()) if more else one for one, more in fields])
        return joined(self._fitting(good, named))

    def _kinds(self) -> dict[str, type]:
        """The types of Python that the values of the columns have, where they are known."""
        kinds: dict[str, type] = {}
        for one in self.columns or ():
            for is_kind, kind in _KINDS:
                if is_kind(one.type):
                    kinds[one.name] = kind
        return kinds

    def _misfit(self, row: Any, kinds: dict[str, type]) -> str:
        """Why the row does not fit the columns (empty: it does); types that were not known yet become so."""
        if not isinstance(row, dict):
            return "not an object"
        fresh: dict[str, type] = {}
        for name, value in row.items():
            kind = type(value)
            if value is None or (self.columns is not None and name not in self.columns.names):
                continue
            known = kinds.get(name, kind)
            if known is int and kind is float:
                known = float
            if kind is not known and not (kind is int and known is float):
                return f"{name} is {_WORDS[kind]}, not {_WORDS[known]}"
            fresh[name] = known
        kinds |= fresh
        return ""


_KINDS = (
    (pa.types.is_boolean, bool),
    (pa.types.is_integer, int),
    (pa.types.is_floating, float),
    (pa.types.is_string, str),
    (pa.types.is_timestamp, str),
    (pa.types.is_list, list),
    (pa.types.is_struct, dict),
)


_BRACE, _BRACKET = ord("{"), ord("[")


def _too_deep(line: bytes) -> str:
    """Why a line nests too deeply (empty: it does not)."""
    if line.count(b"{") + line.count(b"[") <= DEPTH:
        return ""
    depth = np.cumsum(_STEPS[bytes_of(_STRINGS.sub(b"", line))])
    return f"nested more than {DEPTH} deep" if depth.max(initial=0) > DEPTH else ""


_STEPS = np.zeros(256, np.int64)
_STEPS[[ord("{"), ord("[")]] = 1
_STEPS[[ord("}"), ord("]")]] = -1


def _parsed(block: bytes, types: dict[str, Any], *, infer: bool) -> Any:
    from pyarrow import json as arrow

    parse = arrow.ParseOptions(
        explicit_schema=pa.schema(list(types.items())), unexpected_field_behavior="infer" if infer else "ignore"
    )
    read = arrow.ReadOptions(block_size=len(block) + 1, use_threads=False)
    return arrow.read_json(pa.BufferReader(block), read_options=read, parse_options=parse)


def _names(block: bytes) -> list[str]:
    """The names of the first line's values."""
    try:
        return list(json.loads(block.partition(b"\n")[0].decode()))
    except (ValueError, RecursionError) as error:
        raise pa.ArrowInvalid(str(error)) from None


def _is_known(type_: Any) -> bool:
    """Whether values have shown the type, not only nulls and empty lists."""
    return "null" not in str(type_)


def _holds_times(column: Any) -> bool:
    """Whether the first texts of a column are times."""
    if not pa.types.is_string(column.type):
        return False
    known = [text for text in column.slice(0, 100).to_pylist() if text is not None]
    return bool(known) and all(_TIME.match(text) for text in known)


def _instants(column: Any, type_: Any | None) -> tuple[Any, Bools]:
    """Strings as instants, and which are none, or too fine for the type (None: it is not known)."""
    found, bad = instants(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column, type_)
    if type_ is not None and type_.unit == "s":
        fine = np.asarray(found.cast(pa.int64()).fill_null(0)) % 10**6 != 0
        found, bad = pc.if_else(as_arrow(~fine), found, pa.scalar(None, found.type)), bad | fine
    return found, bad
