"""Hooks of `mkdocs.yml`: add figures of benchmarks and SECURITY.md to the site, its pages as markdown, and llms.txt.

`llms.txt` (llmstxt.org) lists the pages for programs that read: each link goes to the page's markdown, which stands
beside its HTML under the same name, so that relative links between pages hold there too.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "benchmarks" / "figures"
POLICY = "security-policy.md"  # SECURITY.md of the root; docs has a security.md, and some disks know one case only


def on_files(files: Any, config: Any) -> Any:
    for path in sorted(FIGURES.iterdir()):
        files.append(File.generated(config, f"figures/{path.name}", abs_src_path=str(path)))
    text = (ROOT / "SECURITY.md").read_text().replace("](docs/", "](")
    files.append(File.generated(config, POLICY, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    markdown = re.sub(r"\]\(((?:\.\./)*)\.\./benchmarks/figures/", r"](\1figures/", markdown)
    return markdown.replace("](../SECURITY.md)", f"]({POLICY})")


def on_env(env: Any, config: Any, files: Any) -> Any:
    """Write the markdown of every page, and the list of them, once all pages are read."""
    site = Path(config.site_dir)
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", "", "Install: `pip install skyband`", ""]
    for heading, pages in _sections(config.nav):
        lines += [f"## {heading}", ""]
        lines += [f"- [{title}]({path}): {_first_sentence(files.get_file_from_path(path))}" for title, path in pages]
        lines.append("")
    site.mkdir(parents=True, exist_ok=True)
    (site / "llms.txt").write_text("\n".join(lines))
    for file in files.documentation_pages():
        target = site / file.src_uri
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(file.page.markdown)
    return env


def _sections(nav: list[Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Pages under the headings of the navigation; those without one come first."""
    alone, sections = [], []
    for entry in nav:
        ((title, inside),) = entry.items()
        if isinstance(inside, str):
            alone.append((title, inside))
        else:
            sections.append((title, list(_pages(inside))))
    return [("Start", alone), *sections]


def _pages(entries: list[Any]) -> Any:
    for entry in entries:
        ((title, inside),) = entry.items()
        if isinstance(inside, str):
            yield title, inside
        else:
            yield from _pages(inside)


def _first_sentence(file: Any) -> str:
    """The first sentence of a page below its title, without markup."""
    paragraphs = re.split(r"\n{2,}", file.content_string)[1:]
    text = next((part for part in paragraphs if re.match(r"[\w*]|`(?!``)|\[", part)), "")
    text = re.sub(r"^\*\*Idea\.?\*\*( \([^)]*\)\.)?", "", text)  # how pages of algorithms begin
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(text.split())).replace("**", "")
    return re.split(r"(?<=[.?!])\s", text.strip(), maxsplit=1)[0].rstrip(":")
