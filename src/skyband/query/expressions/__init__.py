"""Expressions in Spark's SQL, as a user types them: scorings, `where`, pair scorings, combines.

`parse` reads the text once, when a query is made, and refuses everything outside a small whitelist;
`Expression.evaluate` runs over NumPy columns; `recognise` and `is_symmetric` find what an engine may
exploit. Text is never executed: it becomes a tree of `tree.Node` values, which is walked.

Cost: a plain column name is free. Other text costs 0.12 s once per process (sqlglot is loaded on first use),
then about 0.05 ms a term. Evaluation is one or a few NumPy passes per operation, 1 to 6 ns a row; exp, ln and
power go through the C library row by row, 70 to 100 ns a row (`evaluation` says why), so (x-1)*(x-1) is some
20 times faster than power(x-1, 2). Functions of strings go row by row too (`functions`); those of times do not.
"""

from skyband.query.expressions.forms import Form, is_symmetric, recognise
from skyband.query.expressions.literals import bind, each_in
from skyband.query.expressions.parser import Expression, parse
from skyband.query.expressions.shapes import (
    Demand,
    as_locals,
    as_sum,
    columns_in,
    demands,
    member_columns,
    number_columns,
    ranges,
    ranges_of,
    reads_wall_clock,
    strict_columns,
)
from skyband.query.expressions.tree import Kind, Node, Operand, kind_of

__all__ = [
    "Demand",
    "Expression",
    "Form",
    "Kind",
    "Node",
    "Operand",
    "as_locals",
    "as_sum",
    "bind",
    "columns_in",
    "demands",
    "each_in",
    "is_symmetric",
    "kind_of",
    "member_columns",
    "number_columns",
    "parse",
    "ranges",
    "ranges_of",
    "reads_wall_clock",
    "recognise",
    "strict_columns",
]
