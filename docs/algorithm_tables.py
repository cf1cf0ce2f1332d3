"""Write the tables of algorithms into README.md and docs/guides/choosing.md: `make tables`.

They stand between the markers <!-- algorithms --> and <!-- /algorithms -->, and come from `skyband.query.algorithms`.
"""

from __future__ import annotations

import re
from pathlib import Path

from skyband.query.algorithms import table

ROOT = Path(__file__).parents[1]
PAGES = {ROOT / "README.md": "docs/engines/", ROOT / "docs" / "guides" / "choosing.md": "../engines/"}
_MARKED = re.compile(r"(<!-- algorithms -->\n).*?(\n<!-- /algorithms -->)", re.DOTALL)


def written(page: Path) -> str:
    """The page with the table of today."""
    text, found = _MARKED.subn(lambda marks: f"{marks[1]}{table(pages=PAGES[page])}{marks[2]}", page.read_text())
    assert found == 1, f"{page} has {found} tables of algorithms, not one"
    return text


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(written(page))
