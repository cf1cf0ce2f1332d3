"""The records of sorted lists that are ranked anew (ranks.py), and what kernels see of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.records import Records

Ints = NDArray[np.int64]

RANKED = np.dtype(
    [
        ("key", "f8"),  # larger is better
        ("stamp", "i8"),  # number in the group, or time
        ("serial", "i8"),  # which arrival of the stream it is
        ("name", "i8"),  # the code of its id; -1: ids do not matter
        ("dom", "i4"),  # how many rank above it and do not expire before it
        ("counts", "i4"),  # 0: no answer, by `where` or since another object of its id counts
        ("inside", "u4"),  # 1: in the answer
        ("shown", "u4"),  # 1: has been in an emitted answer
        ("was", "u4"),  # 1: was in the answer when this batch began
        ("eligible", "u4"),  # 0: fails `where`; it is kept where it can be deleted
    ],
    align=True,
)
RUN = np.dtype(
    [
        ("start", "i8"),  # the group's place in the arena
        ("room", "i8"),
        ("head", "i8"),  # its run of records, from head on
        ("size", "i8"),
        ("edge", "i8"),  # no member of the answer is at or behind this place of the run
        ("oldest", "i8"),  # no kept stamp is below this
        ("due", "i8"),  # time takes nothing before this instant
        ("open", "i8"),  # 1: within a batch that is to be reported later
        ("newest", "i8"),  # the stamp of the row that the group's k is from
        ("k", "i8"),
        ("begin", "i8"),  # a session: its first and its last time; NEVER: there is none
        ("last", "i8"),
        ("ended", "i8"),  # when the session before it ended
    ],
    align=True,
)
RANKS = np.dtype(
    [
        ("k", "i8"),  # the largest
        ("offset", "i8"),
        ("length", "i8"),  # of the window; NEVER: without end
        ("timed", "i8"),
        ("gap", "i8"),  # of sessions; 0: none
        ("oldest", "i8"),  # 1: the older of equal objects ranks above
        ("ties", "i8"),  # 1: equals of the k-th are answers too
        ("distinct", "i8"),  # BEST, LATEST or 0
        ("keyed", "i8"),  # 1: an id has one object, which is replaced and deleted
        ("limits", "i8"),  # 1: each arrival brings the k of its group
        ("above", "i8"),  # 1: all above the threshold are answers
        ("threshold", "f8"),
    ],
    align=True,
)
STEP = np.dtype(
    [
        ("key", "f8"),
        ("stamp", "i8"),
        ("now", "i8"),
        ("row", "i8"),
        ("name", "i8"),
        ("limit", "i8"),
        ("kind", "i8"),
        ("joined", "i8"),  # 1: the step goes on with the next arrival of the group
        ("shown", "i8"),  # 1: its object was there until now, and has been in an emitted answer
    ],
    align=True,
)
INSERT, IDLE, DELETE, UNKNOWN = 0, 1, 2, 3  # kinds of arrivals; UNKNOWN: it was to delete an id that is not there
BEST, LATEST = 1, 2


class Ranks(NamedTuple):
    """The runs of all groups, and what is asked of them."""

    objects: Records  # the arena
    groups: Records
    rule: Records  # one record
    tally: Ints  # [places of the arena in use, changes written]
