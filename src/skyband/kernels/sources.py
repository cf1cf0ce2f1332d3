"""Hashes of the source that a kernel is compiled from: its module and all of skyband that this imports.

Compiled code is used only where this hash is the one that it was made with. (Numba's own cache looks at the kernel's
own file only.) Costs a millisecond for some ten files, once in a process.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import re
import sys
from importlib.util import find_spec
from typing import Any

PACKAGE = __name__.partition(".")[0]
#: Imports of a module as the house writes them: absolute, and at the beginning of a line.
_IMPORT = re.compile(rf"^(?:from ({PACKAGE}[\w.]*) import (\([^)]*\)|.*)|import ({PACKAGE}[\w.]*))", re.MULTILINE)


@functools.cache
def source_of(module: str) -> bytes | None:
    """The source of a module, from where it was imported: a folder or an archive; None if there is none."""
    try:
        spec: Any = getattr(sys.modules.get(module), "__spec__", None) or find_spec(module)
        return bytes(spec.loader.get_data(spec.origin))
    except (AttributeError, ImportError, OSError, ValueError):
        return None


@functools.cache
def imported_by(module: str) -> tuple[str, ...]:
    """The modules of skyband that a module imports; of a package only its own file, and the modules that are named."""
    found = []
    for source, names, plain in _IMPORT.findall((source_of(module) or b"").decode()):
        found.append(source or plain)
        if source and hasattr(importlib.import_module(source), "__path__"):
            words = [re.split(r"\s+as\s+", word.strip())[0] for word in re.sub(r"[()]|#.*", "", names).split(",")]
            found += [f"{source}.{word}" for word in words if word and source_of(f"{source}.{word}") is not None]
    return tuple(found)


@functools.cache
def stamp(module: str) -> str | None:
    """The hash for the kernels of a module; None where a source cannot be read."""
    seen, left, whole = set(), [module], hashlib.sha256()
    while left:
        one = left.pop()
        if one not in seen:
            seen.add(one)
            left += imported_by(one)
    for one in sorted(seen):
        source = source_of(one)
        if source is None:
            return None
        whole.update(f"{one} {len(source)}\n".encode() + source)
    return whole.hexdigest()
