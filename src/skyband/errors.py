"""The errors a user meets. Each message says what is wrong, why, and what to do instead."""


class SkybandError(Exception):
    """The parent of every error that skyband raises on purpose."""


class QueryError(SkybandError, ValueError):
    """The question is wrong: a value out of range, a name nobody knows, a kind no engine serves."""


class BatchError(SkybandError, ValueError):
    """The data is wrong: a column is missing, a type does not fit, time runs backwards."""


class StateError(SkybandError, ValueError):
    """A snapshot or checkpoint cannot be used: cut short, changed, or of another version or question."""


class RunError(SkybandError, RuntimeError):
    """A run could not start or did not finish: no Java, a folder of another run, a failed query."""
