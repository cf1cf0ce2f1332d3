"""Snapshots of strangers: forged arrays and facts under right digests never crash, hang or take all memory.

`make test` tries a sample; SKYBAND_FUZZ=20, as in `make faults`, 10^5 forgeries of each kind of query (two hours).
"""

from __future__ import annotations

import copy

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from engines.streams import FUZZ
from faults.forge import run
from faults.forgeries import USED, forge, use
from faults.ledger import note
from faults.right_snapshots import right, scenes
from kinds import KINDS
from skyband.errors import StateError
from skyband.monitor import cells
from skyband.monitor.archive import pack, unpack
from skyband.query.algorithms import algorithms

OF_KIND = {"topk": "TopK ", "above": "Above ", "pairs": "TopKPairs ", "incomplete": "TopKIncomplete "}
OF_KIND |= {
    "groups": "TopKGroups ",
    "uncertain": "TopKUncertain ",
    "several": "mixed",
    "subscriptions": "subscriptions ",
    "sources": "sources ",
    "options": "options ",
}
OTHERS = ("several", "subscriptions", "sources", "options")  # no kinds of queries
SAMPLE = (
    "TopK BLOCK count grouped",
    "TopK SAPF time family",
    "TopK TMA until deleted grouped",
    "TopK SMA count expressions",
    "TopK TMA until deleted expressions",
    "TopK timed bag",
    "TopK BEST ever shared",
    "Above LIST ever",
    "Above TSL count",
    "TopKGroups TALLY time picks",
    "TopKGroups TALLY count means",
    "TopKGroups TALLY until deleted best",
    "TopKGroups TALLY ever distinct",
    "TopKGroups TALLY ever decay",
    "TopKPairs TA time grouped",
    "TopKPairs NAIVE count shared",
    "TopKPairs TA time scorings",
    "TopKPairs SCASE count scorings",
    "TopKIncomplete SWEEP count",
    "TopKIncomplete EAA time",
    "TopKUncertain DOM time grouped",
    "TopKUncertain CSQ count pk-topk",
    "TopKUncertain COMPACT ever u-kranks",
    "mixed",
    "subscriptions slots count",
    "subscriptions slots time",
    "subscriptions alone time",
    "subscriptions waiting",
    "subscriptions vectors time",
    "TopK SORTED count grouped",
    "TopK SORTED time session last",
    "TopK SORTED until deleted k",
    "TopKGroups TALLY time session",
    "TopKPairs REFILL until deleted on",
    "sources deep",
    "sources groups",
    "options forget",
)
ROUNDS = 25  # forgeries of each scene of the sample
MANY = 5000  # forgeries of a kind, for each unit of SKYBAND_FUZZ


