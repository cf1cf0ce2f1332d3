"""Mutants of the runs of skybands: ties, expiry, dominance, the clock, bookkeeping."""

from __future__ import annotations

from topk.mutated import (
    ANSWERS,
    BASE,
    CHANGES,
    GROUPED,
    LATE_ROWS,
    NUMBERING,
    RECORDS,
    ROUTING,
    SHARED,
    STATE,
    STRICT,
    Listed,
    engines,
)

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
        "monitor/state.py",
        "        self.clock, self.ahead = push.clock, None\n",
        "",
    ),
    "the clock is not carried from group to group": (
        "engines/adapter.py",
        "numbers if clocks is None else clocks[here]",
        "numbers if clocks is None else push.times[here]",
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
    "numbers do not go on": (NUMBERING, "        after = before.copy()\n", "        after = 0 * before\n"),
    "numbers of a whole batch do not go on": (NUMBERING, "before, before + size, arrived", "before, before, arrived"),
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
}
