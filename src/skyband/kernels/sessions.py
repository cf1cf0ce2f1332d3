"""Sessions of groups: which rows are too late for one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.compile import kernel
from skyband.kernels.records import NEVER, Records

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

#: of a group: the first and the last time of the open session (NEVER: none is), and when the one before it ended
SESSION = np.dtype([("begin", "i8"), ("last", "i8"), ("ended", "i8")], align=True)
NO_SESSION = {"begin": NEVER, "last": NEVER, "ended": -NEVER}


def no_sessions(size: int) -> Records:
    """Of so many groups without one."""
    none = np.zeros(size, SESSION)
    for name, value in NO_SESSION.items():
        none[name] = value
    return none


@kernel
def find_late(groups: Ints, times: Ints, clocks: Ints, sessions: Records, gap: int, late: Bools) -> None:
    """Which rows are too late for a session of their group. Changes the sessions: they are as after these rows."""
    for r in range(len(groups)):
        g, t, now = groups[r], times[r], clocks[r]
        if sessions[g]["last"] < NEVER and sessions[g]["last"] + gap <= now:
            sessions[g]["ended"] = sessions[g]["last"] + gap
            sessions[g]["last"] = NEVER
        if t < sessions[g]["ended"]:
            late[r] = True  # it belongs to a session that has ended
        elif sessions[g]["last"] == NEVER:
            late[r] = t + gap <= now
            if not late[r]:
                sessions[g]["begin"] = sessions[g]["last"] = t
        else:
            late[r] = t + gap <= sessions[g]["begin"]
            if not late[r]:
                sessions[g]["begin"] = min(sessions[g]["begin"], t)
                sessions[g]["last"] = max(sessions[g]["last"], t)
