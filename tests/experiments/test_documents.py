"""Numbers of documents: from stored rows by a rule, or refused."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import documents, store
from benchmarks.claims.claim import claims, verdict_of
from benchmarks.claims.values import Finding, Runs, Values, said
from benchmarks.experiment import load

ROW = store.Row("small", "c", 0, "A", "f", "w", {"k": 1}, 0, [2.0, 4.0, 6.0], True, {"rows": [2, 2, 2]}, commit="abc")
MARKED = "It took <!-- measured: ratio small; c; A; B -->{}<!-- / --> times as long."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fast = replace(ROW, contestant="B", seconds=[1.0, 1.0, 2.0])
    more = [replace(one, number=1, parameters={"k": 9}, seconds=[3 * s for s in one.seconds]) for one in (ROW, fast)]
    with store.writing("small", tmp_path, [ROW, fast, more[0], replace(more[1], seconds=[1.0, 1.0, 1.0])]):
        pass
    return tmp_path


def test_documents_and_stored_rows_agree() -> None:
    assert list(documents.faults()) == []


def test_a_number_is_what_the_rows_give(folder: Path) -> None:
    assert documents.written(MARKED.format("1.1"), folder) == MARKED.format("3.0 to 12")
    assert documents.written("Nothing measured: 7 %.", folder) == "Nothing measured: 7 %."


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("ratio small; c; A; C", "C: 0 rows"),
        ("ratio small; other; A; B", "A: 0 rows"),
        ("ratio large; c; A; B", "no stored rows of large"),
        ("guess small", "no rule 'guess'"),
        ("ratio small", "missing"),
    ],
)
def test_a_number_that_no_row_has_is_an_error(folder: Path, rule: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        documents.written(f"<!-- measured: {rule} -->3<!-- / -->", folder)


@pytest.mark.parametrize(
    "text",
    [
        "It took 3 times as long.",
        "Some 40 ns each.",
        "0.42 of one argsort",
        "within 10 %",
        "1,039 µs",
        "14 s",
        "98 ×",
        "49 kB",
        "300,000 rows a second",
        "120 microseconds",
        "5x faster",
        "It is twice as fast.",
        "twelve times faster",
    ],
)
def test_a_measured_number_without_a_rule_is_found(text: str) -> None:
    assert len(documents.unmarked(text)) == 1
    assert not documents.unmarked(text, [text])
    assert not documents.unmarked(f"`{text}`")
    assert not documents.unmarked(f"<!-- measured: run x -->{text}<!-- / -->")


@pytest.mark.parametrize(
    "text", ["gamma = 0.2", "section 4.1", "Lemmas 4.6 and 4.9", "40 bytes", "n = 10^5", "1.5·sigma", "24 hours"]
)
def test_parameters_and_citations_are_no_measurements(text: str) -> None:
    assert not documents.unmarked(text)


def test_rows_that_are_wrong_or_quick_are_faults(folder: Path) -> None:
    with store.writing("bad", folder, [replace(ROW, experiment="bad", right=False, quick=True)]):
        pass
    found = list(documents.faults(folder))
    assert "bad: A in c was wrong" in found
    assert "bad: stored rows of a quick run" in found
    assert any(one.startswith("README.md: measured: ") for one in found)  # its experiment has no rows here


def test_rows_that_are_not_what_their_experiment_says_are_outdated() -> None:
    rows = store.read("throughput")
    assert documents.outdated(rows) == []
    more, fewer = replace(rows[0], parameters=rows[0].parameters | {"rows": 7}), replace(rows[0], seconds=[1.0])
    for row in (more, fewer, replace(rows[0], contestant="another"), replace(rows[0], call="another")):
        assert documents.outdated([*rows, row]) == [rows[0].cell]
    assert documents.outdated([replace(rows[0], cell="gone"), *rows]) == ["gone"]
    assert documents.outdated([replace(rows[0], experiment="gpu", cell="gone")]) == []


def test_a_claim_computes_its_verdict(folder: Path) -> None:
    found, claim = claims()
    (folder / "throughput.jsonl").write_text((folder / "small.jsonl").read_text())

    @claim("A is slower", "throughput", partly="only there", holds="always")
    def _(runs: Runs) -> Finding:
        slower = runs["A"] / runs["B"]
        return f"{slower:list}", slower > 5

    run = f"`throughput`: abc+, load 0, 3 repeats, 2 of {len(load('throughput').cells)} cells"
    assert found[0].line(folder) == ("A is slower", "3.0, 12", "**partly (1 of 2)**: only there", run)
    assert [verdict_of(truths) for truths in ([True], [False])] == ["holds", "does not hold"]


def test_a_claim_waits_for_cells_of_its_experiment_only(folder: Path) -> None:
    found, claim = claims()
    experiment = "pripuzic2015-fig12"  # has no rows here

    def never(runs: Runs) -> Finding:
        raise AssertionError

    claim("to come", experiment, "distinct", k=9)(never)
    claim("no such cell", experiment, "distincts")(never)
    claim("no such k", experiment, "distinct", k=2)(never)
    claim("the cell as a parameter", experiment, cell="distinct")(never)
    assert found[0].line(folder)[2] == "no stored run"
    for one in found[1:]:
        with pytest.raises(ValueError, match="has no cell"):
            one.line(folder)


def test_values_divide_cell_by_cell() -> None:
    values = Values({(("k", 1), ("n", 5)): [1.0], (("k", 9), ("n", 5)): [6.0]})
    assert values.growth("k").medians == [6]
    assert (values / values).medians == [1, 1]
    assert f"{values * 1000}" == "1,000 to 6,000"
    with pytest.raises(ValueError, match="cells differ"):
        values / values.at(k=1)
    assert [said(value) for value in (0.0042, 0.996, 9.94, 9.96, 99.6)] == ["0.0042", "1.0", "9.9", "10", "100"]
