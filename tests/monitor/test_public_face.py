"""Public names as `help()` and completion show them: only the contract's methods, every argument documented."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import skyband as sb

NAMES = tuple(name for name in sb.__all__ if not name.endswith("Error"))
METHODS = (
    "push",
    "advance",
    "delete",
    "answer",
    "answers",
    "add",
    "subscribe",
    "unsubscribe",
    "replace",
    "drop",
    "queries",
    "snapshot",
    "restore",
    "stats",
)


def described(docstring: str | None) -> dict[str, str]:
    """Arguments and their descriptions, from the sections `Parameters` and `Other Parameters` (NumPy style)."""
    lines = inspect.cleandoc(docstring or "").splitlines() or [""]
    found: dict[str, str] = {}
    inside, current = False, list[str]()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if re.fullmatch(r"-{3,}", below):
            inside = line in ("Parameters", "Other Parameters")
        elif inside and re.fullmatch(r"[\w*, ]+( : .*)?", line):
            current = [name.strip().lstrip("*") for name in line.partition(" : ")[0].split(",")]
            found |= dict.fromkeys(current, "")
        elif inside and line.startswith(" "):
            found |= {name: found[name] + line.strip() for name in current}
    return found


def is_value(public: type) -> bool:
    """Whether a class is a value or a protocol, of which only the constructor is for users."""
    return public is not sb.Monitor and public.__module__.startswith("skyband.")


def documented_callables(public: Any, name: str) -> Iterator[tuple[str, Any, str | None]]:
    """Every callable behind a public name, with the docstring that describes its arguments."""
    if isinstance(public, ModuleType):
        for inner, member in inspect.getmembers(public):
            if not inner.startswith("_") and getattr(member, "__module__", "") == public.__name__:
                yield from documented_callables(member, f"{name}.{inner}")
    elif isinstance(public, type):
        if inspect.isfunction(inspect.getattr_static(public, "__init__")):
            yield name, public, public.__doc__
        for inner, member in inspect.getmembers(public) if not is_value(public) else ():
            if not inner.startswith("_") and (inspect.isfunction(member) or inspect.ismethod(member)):
                yield f"{name}.{inner}", member, member.__doc__
    else:
        yield name, public, public.__doc__


def undocumented(public: Any, name: str) -> list[str]:
    """Arguments of a public name without a description, and described ones that do not exist."""
    wrong = []
    for label, function, docstring in documented_callables(public, name):
        arguments = {one.name: one for one in inspect.signature(function).parameters.values() if one.name != "self"}
        texts = described(docstring)
        beyond = sorted(texts.keys() - arguments.keys())
        free = any(one.kind is one.VAR_KEYWORD for one in arguments.values())  # its keywords are documented by name
        wrong += [
            f"{label}: {one.name} is not documented"
            for one in arguments.values()
            if not texts.get(one.name) and not (one.kind is one.VAR_KEYWORD and beyond)
        ]
        wrong += [] if free else [f"{label}: {text} is no argument" for text in beyond]
    return wrong


def test_type_checkers_see_the_names_that_are_loaded_when_used() -> None:
    """What __getattr__ loads is what the imports for type checkers say, from the same modules."""
    (block,) = [
        node
        for node in ast.parse(inspect.getsource(sb)).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    imports = {
        node.module: tuple(one.name for one in node.names) for node in block.body if isinstance(node, ast.ImportFrom)
    }
    assert imports.pop("skyband") == ("plot",)
    assert imports == sb._LAZY
    eager = {"BatchError", "QueryError", "SkybandError", "StateError", "explain", "plot"}
    assert {name for names in imports.values() for name in names} | eager == set(sb.__all__)


def test_every_name_is_listed_before_it_is_loaded() -> None:
    code = "import sys, skyband as sb; assert set(sb.__all__) <= set(dir(sb)); assert 'numpy' not in sys.modules; "
    code += "from skyband import *; print(TopK(1, 'x', Last(3)), sb.plot.plane.__name__, sb.query.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "TopK(k=1, by='x', window=Last(3)) plane skyband.query\n"
    with pytest.raises(AttributeError, match="module 'skyband' has no attribute 'TopKay'"):
        sb.TopKay  # type: ignore[attr-defined]  # noqa: B018


def test_explain_is_the_function_whatever_is_imported_first() -> None:
    code = "import skyband.explain.form, skyband as sb; print(sb.explain(sb.TopK(1, 'x', sb.Last(9))).algorithm)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "BLOCK\n"


def test_monitor_shows_its_public_methods_and_nothing_else() -> None:
    monitor = sb.Monitor(sb.TopK(1, by="x", window=sb.Last(3)))
    for shown in (dir(sb.Monitor), dir(monitor)):
        assert sorted(name for name in shown if not name.startswith("_")) == sorted(METHODS)


@pytest.mark.parametrize("name", NAMES)
def test_every_argument_is_documented(name: str) -> None:
    missing = undocumented(getattr(sb, name), name)
    assert not missing, "\n".join(missing)


def test_a_missing_argument_is_noticed() -> None:
    class Example:
        """Hold numbers.

        Parameters
        ----------
        a, b : int
            Two numbers.
        *rest
            More.

        Returns
        -------
        c
            No argument.

        Other Parameters
        ----------------
        d
            Without effect.
        e

        """

        def __init__(self, a: int, b: int, e: int, *rest: int) -> None: ...

        def free(self, **more: int) -> None: ...

        def named(self, **more: int) -> None:  # noqa: D417
            """Take keywords.

            Parameters
            ----------
            one
                A keyword.

            """

    assert described(Example.__doc__) == {
        "a": "Two numbers.",
        "b": "Two numbers.",
        "rest": "More.",
        "d": "Without effect.",
        "e": "",
    }
    assert undocumented(Example, "Example") == [
        "Example: e is not documented",
        "Example: d is no argument",
        "Example.free: more is not documented",
    ]
