"""Mutants of the engines of TopK and Above: each must die of the contract suite (tests/mutation.py says how).

`make mutants` runs them all; `make test` every seventeenth, and looks whether the others still apply.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import pytest

from mutation import Mutant, Suite, all_apply, chosen, dies, passes

STRICT = "engines/topk/kernels/strict.py"
AHEAD = "engines/topk/kernels/lookahead.py"
ANSWERS = "engines/topk/kernels/answers.py"
RECORDS = "kernels/records.py"
ROUTING = "kernels/routing.py"
CHANGES = "engines/topk/kernels/changes.py"
STATE = "engines/topk/kernels/state.py"
PRUNE = "engines/topk/kernels/prune.py"
FILTERS = "engines/topk/kernels/filters.py"
SCORES = "engines/topk/kernels/scores.py"
BASE = "engines/topk/base.py"
GROUPED = "engines/grouped.py"
NUMBERING = "engines/numbering.py"
BLOCK = "engines/topk/block.py"
BUFFERED = "engines/topk/buffered.py"
FAMILY = "engines/topk/family.py"
GRID = "engines/topk/kernels/block_grid.py"
LANES = "engines/topk/kernels/filtered_lanes.py"
RING = "engines/topk/kernels/ring.py"
REPLAY = "engines/topk/kernels/replay.py"
DEPTHS = "engines/topk/kernels/depths.py"
SEGMENTS = "engines/topk/kernels/segments.py"
KERNEL_OF_SLOTS = "engines/topk/kernels/slots.py"
CHUNK = "engines/topk/chunk.py"
SLOTS_ADAPTER = "engines/topk/slots_adapter.py"
SLOT_ARRIVALS = "engines/topk/slot_arrivals.py"
OBJECTS = "engines/topk/kernels/window_grid.py"
WINDOW_STATE = "engines/topk/kernels/window_state.py"
INFLUENCE = "engines/topk/kernels/influence.py"
UPKEEP = "engines/topk/kernels/maintenance.py"
RUNS = "engines/topk/kernels/runs.py"
LISTS = "engines/topk/kernels/sorted_lists.py"
PREFERENCES = "engines/topk/kernels/preferences.py"
WINDOWED = "engines/topk/window_engine.py"
CONTRACT = ("tests/engines/test_contract.py", "tests/engines/test_recomputed.py")
WINDOW_ADAPTER = "engines/topk/window_adapter.py"
SNAPSHOT = "engines/topk/window_snapshot.py"
EVER = "engines/topk/kernels/ever.py"
LIST = "engines/topk/list.py"
Listed: TypeAlias = tuple[str, str, str] | Mutant


AHEAD_ONLY = "lookahead or (TopK-BLOCK and (long or sharing or batch))"


def engines(*algorithms: str, only: str = "TopK") -> tuple[str, ...]:
    """The contract of these algorithms, of tests with such names only."""
    chosen = " or ".join(f"TopK-{name}- or TopK-{name}]" for name in algorithms)
    return (*CONTRACT, "-k", f"({chosen}) and ({only})")


def family(algorithm: str, only: str) -> tuple[str, ...]:
    return ("tests/topk/test_families.py", "-k", f"{algorithm} and ({only})")


def grid(only: str) -> tuple[str, ...]:
    return ("tests/topk/test_grids.py", "-k", f"what_the_skyband and ({only})")


SA = engines("SA")
STORED = engines("SA", only="restored")
SHARED = engines("SA", only="sharing")
LATE_ROWS = engines("SA", only="late")
EMPTY = engines("SA", only="empty")
AHEAD_AND_BLOCK = ("tests/topk/test_lookahead.py", *CONTRACT, "-k", AHEAD_ONLY)
TABLES = ("tests/topk/test_pripuzic.py", "-k", "table or keeps")
RA = engines("RA", only="sharing")
RA_FALLING = engines("RA", only="net and falling")
BUFFERS = engines("SASF", only="everything or late or equal")
FEW_TIES = engines("SASF", "SAPF", only="few")
LONG_BUFFERS = engines("SASF", only="long_count and (falling or 10-40)")
REPLACED = engines("SASF", only="waiting_objects")
INDEX = family("BLOCK", "matters")
BUFFER_INDEX = family("SASF", "matters")
LEAVE = family("BLOCK", "leave")
LATE_BUFFER = family("RAPF", "arrival-late")
LEAVE_BUFFER = family("SASF", "leave")
SLOTS = "tests/topk/test_slots.py"
COME_AND_GO = (SLOTS, "-k", "come_and_go and nearest-count")
LATE_SLOTS = (SLOTS, "-k", "come_and_go and nearest-time")
ONE_REJECTS = (SLOTS, "-k", "one_query_rejects")
NUMBERS_GO_ON = (SLOTS, "-k", "largest_number")
SHOWN = (SLOTS, "-k", "shown_before")
PA_INDEX = family("PA-", "matters")
RINGS = family("BLOCK", "coarse-5-200-no")
DRIFT = family("BLOCK", "drift-2-400-index")
WAVES = family("BLOCK", "waves-4-150-no")
IN_ORDER = family("BLOCK", "arrival-in")
TIES = family("BLOCK", "steps-5-150-no")
LATE = family("BLOCK", "arrival-late")
OTHERS = ("tests/topk/test_families.py", "-k", "shorter or overflow or edges_of")
NET = ("tests/topk/test_families.py", "-k", "net_changes")
IN_GRID = grid("TMA and (least or point or three)")
DOMINANCE = grid("SMA and expression")
MANY_TIES = grid("TMA and ties")
EQUALS = ("tests/topk/test_grids.py", "-k", "newer_of_equals and (TMA or TSL)")
ON_TIME = ("tests/topk/test_grids.py", "-k", "late_rows and arrival-TMA-linear")
ABOVE = ("tests/topk/test_above.py", "-k", "comes")
LONGER = ("tests/topk/test_grids.py", "-k", "longer_window")
PA_LANES = family("PA-", "waves-4-150-no")
ENDLESS = ("tests/topk/test_ever.py", "-k", "topk_equals")
ABOVE_EVER = ("tests/topk/test_ever.py", "-k", "above_equals")
EXTREME = ("tests/topk/test_ever.py", "-k", "extreme")
MAPPED = ("tests/spark/test_ever.py", "-k", "streams or late or mappers")
ODDS = ("tests/topk/test_odds.py", "-k", "limit")

#: name: (file, what it says, what the mutant says, the tests that it must die of: those of SA if none are given)
#: Left out, since any subset of a buffer can be its filter, and what is dominated by K is turned away later: what a
#: filter drops or prunes too early, a second attempt at the bar itself (filters.py, `>`), objects of equal times that
#: stay in a relaxed run (prune.py, `stamp <= recent[0]`), deepening with objects at the old depth (ring.py, `< old`),
#: which are in the run or dominated. `stamp <= bound` of `prune` drops nothing that `purge` has left undominated.
#: Without its margin a limit of odds.py is wrong only where a sum is within 1e-11 of the bound.
#: Left out, since they change only the cost: objects that die within a batch staying in the kept columns (changes.py,
#: `alive[...] = False`), packed runs beginning at their group's start (records.py, `pack`), the side of a run that is
#: shifted (strict.py). Nothing shows: the order of queries in `ordered_changes` (changes are sorted again), and the
#: answers that `refit_skybands` compares (only `replace` reports, and there a query succeeds itself).
MUTANTS: dict[str, Listed] = {
    # --- ties
    "tie rule turned": (
        STRICT,
        'objects[head + p - 1]["key"] == key and objects[head + p - 1]["stamp"] <= stamp',
        'objects[head + p - 1]["key"] == key and objects[head + p - 1]["stamp"] > stamp',
    ),
    "equal times: the earlier arrival first": (
        STRICT,
        'objects[head + p - 1]["key"] == key and objects[head + p - 1]["stamp"] <= stamp',
        'objects[head + p - 1]["key"] == key and objects[head + p - 1]["stamp"] < stamp',
    ),
    "ties by arrival, whatever their times": (
        STRICT,
        'or (objects[head + p - 1]["key"] == key and objects[head + p - 1]["stamp"] <= stamp)',
        'or objects[head + p - 1]["key"] == key',
        LATE_ROWS,
    ),
    # --- expiry
    "time windows are one longer": (
        STRICT,
        'while views[v]["oldest"] <= now - length:',
        'while views[v]["oldest"] < now - length:',
    ),
    "count windows are one longer": (
        STRICT,
        'if views[v]["oldest"] <= bound:',
        'if views[v]["oldest"] < bound:',
    ),
    "candidates count at the bound": (
        STRICT,
        '        if objects[i]["stamp"] > bound:\n            enter',
        '        if objects[i]["stamp"] >= bound:\n            enter',
    ),
    "arrivals count at the bound": (
        STRICT,
        "                    if stamp > bound:\n                        fresh",
        "                    if stamp >= bound:\n                        fresh",
        LATE_ROWS,
    ),
    "the largest window is one longer": (
        STRICT,
        "    bound = now - longest\n",
        "    bound = now - longest - 1\n",
    ),
    "the largest window is one shorter": (
        STRICT,
        "    bound = now - longest\n",
        "    bound = now - longest + 1\n",
    ),
    "answers at the bound": (
        ANSWERS,
        'if objects[i]["stamp"] > now[g] - length:',
        'if objects[i]["stamp"] >= now[g] - length:',
    ),
    "due is not noticed at its instant": (STRICT, 'if groups[g]["due"] <= now:', 'if groups[g]["due"] < now:'),
    "arrival and expiry are two steps": (STRICT, "now - (joint and not silent))", "now)"),
    # --- dominance
    "dominance bound k - 1": (
        STRICT,
        '                if objects[i]["dom"] >= K:',
        '                if objects[i]["dom"] >= K - (K > 1):',
    ),
    "dominance bound k + 1": (
        STRICT,
        '                if objects[i]["dom"] >= K:',
        '                if objects[i]["dom"] >= K + 1:',
    ),
    "a late arrival needs k + 1 dominators": (STRICT, "if dominators >= K:", "if dominators >= K + 1:"),
    "a late arrival needs k - 1 dominators": (STRICT, "if dominators >= K:", "if dominators >= K - 1:"),
    "equal times do not dominate": (
        STRICT,
        '            if objects[i]["stamp"] <= stamp:\n                objects[i]["dom"] += 1',
        '            if objects[i]["stamp"] < stamp:\n                objects[i]["dom"] += 1',
    ),
    "a late arrival dominates all below": (
        STRICT,
        '            if objects[i]["stamp"] <= stamp:\n                objects[i]["dom"] += 1',
        '            if True:\n                objects[i]["dom"] += 1',
        LATE_ROWS,
    ),
    "dominators of equal time are not counted": (
        STRICT,
        'dominators += objects[i]["stamp"] >= stamp',
        'dominators += objects[i]["stamp"] > stamp',
    ),
    "only the late look for dominators": (
        STRICT,
        'kind == STRICT and stamp <= groups[g]["newest"]:',
        'kind == STRICT and stamp < groups[g]["newest"]:',
    ),
    "the skyband of the first query's k": (
        STATE,
        'K = max(K, queries[q]["k"])',
        'K = queries[0]["k"]',
    ),
    "refit forgets the dominated": (
        ANSWERS,
        'if objects[i]["dom"] >= K:',
        'if objects[i]["dom"] >= K + 1:',
        ("tests/topk/test_golden.py", "-k", "smaller_k"),
    ),
    # --- the clock
    "idle groups do not expire": (
        GROUPED,
        "np.flatnonzero(engine.due <= arrivals.clock)",
        "np.flatnonzero(engine.due < -NEVER)",
    ),
    "the clock is not carried from push to push": (
        "monitor/loop.py",
        "self.state.clock, self.state.ahead = push.clock, None\n        self.state.serial",
        "self.state.serial",
    ),
    "the clock is not carried from group to group": (
        "engines/adapter.py",
        "numbers[0, here] if clocks is None else clocks[here], push.clock",
        "numbers[0, here] if clocks is None else push.times[here], push.clock",
    ),
    "the clock does not pass rows that are rejected": (
        "monitor/loop.py",
        "known if accepted.all() else np.where(accepted, known, BEGINNING)",
        "known",
    ),
    "no expiry after the last arrival": (
        GROUPED,
        'visits["last"] = arrivals.clock if engine.timed else',
        'visits["last"] = arrivals.clock - 1 if engine.timed else',
    ),
    "late rows are never too late": (NUMBERING, "timely = ages < max(limits)", "timely = ages >= 0"),
    "the shortest window decides what is too late": (
        NUMBERING,
        "timely = ages < max(limits)",
        "timely = ages < min(limits)",
        LATE_ROWS,
    ),
    "a little late is not late": (NUMBERING, "else [1] * len(self.lengths)", "else [2] * len(self.lengths)"),
    # --- bookkeeping
    "due forgets the arrival": (STRICT, 'groups[g]["due"] = min(groups[g]["due"], stamp + shortest)', "pass"),
    "due by the largest window only": (
        STRICT,
        'due = min(due, views[v]["oldest"] + queries[v - g * Q]["length"])',
        "pass",
    ),
    "due forgets the promoted": (
        STRICT,
        'groups[g]["due"] = min(groups[g]["due"], objects[i]["stamp"] + queries[q]["length"])',
        "pass",
        engines("SA", only="short-long"),
    ),
    "due forgets the unseen": (STRICT, "due = oldest + longest if oldest < NEVER else NEVER", "due = NEVER"),
    "oldest forgets the arrival": (STRICT, 'views[v]["oldest"] = min(views[v]["oldest"], stamp)', "pass"),
    "oldest forgets the promoted": (
        STRICT,
        'views[v]["oldest"] = min(views[v]["oldest"], objects[i]["stamp"])',
        "pass",
    ),
    "departing ends before a member has left": (
        STRICT,
        "if left == most and oldest == bound + 1:",
        "if oldest == bound + 1:",
    ),
    "departing ends with the first member that leaves": (
        STRICT,
        "if left == most and oldest == bound + 1:",
        "if left == most:",
    ),
    "of equal times one member leaves": (
        STRICT,
        "most = 1 if report.joint else NEVER",
        "most = 1",
    ),
    "nothing is dropped at its instant": (
        STRICT,
        'or groups[g]["oldest"] <= bound:',
        'or groups[g]["oldest"] < bound:',
    ),
    "of equal times one object is dropped": (
        STRICT,
        'alone = kind == STRICT and report.joint and groups[g]["oldest"] == bound',
        'alone = kind == STRICT and groups[g]["oldest"] == bound',
    ),
    "of several numbers one object is dropped": (
        STRICT,
        'alone = kind == STRICT and report.joint and groups[g]["oldest"] == bound',
        "alone = kind == STRICT and report.joint",
    ),
    "the oldest that stays is not looked for": (
        STRICT,
        "if oldest == bound + 1:  # none can be older",
        "if oldest >= bound + 1:  # none can be older",
    ),
    "oldest forgets the members that stay": (
        STRICT,
        '                oldest = min(oldest, objects[i]["stamp"])\n            if left',
        "                pass\n            if left",
    ),
    "the edge stays where an object is dropped": (
        STRICT,
        '                        views[v]["edge"] -= w < views[v]["edge"]',
        "                        pass",
    ),
    "the edge stays where an object expires": (
        STRICT,
        '            views[v]["edge"] -= p < views[v]["edge"]',
        "            pass",
    ),
    "the edge moves one too early": (
        STRICT,
        '            views[v]["edge"] -= p < views[v]["edge"]',
        '            views[v]["edge"] -= p <= views[v]["edge"]',
    ),
    "the edge does not come back": (STRICT, "while edge > p and not", "while False and edge > p and not"),
    "promotion passes the arrival": (
        STRICT,
        "promote(skybands, report, g, q, bound, p)",
        "promote(skybands, report, g, q, bound, -1)",
    ),
    "newest is the last stamp": (
        STRICT,
        'groups[g]["newest"] = max(groups[g]["newest"], stamp)',
        'groups[g]["newest"] = stamp',
        LATE_ROWS,
    ),
    "first is every time": (CHANGES, 'diff > 0 and not objects[i]["shown"] & BITS[q]', "diff > 0"),
    "net batches lose the dropped": (
        STRICT,
        "                    drop(objects, i, report)\n",
        "",
        SHARED,
    ),
    "net batches lose the expired": (STRICT, "        drop(objects, head + p, report)\n", ""),
    "a run loses its last record when it moves": (
        RECORDS,
        "for i in range(size - 1, -1, -1):",
        "for i in range(size - 2, -1, -1):",
    ),
    "steps at an instant find a later row": (
        ROUTING,
        'if now[middle] < changes[i]["instant"]:',
        'if now[middle] <= changes[i]["instant"]:',
    ),
    "numbers do not go on": (NUMBERING, "np.int64), before.copy()", "np.int64), 0 * before"),
    "numbers of a new query do not go on": (
        "monitor/placement.py",
        "np.maximum(numbers.counts, adapter.largest(), out=numbers.counts)",
        "pass",
    ),
    "expiries after the arrivals of their instant": (GROUPED, 'out["instant"], "left")', 'out["instant"], "right")'),
    "an object that fails where is an answer": (BASE, "chosen, slices = thin(chosen, slices, eligible)", "pass"),
    "null is no group of its own": (ROUTING, "if len(valid) and not valid[i]:", "if False:"),
    "distances are squares": (
        "engines/adapter.py",
        "return scoring_of(self.by).score(self.keys(keys))",
        "return self.keys(keys)",
    ),
    "refit forgets what was shown": (ANSWERS, 'objects[i]["shown"] = shown', 'objects[i]["shown"] = 0'),
    # --- looking ahead
    "look-ahead: an older tie counts": (
        AHEAD,
        'hopeless[i] &= size == K and best[0] > arrivals[i]["key"]',
        'hopeless[i] &= size == K and best[0] >= arrivals[i]["key"]',
        AHEAD_AND_BLOCK,
    ),
    "look-ahead: a newer tie does not count": (
        AHEAD,
        'hopeless[i] = size == K and best[0] >= arrivals[i]["key"]',
        'hopeless[i] = size == K and best[0] > arrivals[i]["key"]',
        AHEAD_AND_BLOCK,
    ),
    "look-ahead: K - 1 older ones": (
        AHEAD,
        "    best = np.empty(K)\n",
        "    best = np.empty(max(1, K - 1))\n",
        AHEAD_AND_BLOCK,
    ),
    "look-ahead: no older ones": (
        AHEAD,
        "                if not net:\n",
        "                if False:\n",
        AHEAD_AND_BLOCK,
    ),
    "look-ahead: no newer ones": (
        AHEAD,
        'hopeless[i] = size == K and best[0] >= arrivals[i]["key"]',
        "hopeless[i] = True",
        AHEAD_AND_BLOCK,
    ),
    "look-ahead: older ones for net changes too": (
        AHEAD,
        "                if not net:\n",
        "                if True:\n",
        AHEAD_AND_BLOCK,
    ),
    "look-ahead: net changes for each arrival": (
        BLOCK,
        "K, reach, self.net, hopeless)",
        "K, reach, True, hopeless)",
        AHEAD_AND_BLOCK,
    ),
    "look-ahead: a block one too long": (
        AHEAD,
        'arrivals[high]["now"] - arrivals[low]["now"] < reach',
        'arrivals[high]["now"] - arrivals[low]["now"] <= reach',
        AHEAD_AND_BLOCK,
    ),
    "look-ahead: blocks without end": (
        AHEAD,
        'while high < end and arrivals[high]["now"] - arrivals[low]["now"] < reach:',
        "while high < end:",
        AHEAD_AND_BLOCK,
    ),
    "look-ahead: late ones are left out too": (
        AHEAD,
        'if arrivals[i]["stamp"] == arrivals[i]["now"]:\n            hopeless[i] = ',
        'if arrivals[i]["stamp"] <= arrivals[i]["now"]:\n            hopeless[i] = ',
        AHEAD_AND_BLOCK,
    ),
    "look-ahead: late ones are counted on": (
        AHEAD,
        'if arrivals[i]["stamp"] == arrivals[i]["now"]:\n            hopeless[i] &= ',
        'if arrivals[i]["stamp"] <= arrivals[i]["now"]:\n            hopeless[i] &= ',
        AHEAD_AND_BLOCK,
    ),
    "look-ahead: the smallest k": (
        BLOCK,
        'K, reach = int(self.queries["k"].max()), int(self.queries["length"].min())',
        'K, reach = int(self.queries["k"].min()), int(self.queries["length"].min())',
        AHEAD_AND_BLOCK,
    ),
    "look-ahead: the largest window": (
        BLOCK,
        'K, reach = int(self.queries["k"].max()), int(self.queries["length"].min())',
        'K, reach = int(self.queries["k"].max()), int(self.queries["length"].max())',
        AHEAD_AND_BLOCK,
    ),
    "look-ahead: the heap loses its order": (
        AHEAD,
        "if child + 1 < size and best[child + 1] < best[child]:",
        "if False:",
        AHEAD_AND_BLOCK,
    ),
    # --- snapshots
    "snapshot: no views": (
        BASE,
        "        views = self.views.reshape(-1, Q)[groups].reshape(-1)",
        "        views = _views(Q * len(groups))",
    ),
    "snapshot: no objects' marks": (
        BASE,
        "        self.tally[:] = len(objects), 0",
        '        self.tally[:] = len(objects), 0\n        self.objects["shown"] = self.objects["inside"]',
        STORED,
    ),
    "snapshot: no groups' newest": (
        BASE,
        "        chosen = unplaced(self.groups[groups])\n",
        '        chosen = unplaced(self.groups[groups])\n        chosen["newest"] = -NEVER\n',
    ),
    "snapshot: no due": (
        BASE,
        "        chosen = unplaced(self.groups[groups])\n",
        '        chosen = unplaced(self.groups[groups])\n        chosen["due"] = NEVER\n',
    ),
    "snapshot: no counts": (
        "monitor/snapshot.py",
        "array_stream(adapter.numbering.counts.T[order], bounds)",
        "array_stream(0 * adapter.numbering.counts.T[order], bounds)",
    ),
    "snapshot: no moments": (
        "monitor/snapshot.py",
        "array_stream(adapter.numbering.last_times[order], bounds)",
        "array_stream(0 * adapter.numbering.last_times[order], bounds)",
        engines("SA", only="come"),
    ),
    "snapshot: no clock": ("monitor/snapshot.py", '"clock": state.clock', '"clock": -(2**62)'),
    "snapshot: no serial": ("monitor/snapshot.py", '"serial": state.serial', '"serial": 0', LATE_ROWS),
    "snapshot: no groups": ("monitor/snapshot.py", "    if columns and len(columns[0]):\n", "    if False:\n", EMPTY),
    "snapshot: no lanes": (
        "monitor/snapshot.py",
        '"lanes": adapter.sequences().tolist()',
        '"lanes": [0] * len(adapter.sequences())',
        LATE_ROWS,
    ),
    "snapshot: no order of queries": (
        "monitor/snapshot.py",
        '"order": list(state.adapters)',
        '"order": sorted(state.adapters, reverse=True)',
    ),
    # --- what RA and PA prune
    "prune: K - 1 dominators": (
        PRUNE,
        "(known == K and stamp <= recent[0])",
        "(known >= max(1, K - 1) and stamp <= recent[0])",
        RA,
    ),
    "prune: what is about to expire": (PRUNE, "if stamp <= bound or", "if stamp <= bound + 1 or", RA),
    "prune: the heap keeps the oldest": (
        AHEAD,
        "if child + 1 < size and best[child + 1] < best[child]:",
        "if False:",
        RA_FALLING,
    ),
    "prune: the edge stays": (PRUNE, 'views[v]["edge"] -= w < views[v]["edge"]', "pass", RA),
    "prune: beyond the limit only": (
        STRICT,
        'w + 1 - K >= caps[g]["limit"]',
        'w + 1 - K > caps[g]["limit"]',
        TABLES,
    ),
    "prune: the limit stays": (
        PRUNE,
        'skybands.caps[g]["limit"] = math.ceil((1 + skybands.rule[0]["gamma"]) * max(0, w - K))',
        "pass",
        TABLES,
    ),
    "cap: one more": (PRUNE, "    if size > most:\n", "    if size > most + 1:\n", TABLES),
    "cap: the threshold of the last but one": (
        PRUNE,
        'caps[g]["threshold"] = objects[head + size - 1]["key"]',
        'caps[g]["threshold"] = objects[head + size - 2]["key"]',
        TABLES,
    ),
    "loosen: at the floor every arrival is good": (
        PRUNE,
        'if size - K >= rule[0]["floor"]',
        'if size - K > rule[0]["floor"]',
        TABLES,
    ),
    "loosen: by the whole gap": (PRUNE, 'rule[0]["growth"] * (', "1 * (", TABLES),
    "loosen: the wrong way": (
        PRUNE,
        'threshold = caps[g]["threshold"] - rule',
        'threshold = caps[g]["threshold"] + rule',
        TABLES,
    ),
    # --- how many candidates
    "odds: a wide margin": (
        "engines/topk/odds.py",
        "_MARGIN = 1e-9",
        "_MARGIN = 1",
        ODDS,
    ),
    "odds: the rank at the bound is left out": (
        "engines/topk/odds.py",
        "if beyond >= math.exp(bound - unit):",
        "if chance >= math.exp(bound - unit):",
        ODDS,
    ),
    # --- buffers and filters
    "buffer: half a window": (BUFFERED, "reach = (length - 1) // 2", "reach = length // 2", BUFFERS),
    "buffer: one waits too long": (
        FILTERS,
        'waiting[head + gone]["stamp"] <= last:',
        'waiting[head + gone]["stamp"] < last:',
        BUFFERS,
    ),
    "buffer: late ones wait": (
        FILTERS,
        'if arrivals[a]["stamp"] < arrivals[a]["now"]:',
        "if False:",
        BUFFERS,
    ),
    "buffer: what waits is forgotten": (BUFFERED, "alive[waiting[waiting >= serial] - serial] = True", "pass", BUFFERS),
    "buffer: no answer of a shorter window": (
        BUFFERED,
        'if spec.length == self.queries["length"][query]:',
        "if True:",
        BUFFERS,
    ),
    "buffer: refit forgets what waits": (BUFFERED, "        self.admit(silent, sizes)\n", "", REPLACED),
    "filter: the first attempt needs fewer above": (
        FILTERS,
        'waiting[i]["serial"]) < K:',
        'waiting[i]["serial"]) < K - 1:',
        BUFFERS,
    ),
    "filter: the older of a tie above": (
        FILTERS,
        'objects[head + p - 1]["key"] <= key',
        'objects[head + p - 1]["key"] < key',
        BUFFERS,
    ),
    "filter: the second attempt by K - 1": (
        FILTERS,
        'filters.objects[filters.groups[g]["head"] + K - 1]["key"]',
        'filters.objects[filters.groups[g]["head"] + max(0, K - 2)]["key"]',
        LONG_BUFFERS,
    ),
    "filter: a few are K": (
        FILTERS,
        '["size"] < K:\n        return -np.inf',
        '["size"] < K:\n        return np.inf',
        FEW_TIES,
    ),
    "filter: holds what has left the buffer": (
        FILTERS,
        'forget(filters, K, g, waiting[head + gone - 1]["serial"])',
        "pass",
        BUFFERS,
    ),
    "filter: what has waited comes with the next": (
        FILTERS,
        'before = arrivals[low]["now"] - 1',
        'before = arrivals[low]["now"]',
        LONG_BUFFERS,
    ),
    "filter: what has waited comes later": (
        FILTERS,
        'min(before, waiting[i]["stamp"] + reach)',
        'min(before, waiting[i]["stamp"] + 2 * reach + 2)',
        BUFFERS,
    ),
    "filter: the threshold never falls": (
        FILTERS,
        "loosen(filters, K, g, head, left)",
        "pass",
        FEW_TIES,
    ),
    # --- many scorings: keys and the index
    "score: the key of one is not turned": (SCORES, "return -key if turned else key", "return key", PA_INDEX),
    "index: the best term of a turned sum": (
        SCORES,
        "(high if (at > 0) != turned else low)",
        "(high if at > 0 else low)",
        INDEX,
    ),
    "index: the best term is the farthest": (
        SCORES,
        "away = below if below > 0 else (above if above < 0 else 0.0)",
        "away = max(abs(below), abs(above))",
        INDEX,
    ),
    "index: the best term is at the cell's foot": (
        SCORES,
        "away = max(abs(below), abs(above))",
        "away = abs(below)",
        INDEX,
    ),
    "index: cells are no wider than they are": (
        GRID,
        "slack = 1e-9 * width * grid.side + 1e-15 * abs(origin)",
        "slack = 0.0",
        OTHERS,
    ),
    "index: the first cells are closed": (GRID, "-np.inf if place == 0 else", "", BUFFER_INDEX),
    "index: the last cells are closed": (GRID, "np.inf if place == grid.side - 1 else", "", BUFFER_INDEX),
    "index: all keys fall with further terms": (
        GRID,
        "ceiling = join_terms(form, ceiling, terms[i, side])",
        "pass",
        PA_INDEX,
    ),
    "index: a list that is not deep enough": (
        GRID,
        "if not (threshold - 3 * slack <= grid.depths[s] <= threshold):",
        "if not threshold - 3 * slack <= grid.depths[s]:",
        BUFFER_INDEX,
    ),
    "grid: a row ends with its first cell": (GRID, "ranges[n - 1] = cell", "pass", BUFFER_INDEX),
    "grid: nothing is beyond it": (GRID, "0.0 if not place > 0 else", "", BUFFER_INDEX),
    # --- the ring
    "depth: the bound without what is gone": (
        KERNEL_OF_SLOTS,
        'bound = max(block["left"], (plan.last',
        "bound = max(-NEVER, (plan.last",
        DRIFT,
    ),
    "depth: old ones count": (
        DEPTHS,
        'found += objects[i]["stamp"] > bound\n        i += 1',
        "found += 1\n        i += 1",
        DRIFT,
    ),
    "depth: K - 1 are enough": (KERNEL_OF_SLOTS, "if (above < K or", "if (above < K - 1 or", DRIFT),
    "depth: deepened without a new one": (DEPTHS, '    lanes[s]["depth"] = depth\n    n = 0', "    n = 0", WAVES),
    "depth: lifted without ties": (
        DEPTHS,
        'while first < size and objects[head + first]["key"] == depth:',
        "while False:",
        TIES,
    ),
    "depth: lifted without what was shown": (DEPTHS, ' or objects[i]["shown"]', "", SHOWN),
    "ring: late ones are in it": (
        RING,
        "        end += stream.stamps[a] == stream.now[a]",
        "        end += 1",
        LATE_BUFFER,
    ),
    "ring: attributes of late ones are in it": (
        RING,
        "            i += stream.stamps[a] == stream.now[a]",
        "            i += 1",
        LATE_BUFFER,
    ),
    "depth: net changes skip what stays": (
        "engines/topk/pool.py",
        'stream.last - self.longest, "right"',
        'stream.last - self.longest + 1, "right"',
        NET,
    ),
    # --- slots
    "slots: one that has left is still there": (
        CHUNK,
        'lanes["k"][places] = lanes["size"][places] =',
        'lanes["size"][places] =',
        COME_AND_GO,
    ),
    "slots: numbers of a new one do not go on": (
        NUMBERING,
        "self.offsets[query] = counts.max(initial=0) - self.next()[0].max(initial=0)",
        "self.offsets[query] = 0",
        NUMBERS_GO_ON,
    ),
    "slots: boxes without their ends": (SEGMENTS, "low <= data[j, i] <= high", "low < data[j, i] < high", COME_AND_GO),
    "slots: NaN lies in no range": (SLOT_ARRIVALS, "values = np.where(known, np.inf, values)", "pass", COME_AND_GO),
    "slots: a rejected row moves the window": (
        SLOTS_ADAPTER,
        "self.slots_engine.reject(slots, push.serial + one.row)",
        "pass",
        ONE_REJECTS,
    ),
    "slots: a rejected row is counted": (SLOTS_ADAPTER, "self.numbering.shifts[slots] += 1", "pass", ONE_REJECTS),
    "slots: too late for the longest window only": (
        KERNEL_OF_SLOTS,
        "n += history.stamps[p] > history.now[p] - length",
        "n += 1",
        LATE_SLOTS,
    ),
    # --- lanes
    "lane: the earlier arrival of equal times first": (
        REPLAY,
        'and objects[head + p - 1]["serial"] < own)',
        'and objects[head + p - 1]["serial"] > own)',
        LATE,
    ),
    "lane: windows are one longer": (
        REPLAY,
        'objects[i]["stamp"])\n            if oldest == NEVER or oldest + length > now:',
        'objects[i]["stamp"])\n            if oldest == NEVER or oldest + length >= now:',
        LATE,
    ),
    "block: the older of a tie above": (
        REPLAY,
        'keys[begin + order[c]] >= objects[head + i]["key"]',
        'keys[begin + order[c]] > objects[head + i]["key"]',
        RINGS,
    ),
    "block: the older of a tie within it above": (
        REPLAY,
        "(some[b] == some[a]) & (where[b] > where[a])",
        "(some[b] == some[a]) & (where[b] < where[a])",
        RINGS,
    ),
    "block: U of those that expire": (REPLAY, 'stay += objects[head + w]["stamp"] > bound', "stay += 1", RINGS),
    "block: a tie with U waits": (REPLAY, "if keys[begin + order[c]] >= U:", "if keys[begin + order[c]] > U:", RINGS),
    "block: counters forget the block": (REPLAY, 'merged[j]["dom"] + came', 'merged[j]["dom"]', RINGS),
    "block: all of the block dominate": (REPLAY, "dom += recent[c] >= stamp", "dom += 1", RINGS),
    "block: equal times do not dominate": (REPLAY, "recent[c] >= stamp", "recent[c] > stamp", IN_ORDER),
    "block: equal times before it do not dominate": (
        REPLAY,
        "                if stamp <= newest:",
        "                if stamp < newest:",
        IN_ORDER,
    ),
    "block: the K-th stays": (REPLAY, "                    if held == K:", "                    if False:", RINGS),
    "block: the edge stays behind what is gone": (
        REPLAY,
        "while edge > 0 and not valid[edge - 1]:",
        "while False:",
        RINGS,
    ),
    "block: windows are one longer": (REPLAY, "if dom >= K or stamp <= bound:", "if dom >= K or stamp < bound:", RINGS),
    "block: arrival and expiry are two steps": (
        REPLAY,
        "(instant == now and not joint)",
        "instant == now",
        RINGS,
    ),
    # --- grids over objects
    "grid: the older of a tie above": (WINDOW_STATE, "(stamp > stamp2 or", "(stamp < stamp2 or", IN_GRID),
    "grid: boxes without their ends": (WINDOW_STATE, "<= data[i, j] <=", "< data[i, j] <", IN_GRID),
    "grid: an object is in a slab of other numbers": (
        OBJECTS,
        "if edges[j, middle] <= x:",
        "if edges[j, middle] > x:",
        IN_GRID,
    ),
    "grid: the object before does not know that its next has left": (
        OBJECTS,
        'slots[before]["next"] = after',
        "pass",
        IN_GRID,
    ),
    "grid: the object after does not know that the one before it has left": (
        OBJECTS,
        'slots[after]["before"] = before',
        "pass",
        IN_GRID,
    ),
    "grid: a cell keeps its last object": (OBJECTS, 'cells[cell]["tail"] = before', "pass", IN_GRID),
    "grid: no factor is below zero": (
        OBJECTS,
        "signed |= form == PRODUCT and queries.points[s, j] + edges[j, 0] < 0",
        "pass",
        IN_GRID,
    ),
    "grid: cells that only hold a tie are not searched": (
        OBJECTS,
        'bounds[0] < best[found - 1]["key"]',
        'bounds[0] <= best[found - 1]["key"]',
        EQUALS,
    ),
    "grid: cells that only hold a tie are not listed": (INFLUENCE, "if bound >= to:", "if bound > to:", MANY_TIES),
    "grid: the best of a slab is at its head": (
        PREFERENCES,
        "at * (high if (at > 0) != turned else low)",
        "at * high",
        IN_GRID,
    ),
    "grid: squares are largest at the head": (
        PREFERENCES,
        "at * (max(low * low, high * high) if",
        "at * (high * high if",
        IN_GRID,
    ),
    "grid: open ends are closed": ("query/expressions/shapes.py", "nextafter(bound, inf)", "bound", IN_GRID),
    "upkeep: objects stay a moment longer": (
        UPKEEP,
        "alone = due < until or (due == until and",
        "alone = due < until or (False and",
        ON_TIME,
    ),
    "upkeep: the floor is too high": (
        RUNS,
        'state[s]["key"] = records[head + size - 1]["key"]',
        'state[s]["key"] = records[head]["key"]',
        IN_GRID,
    ),
    "upkeep: one short is enough": (UPKEEP, "if size < k and (", "if size < k - 1 and (", IN_GRID),
    "upkeep: what was reported before is forgotten": (
        UPKEEP,
        'pop_reported(growing.reported, window.reported_heads, s, best[i]["serial"])',
        "False",
        IN_GRID,
    ),
    "upkeep: k - 1 dominate": (RUNS, '["dom"] < k:', '["dom"] < k - 1:', DOMINANCE),
    "upkeep: the threshold itself": (
        UPKEEP,
        'key > specs[s]["threshold"] and in_box(',
        'key >= specs[s]["threshold"] and in_box(',
        ABOVE,
    ),
    "lists: the threshold algorithm stops at a tie": (
        LISTS,
        'best[found - 1]["key"] > limit',
        'best[found - 1]["key"] >= limit',
        EQUALS,
    ),
    "above: what came and left in a batch is reported": (
        WINDOWED,
        "out = out[~(gone",
        "out = out[~(False & gone",
        ABOVE,
    ),
    "memory: what has left a shorter window is forgotten": (
        WINDOW_ADAPTER,
        "adapter.machine.remember(max(longest[key] for key in keys))",
        "pass",
        LONGER,
    ),
    "memory: a snapshot has none": (SNAPSHOT, "memory.add(s, g, others", "(s, g, others", LONGER),
    # --- windows without end
    "ever: ties by arrival, whatever their times": (
        EVER,
        'if other["key"] > key or (other["key"] == key and other["stamp"] > stamp):',
        'if other["key"] > key:',
        ENDLESS,
    ),
    "ever: the older of equals ranks above": (
        EVER,
        '(other["key"] == key and other["stamp"] > stamp)',
        '(other["key"] == key and other["stamp"] >= stamp)',
        ENDLESS,
    ),
    "ever: one object more is kept": (
        EVER,
        "    if size == K:\n        drop",
        "    if size == K + 1:\n        drop",
        ENDLESS,
    ),
    "ever: a floor of which equals do not get in": (
        EVER,
        "if keys[i] >= floors[g]:",
        "if keys[i] > floors[g]:",
        ENDLESS,
    ),
    "ever: the floor does not rise": (EVER, "    if size + 1 == K:\n", "    if size + 2 == K:\n", ENDLESS),
    "ever: nothing leaves a full answer": (EVER, "if size >= bounds[q]:", "if size > bounds[q]:", ENDLESS),
    "ever: net batches forget what was there": (EVER, 'report.net and not groups[g]["open"]', "False", ENDLESS),
    "ever: above counts the threshold itself": (
        EVER,
        "if keys[i] > runs.bounds[q]:",
        "if keys[i] >= runs.bounds[q]:",
        ABOVE_EVER,
    ),
    "ever: what only the lowest threshold wants is lost": (
        LIST,
        "self.queries.min(keepdims=True)",
        "self.queries.max(keepdims=True)",
        ABOVE_EVER,
    ),
    "ever: a mapper counts on k - 1": (
        EVER,
        "outranked[i] = size == K and best[0] > key",
        "outranked[i] = size >= K - 1 and size > 0 and best[0] > key",
        MAPPED,
    ),
    "ever: a mapper leaves out equals": (EVER, "size == K and best[0] > key", "size == K and best[0] >= key", MAPPED),
    "ever: late rows count on those that are dropped": (
        "engines/topk/adapter.py",
        'self.algorithm == "BEST" and self.options.late == "drop"',
        "False",
        MAPPED,
    ),
    "ever: a late row is too late": (
        "engines/numbering.py",
        "if self.timed and min(limits) < EVER:",
        "if self.timed:",
        EXTREME,
    ),
    # --- families
    "family: huge numbers": ("query/scoring/forms.py", "TAME = 1e100", "TAME = 1e300", OTHERS),
    "family: split without the ring": (FAMILY, "engine.admit(silent, np.array([len(silent)]))", "pass", LEAVE_BUFFER),
    "family: no answer of a shorter window": (
        FAMILY,
        'if spec.length != self.queries["length"][0] and len(lane):',
        "if False:",
        LEAVE_BUFFER,
    ),
    "PA: an arrival that pushes an object out is not looked at": (
        LANES,
        'stop = first_from(stream.now, a, high, groups[s]["due"])',
        "stop = high",
        PA_LANES,
    ),
    "PA: a threshold below what was found": (
        LANES,
        'while a < high and caps[s]["threshold"] >= depth:',
        "while a < high:",
        PA_LANES,
    ),
    "PA: arrivals in the order of cells": (LANES, "sort_found(found, begin, end)", "pass", PA_INDEX),
    "filters of lanes: no second attempt": (
        LANES,
        "n = attempt_again(ring, keys, gone, bar_of(filters, K, s), before, report.serial, picked)",
        "pass",
        family("SASF", "drift-2-400 or waves-4-150"),
    ),
}


def mutant(name: str) -> Mutant:
    file, said, says, *tests = MUTANTS[name]
    return file, said, says, tests[0] if tests else SA


#: That all tests pass is for the other files to say; here: a copy without a change does not die of being one.
SOUND = (engines("SA", only="everything or short-long"), TABLES, LEAVE)


@pytest.mark.parametrize("tests", SOUND, ids=lambda tests: tests[-1])
def test_the_package_itself_passes(tests: tuple[str, ...], suite: Suite, tmp_path: Path) -> None:
    passes(tests, suite, tmp_path)


def test_every_mutant_applies() -> None:
    all_apply(map(mutant, MUTANTS))


@pytest.mark.parametrize("name", chosen(MUTANTS))
def test_mutant_dies(name: str, suite: Suite, tmp_path: Path) -> None:
    dies(mutant(name), suite, tmp_path)
