"""The errors a user meets. Each message says what is wrong, why, and what to do instead."""


class SkybandError(Exception):
    """The parent of every error that skyband raises on purpose."""


class QueryError(SkybandError, ValueError):
    """The question is wrong: a value out of range, an unknown name, a kind that no engine serves.

    Where a typed text is wrong at one place, `at` is that place in it, and `said` the message without the mark.
    """

    def __init__(self, message: str, text: str | None = None, at: int | None = None) -> None:
        super().__init__(message if text is None or at is None else message + _mark(text, at))
        self.said = message
        self.at = at


class BatchError(SkybandError, ValueError):
    """The data is wrong: a column is missing, a type does not fit, time runs backwards."""


class StateError(SkybandError, ValueError):
    """A snapshot or checkpoint cannot be used: cut short, changed, or of another version or question."""


class SkybandWarning(UserWarning):
    """Something that is no error and that a user should know, such as a batch whose rows are mostly rejected."""


class RunError(SkybandError, RuntimeError):
    """A run could not start or did not finish: no Java, a folder of another run, a failed query."""


def _mark(text: str, at: int) -> str:
    """The text around `at` on a line of its own, and a mark under it."""
    start = max(0, at - 50)
    line = "".join(char if char.isprintable() else " " for char in text[start : at + 50])
    return f"\n  {line}\n  {' ' * (at - start)}^"
