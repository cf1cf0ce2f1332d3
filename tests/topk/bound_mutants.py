"""Mutants of the bounds of expressions over boxes."""

from __future__ import annotations

from topk.mutated import Listed, grid

BOUNDS = "engines/topk/kernels/bounds.py"
BOXES = "engines/topk/kernels/window_boxes.py"
BOUND = ("tests/topk/test_bounds.py",)
SCORES = "engines/topk/kernels/typed_scores.py"
TOGETHER = ("tests/topk/test_typed_scores.py",)
TYPED = grid("typed and TMA")

MUTANTS: dict[str, Listed] = {
    "bounds: exp without outward rounding": (
        BOUNDS,
        "return x - abs(x) * SLACK - TINY if x > -1.7e308 else -np.inf",
        "return x",
        BOUND,
    ),
    "bounds: a difference of like ends": (BOUNDS, "Interval(-y.high, -y.low, y.odd), odd)", "y, odd)", BOUND),
    "bounds: a product of ends alone": (
        BOUNDS,
        "point(0.0 if a == 0 or b == 0 else a * b)",
        "point(x.low * y.low if a == 0 or b == 0 else x.high * y.high)",
        BOUND,
    ),
    "bounds: a divisor across 0": (BOUNDS, "if has(y, 0.0):  # of either sign", "if False:", BOUND),
    "bounds: a square across 0": (BOUNDS, "return 0.0 if has(x, 0.0) else min", "return min", BOUND),
    "bounds: a root of negatives is no mark": (
        BOUNDS,
        "np.sqrt(x.high), x.odd or x.low < 0)",
        "np.sqrt(x.high), x.odd)",
        BOUND,
    ),
    "bounds: a pole of power": (BOUNDS, "if has(x, 0.0) and y.low < 0:", "if False:", BOUND),
    "bounds: NaN to the power of 0": (BOUNDS, "if op == POWER and odd:", "if False:", BOUND),
    "bounds: the least of what may be null": (BOUNDS, "    if x.odd:\n        found = hull(found, y, odd)", "", BOUND),
    "bounds: a remainder of one sign": (
        BOUNDS,
        "Interval(-most if x.low < 0 else 0.0, most",
        "Interval(0.0, most",
        BOUND,
    ),
    "bounds: equal where ends meet": (
        BOUNDS,
        "if x.high < y.low or y.high < x.low:",
        "if x.high <= y.low or y.high < x.low:",
        BOUND,
    ),
    "bounds: less where ends meet": (
        BOUNDS,
        "(1.0 if x.high < y.low else 0.0)",
        "(1.0 if x.high <= y.low else 0.0)",
        BOUND,
    ),
    "bounds: the other case": (BOUNDS, "found = hull(y, z, y.odd or z.odd)", "found = y", BOUND),
    "bounds: coalesce of what may be null": (BOUNDS, "hull(x, y, True) if x.odd else x", "x", BOUND),
    "bounds: floor of NaN": (
        BOUNDS,
        "return hull(Interval(low, high, odd), point(0.0), odd) if x.odd else",
        "return",
        BOUND,
    ),
    "bounds: round down": (BOUNDS, "above(x.high + y.low), x.odd)", "x.high, x.odd)", BOUND),
    "bounds: logarithm of 0": (BOUNDS, "below(np.log(x.low)) if x.low > 0 else -np.inf", "0.0", BOUND),
    "scores: of equal ones the second": (SCORES, "y[i] if y[i] < x[i] or", "y[i] if y[i] <= x[i] or", TOGETHER),
    "scores: NaN is a score": (SCORES, "numbers &= broken == 0", "pass", TOGETHER),
    "scores: the first chunk again": (
        SCORES,
        "y = columns[b, begin : begin + size] if b < axes",
        "y = columns[b, :size] if b < axes",
        TOGETHER,
    ),
    "scores: the constants of the first expression": (
        SCORES,
        "programs.code[e], programs.low[e], programs.steps[e]",
        "programs.code[e], programs.low[0], programs.steps[e]",
        TOGETHER,
    ),
    "scores: functions of another library": (
        "engines/topk/bounds.py",
        "return programs if exact and",
        "return programs if",
        TOGETHER,
    ),
    "scores: exp of another library": (
        "engines/topk/bounds.py",
        "(has_same_functions() or not np.isin(used, FUNCTIONS).any())",
        "True",
        TOGETHER,
    ),
    "scores: exp is not compared": (
        "engines/topk/bounds.py",
        "found is not None and found.tobytes() == np.stack(expected).tobytes()",
        "True",
        TOGETHER,
    ),
    "scores: the power of the first number": (SCORES, "np.power(x[i], y[i])", "np.power(x[i], y[0])", TOGETHER),
    "boxes: a half is lost": (BOXES, "for half in range(2):", "for half in range(1):", TYPED),
    "boxes: the smallest is best": (BOUNDS, "return -found.low if queries.turned else", "return", TYPED),
}
