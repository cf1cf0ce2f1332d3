"""Readers of lines: whatever the bytes, the good lines are read, the others counted and named, and nothing crashes.

What Arrow would not survive is tried in a process of its own.
"""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from engines.streams import examples
from skyband.errors import BatchError
from skyband.tables.csv_lines import CsvLines
from skyband.tables.files import tables
from skyband.tables.json_lines import DEPTH, JsonLines
from skyband.tables.lines import BLOCK, LONGEST, LineParser, Malformed, blocks


def read(path: Path, rows: int = 1000) -> tuple[list[dict[str, Any]], Malformed]:
    malformed = Malformed()
    return [row for table in tables(path, rows, malformed) for row in table.to_pylist()], malformed


GOOD = '{"i": %d, "x": %d.5, "t": "2024-01-01T00:00:00"}'
BAD_JSON = {
    "": None,  # blank: no row, and nothing wrong
    "null": "not an object",
    "[1]": "not an object",
    "7": "not an object",
    '"text"': "not an object",
    "no JSON": "not JSON",
    '{"i": 1': "not JSON",
    '{"i": 1}}': "not JSON",
    '{"i": 1} null': "not JSON",
    '{"i": 1}{"i": 2}': "not JSON",
    '{"i": 1, "i": 2}': "twice",
    '{"i": "one"}': "i is a string, not an integer",
    '{"i": true}': "i is a boolean, not an integer",
    '{"x": {"a": 1}}': "x is an object, not a number",
    '{"x": 1e999}': "too big",
    '{"t": "tomorrow"}': "no instant",
    '{"t": "2024-02-30T00:00:00"}': "no instant",
    '{"t": "2024-01-01T00:00:00.5"}': "no instant",  # the file's times are seconds
    '{"s": "\\ud800"}': "surrogate",
    '{"s": 1, "x": 2}': "",  # a column that the first lines do not have
    '{"i": ' * 20_000 + "1" + "}" * 20_000: f"nested more than {DEPTH} deep",
    '{"i": ' + "[" * 20_000: f"nested more than {DEPTH} deep",
    '{"i": 1, "x": "\udcff"}': "not UTF-8",
}


def lines_of(texts: list[str]) -> bytes:
    return "\n".join([*texts, ""]).encode("utf-8", "surrogateescape")


def test_malformed_lines_of_json() -> None:
    """Each between good lines, behind a block that shows the types."""
    for line, why in BAD_JSON.items():
        malformed = Malformed()
        parser = JsonLines(malformed)
        parser.table(lines_of([GOOD % (0, 0), GOOD % (1, 1)]), range(1, 3))
        table = parser.table(lines_of([GOOD % (2, 2), line, GOOD % (3, 3)]), range(3, 6))
        assert [row["i"] for row in table.to_pylist() if row["i"] is not None] == [2, 3], line[:50]
        assert malformed.count == (1 if why else 0), (line[:50], str(malformed))
        assert not why or (why in str(malformed) and "line 4: " in str(malformed)), (line[:50], str(malformed))


