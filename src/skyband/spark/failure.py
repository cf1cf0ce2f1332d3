"""Failures of Spark in a line: the traces of a failed query hold the reason many lines deep."""

from __future__ import annotations

import re

from skyband.errors import SkybandError

_ADVICE = {
    "No space left on device": "Free space on the disk of run.checkpoint, sink.path and Spark's local folders",
    "Read-only file system": "Make it writable again (a checkpoint cannot be moved: it names its own place)",
    "to connect back": "Python took longer than the ten seconds that Spark waits: leave it more of the machine",
    "Permission denied": "Let this user write to run.checkpoint and sink.path",
}


def advice(error: BaseException) -> str:
    """What to do, if the cause is a failure of the machine."""
    text = str(error)
    while (cause := getattr(error, "_cause", None)) is not None:
        error = cause
        text += str(error)
    found = next((what for sign, what in _ADVICE.items() if sign in text), None)
    return "" if found is None else f" {found}; then the same command resumes where it stopped."


def reason(error: BaseException, what: str = "the query failed") -> str:
    """Why a query failed, in a line or two: skyband's own error if there is one inside, else the innermost of all.

    Parameters
    ----------
    error : BaseException
        What `awaitTermination()`, `collect()` or any other call of Spark raised; or `query.exception()`.
    what : str
        What to begin with where the error is not skyband's own.

    """
    if isinstance(error, SkybandError):
        return str(error)
    messages = [_plain(error)]
    while (cause := getattr(error, "_cause", None)) is not None:
        error = cause
        messages.append(_plain(error))
    text = "\n".join(messages)
    ours = re.findall(r"^skyband\.errors\.\w+: (.+(?:\n(?! *File |Traceback|\S+Error).+)*)", messages[0], re.MULTILINE)
    if ours:
        return str(ours[-1]).strip()
    python = re.findall(r"^(?:\w+\.)*(\w+(?:Error|Exception|Interrupt)(?:: .*)?)$", messages[0], re.MULTILINE)
    if python and "Traceback" in text:
        return f"{what}: {python[-1].strip()}"
    last = next((one for one in reversed(messages) if one), type(error).__name__)
    return f"{what}: " + "\n".join(last.rpartition("terminated with exception: ")[2].splitlines()[:6])


def _plain(error: BaseException) -> str:
    """A message without what only Spark's developers read."""
    text = re.split(r"\n(?:=== Streaming Query ===|JVM stacktrace:|\tat )", str(error))[0]
    text = re.sub(r"^An error occurred while calling .*\n: ", "", re.sub(r"\s*SQLSTATE: \w+", "", text))
    return re.sub(r"^(?:[a-z]\w*\.)+\w*(?:Exception|Error): ", "", text).strip()
