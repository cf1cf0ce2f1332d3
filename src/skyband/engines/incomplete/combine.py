"""A query's `combine` as flat arrays for kernels."""

from __future__ import annotations

import numpy as np

from skyband.engines.incomplete.kernels import combine as forms
from skyband.engines.incomplete.kernels.combine import Combination
from skyband.query.expressions import parse
from skyband.query.expressions.tree import Node
from skyband.query.kinds import TopKIncomplete

_FORMS = {"sum": forms.SUM, "mean": forms.MEAN, "min": forms.MIN, "max": forms.MAX}
_PAIRS = {
    "+": forms.ADD,
    "-": forms.SUBTRACT,
    "*": forms.MULTIPLY,
    "/": forms.DIVIDE,
    "power": forms.POWER,
    "least": forms.LEAST,
    "greatest": forms.GREATEST,
}
_SINGLES = {"negative": forms.NEGATE, "exp": forms.EXP, "ln": forms.LN, "sqrt": forms.SQRT}


def combination_of(query: TopKIncomplete) -> Combination:
    """How this query combines its parts."""
    names = [part for part, _ in query.parts]
    lows, highs = (np.array([bounds[side] for _, bounds in query.parts]) for side in (0, 1))
    form, places, weights = forms.PROGRAM, np.zeros(0, np.int64), np.zeros(0)
    program: list[tuple[int, int]] = []
    numbers: list[float] = []
    if not isinstance(query.combine, str):
        form = forms.LINEAR
        places = np.array([names.index(part) for part, _ in query.combine.terms])
        weights = np.array([weight for _, weight in query.combine.terms])
    elif query.combine in _FORMS:
        form = _FORMS[query.combine]
    else:
        _write(parse(query.combine).tree, names, program, numbers)
    return Combination(
        form,
        lows,
        highs,
        places,
        weights,
        np.array(program, np.int64).reshape(-1, 2),
        np.array(numbers, np.float64),
        np.empty(len(program) + 1),
        not query.descending,
    )


def _write(node: Node, names: list[str], program: list[tuple[int, int]], numbers: list[float]) -> None:
    """Append the program of a tree. `recognise` has seen that it rises, so it has only these operations."""
    if node.op == "column":
        program.append((forms.PART, names.index(str(node.value))))
    elif not _has_part(node):
        program.append((forms.NUMBER, len(numbers)))
        numbers.append(_constant(node))
    elif node.op in _SINGLES:
        _write(node.args[0], names, program, numbers)
        program.append((_SINGLES[node.op], 0))
    else:
        _write(node.args[0], names, program, numbers)
        for other in node.args[1:]:
            _write(other, names, program, numbers)
            program.append((_PAIRS[node.op], 0))


def _has_part(node: Node) -> bool:
    return node.op == "column" or any(_has_part(arg) for arg in node.args)


def _constant(node: Node) -> float:
    """The number that a tree without parts stands for; NULL spreads as NaN does."""
    from skyband.query.expressions.evaluation import evaluate

    result = evaluate("", node, (), {}, 1)
    return float("nan") if result.valid is not None and not result.valid[0] else float(result.values[0])
