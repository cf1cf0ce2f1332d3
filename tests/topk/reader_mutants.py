"""Mutants of readers: which queries an event touches, who comes and goes, what has been reported."""

from __future__ import annotations

from topk.mutated import Listed

READERS = "engines/topk/kernels/readers.py"
READER_ANSWERS = "engines/topk/kernels/reader_answers.py"
READER_STATE = "engines/topk/kernels/reader_state.py"
ENGINE = "engines/topk/readers.py"
SCENES = ("tests/topk/test_readers.py", "-k", "oracle or between")
TWINS = ("tests/topk/test_readers.py", "-k", "engines_of_bits or looked_at or begins or few")

MUTANTS: dict[str, Listed] = {
    # --- arrivals
    "readers: an equal score does not enter": (
        READERS,
        "if height < floors[v] or stamp",
        "if height <= floors[v] or stamp",
        TWINS,
    ),
    "readers: an older one of equals enters": (
        READERS,
        'if height == floors[v] and stamp < readings[v]["stamp"]:',
        "if height < floors[v]:",
        TWINS,
    ),
    "readers: an arrival at the bound enters": (
        READERS,
        "or stamp <= bound or done",
        "or stamp < bound or done",
        TWINS,
    ),
    "readers: one that has entered in the place of another enters again": (
        READERS,
        "stamp <= bound or done[q] == own:",
        "stamp <= bound:",
        TWINS,
    ),
    "readers: an equal score does not open a page": (
        READERS,
        'if height < pages[g * P + 1 + b]["floor"]:',
        'if height <= pages[g * P + 1 + b]["floor"]:',
        TWINS,
    ),
    "readers: an equal score does not open a group": (
        READERS,
        '    if height < pages[g * P]["floor"]:',
        '    if height <= pages[g * P]["floor"]:',
        TWINS,
    ),
    "readers: the last member is the one that left": (
        READERS,
        '    head, i = state.groups[g]["head"], end - 1',
        '    head, i = state.groups[g]["head"], end',
        TWINS,
    ),
    "readers: one that is not valid becomes the last member": (
        READERS,
        "while i >= p and state.stamps[head + i] <= bound:",
        "while i >= p and state.stamps[head + i] < bound:",
        TWINS,
    ),
    "readers: the arrival's stamp is not that of the oldest member": (
        READERS,
        '    readings[v]["oldest"] = min(readings[v]["oldest"], arriving[0]["stamp"])\n'
        '    if readings[v]["held"] == state',
        '    if readings[v]["held"] == state',
        TWINS,
    ),
    # --- one step of count windows
    "readers: the arrival takes the place though another ranks above it": (
        READERS,
        "while i < p and state.stamps[head + i] <= bound:",
        "while i < p:",
        TWINS,
    ),
    "readers: what leaves the longest window is dropped before it is reported": (
        READERS,
        "        if report.net or not report.joint:\n            discard",
        "        if True:\n            discard",
        TWINS,
    ),
    "readers: the rank of an arrival counts what has gone": (
        READERS,
        "            p -= 1  # one above it has gone",
        "            break",
        TWINS,
    ),
    "readers: expiries of the step come before it": (
        READERS,
        "expire(state, report, g, now - report.joint)",
        "expire(state, report, g, now)",
        TWINS,
    ),
    # --- expiry
    "readers: only one of equal times leaves": (
        READERS,
        "i = head + edge if report.joint else next_stamp(stamps, i + 1, head + edge, oldest)",
        "i = head + edge",
        TWINS,
    ),
    "readers: the next object comes in though it is as old": (
        READERS,
        "        if stamps[i] > oldest:\n            enters",
        "        if stamps[i] >= oldest:\n            enters",
        TWINS,
    ),
    "readers: windows end one later": (READERS, "while state.dues[v] <= until:", "while state.dues[v] < until:", TWINS),
    "readers: the last member of an answer that is no longer full stays": (
        READERS,
        '    if readings[v]["held"] < k:\n        set_open(readings, v)',
        "    pass",
        TWINS,
    ),
    "readers: the run keeps what has left the longest window": (
        READERS,
        '    if groups[g]["oldest"] > bound:\n        return',
        '    if groups[g]["oldest"] >= bound:\n        return',
        TWINS,
    ),
    "readers: late ones are not counted as dominated": (
        READERS,
        "                dominators += stamps[i] >= stamp",
        "                dominators += stamps[i] > stamp",
        TWINS,
    ),
    # --- net changes
    "readers: a member that has left by age is not looked for": (
        READER_ANSWERS,
        "height >= floors[v] or state.dues[v] <= last",
        "height >= floors[v]",
        TWINS,
    ),
    "readers: a page whose members leave is not looked at": (
        READER_ANSWERS,
        'if pages[page]["due"] > last and height < pages[page]["floor"]:',
        'if height < pages[page]["floor"]:',
        TWINS,
    ),
    "readers: an equal score changes no answer": (
        READER_ANSWERS,
        'touched[readers[q]["place"]] = height >= floors[v]',
        'touched[readers[q]["place"]] = height > floors[v]',
        TWINS,
    ),
    "readers: every page is looked at": (
        READER_ANSWERS,
        'if pages[page]["due"] > last and height < pages[page]["floor"]:',
        "if False:",
        TWINS,
    ),
    "readers: the first object of a batch is old": (
        READER_ANSWERS,
        'objects[best]["serial"] < since:',
        'objects[best]["serial"] <= since:',
        TWINS,
    ),
    "readers: what was a member stays one": (
        READER_ANSWERS,
        "gone = (moves.to[i] >= behind) | (moves.stamps[i] <= bound)",
        "gone = moves.to[i] >= behind",
        TWINS,
    ),
    "readers: who is pushed out is not reported": (
        READER_ANSWERS,
        "gone = (moves.to[i] >= behind) | (moves.stamps[i] <= bound)",
        "gone = moves.stamps[i] <= bound",
        TWINS,
    ),
    "readers: what was no member leaves": (
        READER_ANSWERS,
        "if gone & (moves.stamps[i] >= oldest):",
        "if gone:",
        TWINS,
    ),
    "readers: what stays enters": (
        READER_ANSWERS,
        "entered += valid & ((moves.came[j] >= edge) | (stamp < oldest))",
        "entered += valid",
        TWINS,
    ),
    "readers: in a longer window nothing that was above the edge enters": (
        READER_ANSWERS,
        "entered += valid & ((moves.came[j] >= edge) | (stamp < oldest))",
        "entered += valid & (moves.came[j] >= edge)",
        TWINS,
    ),
    "readers: the moves of the group before": (
        READER_ANSWERS,
        "        find_moves(state, g, copies, moves)\n        state.tally[3] = 1",
        "        state.tally[3] = 1",
        TWINS,
    ),
    # --- what has been reported
    "readers: every object enters for the first time": (
        READER_STATE,
        "    state.marks[row, byte] |= bit",
        "    state.marks[row, byte] |= np.uint8(0)",
        TWINS,
    ),
    "readers: marks are lost when rows are counted anew": (
        READER_STATE,
        '                move_marks(state.marks, objects[i]["shown"], marks, row)',
        "                pass",
        TWINS,
    ),
    "readers: marks are not stored": (
        ENGINE,
        "        marks = self.marks[objects",
        "        marks = 0 * self.marks[objects",
        TWINS,
    ),
    "readers: other queries have the marks of those in their places": (
        ENGINE,
        "bits[:, predecessors[predecessors >= 0]]",
        "bits[:, np.flatnonzero(predecessors >= 0)]",
        TWINS,
    ),
    # --- queries come and go
    "readers: a run is not cut down": (
        READER_ANSWERS,
        'if objects[i]["dom"] >= K or',
        "if",
        ("tests/topk/test_readers.py", "-k", "cut_down"),
    ),
    "readers: an edge is one short": (READER_STATE, '["serial"] >= serial))', '["serial"] > serial))', TWINS),
    "readers: the two zeros differ": (READER_STATE, "np.float64(key + 0.0)", "np.float64(key)", TWINS),
    "readers: low keys are high": (READER_STATE, "int(bits ^ ((bits >> 63) & NEVER))", "int(bits)", TWINS),
}
