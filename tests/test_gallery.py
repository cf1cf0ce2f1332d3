"""Every example of the gallery runs as a user would run it, and draws its picture."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark.quick import SETTINGS

REPOSITORY = Path(__file__).parents[1]
EXAMPLES = sorted((REPOSITORY / "examples").glob("*.py"))
PACKAGED = ("flights", "preferences")  # their data comes with a package
BESIDE = REPOSITORY.parent / "shared" / "data"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_draws(example: Path, tmp_path: Path) -> None:
    data = os.environ.get("SKYBAND_DATA", str(BESIDE))
    if example.stem not in PACKAGED and not Path(data).is_dir():
        pytest.skip("the real streams are not here: set SKYBAND_DATA")
    picture = tmp_path / "picture.png"
    run = subprocess.run(
        [sys.executable, str(example), str(picture)],
        cwd=tmp_path,
        env={**os.environ, "SKYBAND_DATA": data, "JDK_JAVA_OPTIONS": SETTINGS["spark.driver.extraJavaOptions"]},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert run.stdout.strip(), "it says what it found"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_gallery_shows_every_example() -> None:
    page = (REPOSITORY / "docs" / "gallery.md").read_text()
    for example in EXAMPLES:
        assert f"examples/{example.name}" in page, f"{example.name} is not in the gallery"
        assert f"pictures/{example.stem}.png" in page
        assert (REPOSITORY / "docs" / "pictures" / f"{example.stem}.png").is_file()
