"""More queries of one order than an engine has bits for."""

from __future__ import annotations

from skyband import Last, Monitor, TopK


def test_more_queries_of_one_column_of_strings_than_an_engine_takes() -> None:
    """They came together in one engine, whose marks are bits of a word."""
    monitor = Monitor({f"q{i}": TopK(1 + i % 3, by="s", window=Last(9)) for i in range(70)})
    changes = monitor.push({"s": list("bdac")}).to_pylist()
    engines = [adapter.engine for adapter in monitor._loop.state.standing()]
    assert [len(getattr(engine, "queries", ())) for engine in engines if engine is not None] == [32, 32, 6]
    for i in range(70):
        mine = [one["id"] for one in changes if one["query"] == f"q{i}" and one["diff"] > 0]
        assert mine == [[0, 1], [0, 1, 3], [0, 1, 2, 3]][i % 3]
