"""Write docs/licences.md: the licence of every package that skyband and its extras install (`make licences`)."""

from __future__ import annotations

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

PAGE = Path(__file__).parent / "licences.md"
EXTRAS = ("spark", "dashboard", "kafka", "plot", "demo")
_HEAD = """# Licences

skyband is Apache-2.0. The packages that `pip install skyband` or an extra installs (with what they need in turn),
as their metadata say. Written by `make licences`.

| package | licence | for |
|---|---|---|
"""
_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)(?:\[([^\]]*)\])?[^;]*(?:;(.*))?$")


def required(package: Distribution, extra: str = "") -> list[str]:
    """The names of what a package needs, of its extra only if that is given."""
    found = []
    for line in package.requires or ():
        name, _, condition = _REQUIREMENT.match(line).groups()  # type: ignore[union-attr]
        wanted = re.search(r"extra\s*==\s*['\"]([^'\"]+)", condition or "")
        if (wanted.group(1) if wanted else "") == extra and "win32" not in (condition or ""):
            found.append(name)
    return found


def licence(package: Distribution) -> str:
    """The licence as the metadata of a package say: an expression, a classifier, or the first line of a text."""
    meta = package.metadata
    classifiers = [line.split(" :: ")[-1] for line in meta.get_all("Classifier") or [] if line.startswith("License ::")]
    text = (meta.get("License") or "").strip().splitlines()
    return meta.get("License-Expression") or ", ".join(classifiers) or (text[0] if text else "not stated")


def collect() -> dict[str, tuple[str, str]]:
    """By package: its licence, and the extra that first needs it."""
    found: dict[str, tuple[str, str]] = {}
    for extra in ("", *EXTRAS):
        todo = required(distribution("skyband"), extra)
        while todo:
            name = re.sub(r"[-_.]+", "-", todo.pop()).lower()
            if name in found or name == "skyband":
                continue
            try:
                package = distribution(name)
            except PackageNotFoundError:  # for another platform or version of Python
                continue
            found[name] = (licence(package), f"`skyband[{extra}]`" if extra else "skyband")
            todo += required(package)
    return found


def written() -> str:
    rows = sorted(collect().items(), key=lambda item: (item[1][1] != "skyband", item[1][1], item[0]))
    return _HEAD + "".join(f"| {name} | {said} | {used} |\n" for name, (said, used) in rows)


if __name__ == "__main__":
    PAGE.write_text(written())
