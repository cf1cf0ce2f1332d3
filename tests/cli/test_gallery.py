"""Every example of the gallery runs and draws its picture; the one on Spark in tests/spark/test_demo.py."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = {path.stem: path for path in sorted((REPOSITORY / "examples").glob("*.py"))}
ON_SPARK = "flights"
PACKAGED = (ON_SPARK, "preferences")  # their data comes with a package
BESIDE = REPOSITORY.parent / "shared" / "data"


def draw(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """As `python examples/name.py picture.png` in another folder would, but for the start of a Python."""
    data = os.environ.get("SKYBAND_DATA", str(BESIDE))
    if name not in PACKAGED and not Path(data).is_dir():
        pytest.skip("the real streams are not here: set SKYBAND_DATA")
    monkeypatch.setenv("SKYBAND_DATA", data)
    monkeypatch.setattr(sys, "argv", [str(EXAMPLES[name]), "picture.png"])
    monkeypatch.chdir(folder)
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    finally:
        plt.close("all")
    assert capsys.readouterr().out.strip(), "it says what it found"
    assert (folder / "picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != ON_SPARK])
def test_an_example_runs_and_draws(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    draw(name, tmp_path, monkeypatch, capsys)


def test_the_gallery_shows_every_example() -> None:
    page = (REPOSITORY / "docs" / "gallery.md").read_text()
    for name, example in EXAMPLES.items():
        assert f"examples/{example.name}" in page, f"{example.name} is not in the gallery"
        assert f"pictures/{name}.png" in page
        assert (REPOSITORY / "docs" / "pictures" / f"{name}.png").is_file()
