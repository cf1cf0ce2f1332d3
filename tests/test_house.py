"""Limits on the shape of src/skyband: its folders, file lengths, names, arguments and words (docs: ARCHITECTURE.md).

Each promise is a function that lists what breaks it. Only the source is read, nothing of it is imported.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

HOUSE = Path(__file__).parents[1] / "src" / "skyband"
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

ENTRY_POINTS = {"kernel", "uncounted_kernel"}  # decorators of kernels/compile.py
JITTED = ENTRY_POINTS | {"part", "uncounted", "close", "inlined", "njit", "jit"}
STORED = {"told", "tolds"}  # keys and fields of stored states: renamed, old snapshots would not load


@functools.cache
def sources() -> list[tuple[str, str]]:
    """Every source file: its path within the house, and its text."""
    return [(str(path.relative_to(HOUSE)), path.read_text()) for path in sorted(HOUSE.rglob("*.py"))]


@functools.cache
def trees() -> dict[str, ast.Module]:
    return {path: ast.parse(text) for path, text in sources()}


@functools.cache
def functions() -> list[tuple[str, Function, set[str]]]:
    return list(_functions())


def _functions() -> Iterator[tuple[str, Function, set[str]]]:
    """Every function: where it stands, its definition, and the names of its decorators.

    `name = decorator(function, ...)` counts as decorating the function.
    """
    for path, tree in trees().items():
        nodes = list(ast.walk(tree))
        wrapped: dict[str, set[str]] = {}
        for call in nodes:
            if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Name):
                wrapped.setdefault(call.args[0].id, set()).add(decorator(call))
        for node in nodes:
            if isinstance(node, Function):
                own = {decorator(one) for one in node.decorator_list}
                yield f"{path}:{node.lineno} {node.name}", node, own | (wrapped.get(node.name, set()) & JITTED)


def decorator(node: ast.expr) -> str:
    """The last name of `name`, `module.name` or a call of either."""
    if isinstance(node, ast.Call):
        return decorator(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def positional(node: Function) -> int:
    """The number of arguments that may be given by position, without `self` and `cls`."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    return len(arguments) - bool(arguments and arguments[0].arg in ("self", "cls"))


def with_more_arguments(most: int, chosen: Callable[[set[str]], bool]) -> list[str]:
    return [
        f"{place}: {positional(node)}"
        for place, node, decorators in functions()
        if positional(node) > most and chosen(decorators)
    ]


def beyond(most: int, names: list[str]) -> list[str]:
    """All names when there are more than `most` of them."""
    return names if len(names) > most else []


def modules_in_the_root() -> list[str]:
    return beyond(3, sorted(path.name for path in HOUSE.glob("*.py") if path.name != "__init__.py"))


def folders() -> list[str]:
    return beyond(14, sorted({path.relative_to(HOUSE).parts[0] for path in HOUSE.rglob("*/*.py")}))


def long_files() -> list[str]:
    return [f"{path}: {text.count(chr(10))}" for path, text in sources() if text.count("\n") > 400]


def names_in_ing() -> list[str]:
    paths = [*HOUSE.rglob("*.py"), *{path.parent for path in HOUSE.rglob("*/*.py")}]
    return beyond(6, sorted(str(path.relative_to(HOUSE)) for path in paths if path.stem.endswith("ing")))


def functions_with_many_arguments() -> list[str]:
    return with_more_arguments(12, lambda decorators: True)


def entry_points_with_many_arguments() -> list[str]:
    return with_more_arguments(8, lambda decorators: bool(decorators & ENTRY_POINTS))


def jitted_functions_with_many_arguments() -> list[str]:
    return with_more_arguments(12, lambda decorators: bool(decorators & JITTED) and not decorators & ENTRY_POINTS)


def entry_points_that_return_named_tuples() -> list[str]:
    """Numba makes their class anew for each call (4 us), and ends the process if there is no memory for it."""
    classes = {
        node.name
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and any(decorator(base) == "NamedTuple" for base in node.bases)
    }
    assert len(classes) > 20
    return [
        f"{place}: {ast.unparse(node.returns)}"
        for place, node, decorators in functions()
        if decorators & ENTRY_POINTS and node.returns and classes & set(re.findall(r"\w+", ast.unparse(node.returns)))
    ]


def docstrings_that_ask() -> list[str]:
    opened = ((path, (ast.get_docstring(tree) or "").split("\n")[0]) for path, tree in trees().items())
    return [f"{path}: {line}" for path, line in opened if re.match(r"(what|which|how|who)\b", line, re.IGNORECASE)]


def private_words() -> list[str]:
    """Uses of `told`, in names too, but for the strings of stored states."""
    found = []
    for path, text in sources():
        if "told" not in text.lower():
            continue
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            stored = token.type == tokenize.STRING and token.string.strip("\"'") in STORED
            if not stored and re.search(r"(?<![a-z])told(?![a-z])", token.string, re.IGNORECASE):
                found.append(f"{path}:{token.start[0]} {token.string.strip()[:80]}")
    return found


PROMISES: dict[str, Callable[[], list[str]]] = {
    "at most 3 modules in the root": modules_in_the_root,
    "at most 14 folders": folders,
    "no file past 400 lines": long_files,
    "at most 6 module names in -ing": names_in_ing,
    "no function with more than 12 positional arguments": functions_with_many_arguments,
    "no entry point of kernels with more than 8 arguments": entry_points_with_many_arguments,
    "no entry point of kernels that returns a NamedTuple": entry_points_that_return_named_tuples,
    "no other jitted function with more than 12 arguments": jitted_functions_with_many_arguments,
    "no module docstring that begins with What, Which, How or Who": docstrings_that_ask,
    "no word 'told'": private_words,
}


@pytest.mark.parametrize("promise", PROMISES)
def test_the_house_keeps_its_promises(promise: str) -> None:
    broken = PROMISES[promise]()
    assert not broken, f"{promise}, but there are {len(broken)}:\n" + "\n".join(broken)


def test_the_count_sees_the_kernels() -> None:
    """The decorators are still called so: else the limits on their arguments would hold for nothing."""
    seen = [decorators for _, _, decorators in functions()]
    for name in ENTRY_POINTS | {"part", "uncounted"}:
        assert sum(name in decorators for decorators in seen) > 5, name
