"""Hooks of `mkdocs.yml`: add the figures of benchmarks, which pages link to but which are outside docs/."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

FIGURES = Path(__file__).parents[1] / "benchmarks" / "figures"


def on_files(files: Any, config: Any) -> Any:
    for path in sorted(FIGURES.iterdir()):
        files.append(File.generated(config, f"figures/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    return markdown.replace("](../benchmarks/figures/", "](figures/")
