"""Every example of the gallery runs and draws, with real data and without; on Spark: tests/spark/test_demo.py."""

from __future__ import annotations

import os
import runpy
import socket
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from skyband.datasets import loaders

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = {path.stem: path for path in sorted((REPOSITORY / "examples").glob("*.py"))}
ON_SPARK, SERVED = "flights", {"taxis": "--riders", "alerts": "--readers"}
BESIDE = REPOSITORY.parent / "shared" / "data"


def draw(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """As `python examples/name.py picture.png` in another folder would, but for the start of a Python."""
    monkeypatch.setattr(sys, "argv", [str(EXAMPLES[name]), "picture.png"])
    monkeypatch.chdir(folder)
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    finally:
        plt.close("all")
    said = capsys.readouterr()
    assert said.out.strip(), "it says what it found"
    assert (folder / "picture.png").read_bytes().startswith(b"\x89PNG")
    return said.err


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder of data, and no package with the flights."""
    monkeypatch.delenv("SKYBAND_DATA", raising=False)
    monkeypatch.setattr(loaders, "_packaged_flights", lambda: None)


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in (ON_SPARK, *SERVED)])
def test_an_example_runs_and_draws(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = os.environ.get("SKYBAND_DATA", str(BESIDE))
    monkeypatch.setenv("SKYBAND_DATA", data)
    generated = "is generated here" in draw(name, tmp_path, monkeypatch, capsys)
    packaged = name in ("preferences", "airlines")  # the flights come with a package
    assert generated is (name == "ddos" or (not packaged and not Path(data).is_dir()))


@pytest.mark.usefixtures("no_data")
@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in (ON_SPARK, *SERVED)])
def test_an_example_runs_without_the_real_stream(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "is generated here" in draw(name, tmp_path, monkeypatch, capsys)


def test_the_gallery_shows_every_example() -> None:
    page = (REPOSITORY / "docs" / "gallery.md").read_text()
    for name, example in EXAMPLES.items():
        assert f"examples/{example.name}" in page, f"{example.name} is not in the gallery"
        assert f"pictures/{name}.png" in page
        assert (REPOSITORY / "docs" / "pictures" / f"{name}.png").is_file()


@pytest.mark.parametrize("name", SERVED)
def test_those_that_are_served(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The server starts, takes the subscriptions, and stops."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    given = [SERVED[name], "50", "--seconds", "0.5", "--port", str(port)]
    monkeypatch.setattr(sys, "argv", [str(EXAMPLES[name]), *given])
    runpy.run_path(sys.argv[0], run_name="__main__")
    first, *addresses = capsys.readouterr().out.splitlines()
    assert first == "{'taken': 50, 'subscriptions': 50}" and len(addresses) == 3