@pytest.mark.parametrize("kind", [kind for kind in OF_KIND if kind in KINDS or kind in OTHERS])
def test_no_forgery_breaks_a_monitor(kind: str) -> None:
    names = [name for name in scenes() if name.startswith(OF_KIND[kind])]
    chosen = [name for name in names if FUZZ > 1 or name in SAMPLE]
    count = ROUNDS if FUZZ == 1 else -(-MANY * FUZZ // len(names))
    tally = run(chosen, seed=FUZZ, count=count)
    note({"forged": kind, **tally.counts()})
    assert not tally.broken, "\n\n".join(tally.broken)
    assert tally.tried + tally.again == count * len(chosen)
    assert tally.again <= tally.tried / 5, "most differ"
    assert tally.refused and tally.used, "some are found out, and some are harmless"


def test_every_algorithm_and_window_is_forged() -> None:
    wanted = {f"{kind} {row.name} {window}" for row in algorithms() for kind in row.kinds for window in row.windows}
    wanted -= {f"Above SORTED {window}" for window in ("count", "ever", "until deleted")}  # it is for sessions there
    assert all(any(name.startswith(one) for name in scenes()) for one in wanted)
    assert scenes().keys() >= set(SAMPLE)
    for scene in scenes().values():
        scene.start()  # a QueryError, if no engine answers it any more


@pytest.mark.parametrize("name", SAMPLE)
def test_right_snapshots_pass(name: str) -> None:
    data = scenes()[name].monitor().snapshot()
    assert sb.Monitor.restore(data, trusted=False).snapshot() == sb.Monitor.restore(data).snapshot()
    assert use(name, data, whole=True) == USED


def test_only_the_first_restore_changes_the_bytes() -> None:
    """Engines may keep their objects in another order after a restore; then every further snapshot is the same."""
    for name, scene in scenes().items():
        if FUZZ > 1 or name in SAMPLE:
            once = sb.Monitor.restore(scene.monitor().snapshot()).snapshot()
            assert sb.Monitor.restore(once).snapshot() == once, name


def test_a_forgery_can_be_made_again() -> None:
    """From its scene, seed and number alone; and it differs from the right snapshot, under a right digest."""
    name = SAMPLE[0]
    one, other = forge(name, 0, 3), forge(name, 0, 4)
    assert one == forge(name, 0, 3) and one != other
    assert scenes()[name].monitor().snapshot() not in {forge(name, 0, number)[1] for number in range(60)}
    unpack(one[1])
    assert right(name).arrays["cell0"][0][0] == "per g mask"


def forged_field(scene: str, array: str, field: str, value: int) -> bytes:
    """A right snapshot with this value in a field of all records of an array."""
    good = right(scene)
    parts = dict(good.parts)
    streams = [(name, records.copy()) for name, records in good.arrays["cell0"]]
    records = dict(streams)[array]
    assert len(records)
    records[field] = value
    (whole,) = cells.write([[records.tobytes()] for _, records in streams], 1)
    return pack(good.facts, parts | {"cell0": np.frombuffer(whole, np.uint8)})


@pytest.mark.parametrize("scene", ["TopKIncomplete APPROX time", "TopKIncomplete APPROX count repeat"])
def test_rows_of_a_sample_have_arrived(scene: str) -> None:
    """Serials of rows to come crashed: a kernel took them for places in the batch that it reads."""
    with pytest.raises(StateError, match="rows have arrived"):
        sb.Monitor.restore(forged_field(scene, "0 shadow rows", "serial", 2**31), trusted=False)


@pytest.mark.parametrize("name", ["TopKGroups TALLY time picks", "TopKGroups TALLY count ranked"])
def test_objects_have_arguments_of_known_kinds(name: str) -> None:
    good = right(name)
    facts = copy.deepcopy(good.facts)
    assert facts["homes"][0].pop("own")
    with pytest.raises(StateError, match=r"have (kinds|types)"):
        sb.Monitor.restore(pack(facts, good.parts), trusted=False)


def test_words_are_whole() -> None:
    """Half a character was a bare UnicodeEncodeError once the word was shown."""
    good = right("TopKGroups TALLY time picks")
    facts = copy.deepcopy(good.facts)
    facts["homes"][0]["own"]["words"][11] = "\ud800"
    with pytest.raises(StateError, match="arguments does not fit together"):
        sb.Monitor.restore(pack(facts, good.parts), trusted=False)


def test_a_query_has_counts_of_late_rows() -> None:
    good = right("subscriptions groups count")
    facts = copy.deepcopy(good.facts)
    facts["homes"][0]["late"] = []
    with pytest.raises(StateError, match="fit together"):
        sb.Monitor.restore(pack(facts, good.parts), trusted=False)


@pytest.mark.parametrize("name", ["subscriptions slots count", "sources deep"])
def test_rows_of_tables_take_bytes(name: str) -> None:
    """Columns of nulls have none: a snapshot of some kB was read as a table of so many rows."""
    good = right(name)
    table = next(part for part in good.parts if part.startswith(("subscriptions", "members")))
    names = good.parts[table].column_names
    forged = pa.table([pa.Array.from_buffers(pa.null(), 2**31 - 1, [None])] * len(names), names=names)
    with pytest.raises(StateError, match="no more rows than bytes"):
        sb.Monitor.restore(pack(good.facts, good.parts | {table: forged}), trusted=False)


def test_snapshots_within_snapshots_are_few() -> None:
    """Each is held in memory with all that is in it, so a thousand of them would take a thousand times the bytes."""
    good = right("sources deep")
    (name,) = good.inside
    one = good.inside[name]
    (deeper,) = one.inside
    inner = pack(one.facts, one.parts)
    for _ in range(20):
        inner = pack(one.facts, one.parts | {deeper: np.frombuffer(inner, np.uint8)})
    whole = pack(good.facts, good.parts | {name: np.frombuffer(inner, np.uint8)})
    with pytest.raises(StateError, match="at most 16 deep"):
        sb.Monitor.restore(whole, trusted=False)


@pytest.mark.parametrize("name", ["TopKPairs REFILL until deleted weights", "TopKPairs REFILL until deleted scorings"])
def test_reported_pairs_have_two_objects(name: str) -> None:
    shown = dict(right(name).arrays["cell0"])["0 shown"]
    with pytest.raises(StateError, match="a pair has two objects"):
        sb.Monitor.restore(forged_field(name, "0 shown", "newer", int(shown["older"][0])), trusted=False)


@pytest.mark.parametrize("name", ["TopKPairs PST count", "TopK BLOCK count grouped"])
def test_kept_columns_have_names(name: str) -> None:
    """keep="*" waits for the first batch; objects of before it have no columns."""
    good = right(name)
    facts = copy.deepcopy(good.facts)
    facts["options"]["keep"] = "*"
    with pytest.raises(StateError, match="columns that are kept have names"):
        sb.Monitor.restore(pack(facts, good.parts), trusted=False)


def test_keys_that_the_scoring_does_not_give() -> None:
    """NAIVE computes pairs anew when it serves another query: a stored pair with another key came twice."""
    name = "TopKPairs NAIVE count on"
    good, later = right(name), dict(right(name, 7).arrays["cell0"])
    streams = [later["0 data"] if one == "0 data" else array for one, array in good.arrays["cell0"]]
    (whole,) = cells.write([[array.tobytes()] for array in streams], 1)
    data = pack(good.facts, good.parts | {"cell0": np.frombuffer(whole, np.uint8)})
    assert use(name, data, whole=True) == USED


def test_slots_have_their_numbers() -> None:
    name = "TopK BLOCK count family"
    good, count = right(name), dict(right(name).arrays["cell0"])["0 facts"].copy()
    count[0] += 27
    streams = [count if one == "0 facts" else array for one, array in good.arrays["cell0"]]
    (whole,) = cells.write([[array.tobytes()] for array in streams], 1)
    with pytest.raises(StateError, match="slots have their numbers"):
        sb.Monitor.restore(pack(good.facts, good.parts | {"cell0": np.frombuffer(whole, np.uint8)}), trusted=False)
