"""Answers of uncertain queries as records: in the order in which they are told, and how two of them differ."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.contract import Answer, Ints, Spec
from skyband.engines.uncertain.kernels.marks import TOLD

Records = NDArray[Any]


def ranked(found: Records, groups: Ints, sizes: Ints, asked: Spec) -> Answer:
    """Answers group by group, each in order of rank: the most probable first, where that is what is asked for."""
    ends = np.cumsum(sizes)
    place = np.arange(1, len(found) + 1) - np.repeat(ends - sizes, sizes)
    group = np.repeat(groups, sizes)
    if asked.semantics in ("pk-topk", "pt-k"):
        found = found[np.lexsort((place, -found["p"], np.repeat(np.arange(len(sizes)), sizes)))]
    return Answer(
        group=group,
        rank=np.ascontiguousarray(found["mark"]) if asked.semantics == "u-kranks" else place,
        stamp=np.ascontiguousarray(found["stamp"]),
        serial=np.ascontiguousarray(found["serial"]),
        key=np.ascontiguousarray(found["key"]),
        probability=np.ascontiguousarray(found["p"]),
    )


def differences(old: Records, new: Records, query: int, group: int, told: set[tuple[int, int]], held: bool) -> Records:
    """Who leaves and who enters, as changes of a step without an arrival; `told` knows who has entered before."""

    def identities(records: Records) -> list[tuple[int, int]]:
        ranks = (records["mark"] - 1).tolist() if held else [0] * len(records)
        return list(zip(records["serial"].tolist(), ranks, strict=True))

    before, after = identities(old), identities(new)
    leaving = old[[one not in set(after) for one in before]] if before else old
    entering = new[[one not in set(before) for one in after]] if after else new
    changes = np.zeros(len(leaving) + len(entering), TOLD)
    for name, of in (("key", "key"), ("probability", "p"), ("stamp", "stamp"), ("serial", "serial"), ("rank", "mark")):
        changes[name] = np.concatenate([leaving[of], entering[of]])
    changes["query"], changes["visit"], changes["row"] = query, group, -1
    changes["diff"] = [-1] * len(leaving) + [1] * len(entering)
    changes["first"] = [False] * len(leaving) + [one not in told for one in identities(entering)]
    told.update(after)
    return changes