@pytest.mark.parametrize("ending", [".jsonl", ".json.gz"])
def test_malformed_lines_in_a_file_of_several_blocks(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"f{ending}"
    many = [GOOD % (n, n) for n in range(60_000)]
    for place, line in enumerate(BAD_JSON):
        many.insert(30_000 + 1000 * place, line)
    path.write_bytes((gzip.compress if ending.endswith("gz") else bytes)(lines_of(many)))
    rows, malformed = read(path)
    assert [row["i"] for row in rows if row["i"] is not None] == list(range(60_000))
    assert malformed.count == len([why for why in BAD_JSON.values() if why])
    assert len(malformed.first) == 5 and f"and {malformed.count - 5} more" in str(malformed)
    assert malformed.first[0] == "line 31001: not an object"


BAD_CSV = {
    "": None,
    "1,2": "2 values, not 3",
    "1,2,2024-01-01T00:00:00,4": "4 values, not 3",
    'a"b,"c': "not CSV",
    '"1,2,2024-01-01T00:00:00': "not CSV",
    "one,2,2024-01-01T00:00:00": "i is no int64: 'one'",
    "99999999999999999999,2,2024-01-01T00:00:00": "invalid value",
    "1,two,2024-01-01T00:00:00": "x is no double: 'two'",
    "1,2,tomorrow": "t is no timestamp",
    "1,2,2024-02-30T00:00:00": "invalid value",
    "\udcff,2,2024-01-01T00:00:00": "not UTF-8",
    ",,": None,  # nulls
    '"1","2.5","2024-01-01T00:00:00"': None,
}


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_malformed_lines_of_csv(delimiter: str) -> None:
    good = [f"{n},{n}.5,2024-01-01T00:00:00" for n in range(4)]
    for line, why in BAD_CSV.items():
        malformed = Malformed()
        parser = CsvLines(malformed, lines_of(["i,x,t"]).replace(b",", delimiter.encode()), delimiter=delimiter)
        for start, texts in ((2, good[:2]), (4, [good[2], line, good[3]])):
            block = lines_of(texts).replace(b",", delimiter.encode())
            table = parser.table(block, range(start, start + len(texts)))
        assert [row["i"] for row in table.to_pylist() if row["x"] not in (2.0, None)][-1] == 3, line
        assert malformed.count == (1 if why else 0), (line, str(malformed))
        assert not why or (why in str(malformed) and "line 5: " in str(malformed)), str(malformed)


def test_a_file_of_csv_as_windows_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_bytes(b'\xef\xbb\xbfi,s\r\n1,"a"\r\n\r\n2,"b ""c"""\r\n3\r\n4,d')
    rows, malformed = read(path)
    assert rows == [{"i": 1, "s": "a"}, {"i": 2, "s": 'b "c"'}, {"i": 4, "s": "d"}]
    assert malformed.first == ["line 5: 1 values, not 2"]
    path.write_bytes(b"i,s\r\n")
    assert [table.column_names for table in tables(path)] == [["i", "s"]]


def test_types_of_csv_are_those_of_the_first_lines() -> None:
    malformed = Malformed()
    parser = CsvLines(malformed, b"i,x,t,b")
    assert parser.table(b"1,,2024-01-01T00:00:00,true\n", range(2, 3)).num_rows == 1
    block = b"2,1.5,2024-01-01T00:00:01,false\nthree,2,,\n4,5,soon,\n5,,2024-02-30,\n6,,,maybe\n7.5,,,\n"
    table = parser.table(block, range(3, 9))
    assert table.column("i").to_pylist() == [2.0, 7.5]  # integers became floats
    assert table.column("x").to_pylist() == [1.5, None]  # a type was not known yet
    assert malformed.count == 4
    assert {text.partition(":")[0] for text in malformed.first} == {"line 4", "line 5", "line 6", "line 7"}
    with pytest.raises(BatchError, match="twice"):
        CsvLines(malformed, b"a,b,a")


def test_lines_that_are_too_long(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    long = json.dumps({"i": 1, "x": 0, "s": "a" * (3 * LONGEST)})
    end = json.dumps({"i": 4, "x": 0, "s": "b" * (2 * LONGEST)})
    path.write_text("\n".join(['{"i": 0, "x": 1}', long, "", '{"i": 2, "x": 2}', '{"i": 3, "x": 3}', end]))
    rows, malformed = read(path)
    assert [row["i"] for row in rows] == [0, 2, 3]
    assert malformed.first == [f"line {n}: longer than {LONGEST:,} bytes" for n in (2, 6)]


@examples(100)
@given(st.lists(st.integers(0, 60), max_size=30), st.integers(1, 50), st.booleans())
def test_blocks_are_whole_lines_with_their_numbers(sizes: list[int], piece: int, ended: bool) -> None:
    lines = [b"%d" % n + b"x" * size for n, size in enumerate(sizes)]
    data = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    places = iter(range(0, len(data) + piece, piece))
    found: dict[int, bytes] = {}
    for block, numbers in blocks(lambda _: data[(start := next(places)) : start + piece], Malformed()):
        assert block.endswith(b"\n")
        found |= dict(zip(numbers, block.split(b"\n"), strict=False))
    assert found == {n: line for n, line in enumerate(lines, 1) if line or ended or n < len(lines)}


def parsers() -> dict[str, Callable[[Malformed], LineParser]]:
    return {
        "JSON file": JsonLines,
        "JSON pipe": lambda malformed: JsonLines(malformed, live=True),
        "CSV file": lambda malformed: CsvLines(malformed, b"i,x,t"),
        "CSV pipe": lambda malformed: CsvLines(malformed, b"i,x,t", live=True),
    }


@pytest.mark.parametrize("kind", parsers())
def test_good_lines_survive_any_others(kind: str) -> None:
    """600 blocks of good lines among random bytes, cut lines, changed bytes: every line is a row or counted."""
    rng = random.Random(kind)  # noqa: S311
    tried = 0
    for _ in range(600):
        malformed = Malformed()
        parser = parsers()[kind](malformed)
        read = 0
        for _ in range(2):
            lines = [line_of(kind, rng) for _ in range(rng.randrange(1, 9))]
            lines[0] = lines[0] if read else good_line(kind, rng)
            table = parser.table(b"\n".join(lines) + b"\n", range(1, len(lines) + 1))
            read += 0 if table is None else table.num_rows
            tried += len([line for line in lines if line.strip()])
            if table is not None:
                table.validate(full=True)
                table.to_pylist()
        assert read + malformed.count == tried, kind
        tried = 0


def good_line(kind: str, rng: random.Random) -> bytes:
    row = {"i": rng.randrange(9), "x": rng.random(), "t": f"2024-01-01T00:00:0{rng.randrange(9)}"}
    return (json.dumps(row) if kind.startswith("JSON") else ",".join(map(str, row.values()))).encode()


def line_of(kind: str, rng: random.Random) -> bytes:
    line = good_line(kind, rng)
    match rng.randrange(8):
        case 0:
            return rng.randbytes(rng.randrange(40)).replace(b"\n", b" ")
        case 1:
            return line[: rng.randrange(len(line))]
        case 2:
            place = rng.randrange(len(line))
            return (line[:place] + rng.randbytes(1) + line[place + 1 :]).replace(b"\n", b" ")
        case 3:
            return rng.choice([b"null", b"[]", b"{}", b"{", b'{"i":' * 9999, b'"' * 3, b",", b'a"b,"c', b"\xff\xfe"])
        case 4:
            return bytes(rng.choice(b'{}[]",:\\ntrue0.e-+ ') for _ in range(rng.randrange(30))).replace(b"\n", b"")
    return line


def test_nothing_ends_the_process(tmp_path: Path) -> None:
    """A million lines of null, brackets without end, and the same behind a good line: Arrow alone dies of these."""
    deep = b'{"i": ' * 20_000 + b"1" + b"}" * 20_000
    files = {
        "null": b"null\n" * 1_000_000,
        "deep": deep + b"\n",
        "lists": b'{"i": ' + b"[" * 100_000 + b"\n",
        "brackets": b"[" * (BLOCK // 2) + b"\n",
        "late": b'{"i": 1}\n' + b"null\n" * 300_000 + deep + b'\n{"i": 2}\n',
        "zeros": bytes(100_000),
        "strings": b'{"i": 1, "s": "' + b"{[" * 10_000 + b'"}\n' + b'{"i": 2, "s": "\\"' + b"[" * 10_000 + b'"}\n',
    }
    for name, data in files.items():
        (tmp_path / f"{name}.jsonl").write_bytes(data)
    program = """
import sys
from pathlib import Path
from skyband.errors import BatchError
from skyband.tables.files import tables
from skyband.tables.lines import Malformed
for path in sys.argv[1:]:
    malformed = Malformed()
    try:
        rows = sum(table.num_rows for table in tables(Path(path), malformed=malformed))
    except BatchError as error:
        rows = str(error).partition(".jsonl ")[2][:33]
    print(Path(path).stem, rows, malformed.count)
"""
    command = [sys.executable, "-c", program, *(str(tmp_path / f"{name}.jsonl") for name in files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    none = "does not begin with a JSON object"
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"null {none} 1000000",
        f"deep {none} 1",
        f"lists {none} 1",
        f"brackets {none} 1",
        "late 2 300001",
        f"zeros {none} 1",
        "strings 2 0",
    ]


def test_a_monitor_over_a_file_with_bad_lines(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text("\n".join([GOOD % (0, 5), "oops", GOOD % (1, 9), '{"i": 2, "x": null}', GOOD % (3, 7)]))
    monitor = sb.Monitor(sb.TopK(2, "x", sb.Last(9)), id="i", keep="*")
    malformed = Malformed()
    for table in tables(path, 2, malformed):
        monitor.push(table)
    assert monitor.answer().column("id").to_pylist() == [1, 3]
    assert (malformed.count, monitor.stats()["rejected"]) == (1, {"x is null": 1})
    assert pa.types.is_timestamp(monitor.answer().schema.field("t").type)
