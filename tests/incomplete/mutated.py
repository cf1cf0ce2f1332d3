"""What mutants of the incomplete engines change, and the tests that they must die of."""

from __future__ import annotations

STEPS, DOMINANCE, REGISTER, COUNTERS, FRONTS, LISTS, LINKED, LINKED_STEPS, STORE, PROMISED, FINDERS = (
    f"engines/incomplete/kernels/{name}.py"
    for name in (
        "sweep_steps",
        "sweep",
        "register",
        "eaa",
        "fronts",
        "sla",
        "linked_batches",
        "linked_steps",
        "linked_store",
        "promised",
        "finders",
    )
)
ENGINES = "engines/incomplete/"
FILES = tuple(
    f"tests/incomplete/test_{name}.py"
    for name in ("contract", "dominance", "steps", "any_parts", "promise", "approximation", "input", "sums", "finders")
)


def some(only: str) -> tuple[str, ...]:
    return (*FILES, "-k", only)


SCENES = some("as_the_oracle and SWEEP")
STREAMS = some("dominated and not EAA and not SLA")
EITHER = some("SWEEP")
LATE = some("late_rows and SWEEP")
AGAIN = some("filled_again and SWEEP")
OF_EAA, OF_SLA = some("as_the_oracle and EAA"), some("as_the_oracle and SLA")
TIE = some("reach_a_tie and SWEEP")
BACK = some("step_of_its_expiry and SWEEP")
WITHIN = some("within_a_batch and SWEEP")
PLACE = some("takes_the_place and SWEEP")
LARGE = some("large_push")
TOTALS = some("(rounded_once or another_order) and SWEEP")
FOUND = some("row_that_counts and not SLA")
BUDGET = some("budget_bounds and None")
