"""What mutants of TopK and Above change, and the tests that they must die of; *_mutants.py list them by subject."""

from __future__ import annotations

from typing import TypeAlias

from mutation import Mutant

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
CONTRACT_FILE = "engines/contract.py"
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
EDGES = ("tests/topk/test_families.py", "-k", "edges_of_its_cell")
LEAVE = family("BLOCK", "leave")
LATE_BUFFER = family("RAPF", "arrival-late")
LEAVE_BUFFER = family("SASF", "leave")
SLOTS = "tests/topk/test_slots.py"
WIDE_LANES = (SLOTS, "-k", "too_many_to_be_kept")
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
LONGER = ("tests/topk/test_lent_window.py", "-k", "longer_window")
PA_LANES = family("PA-", "waves-4-150-no")
ENDLESS = ("tests/topk/test_ever.py", "-k", "topk_equals")
ABOVE_EVER = ("tests/topk/test_ever.py", "-k", "above_equals")
EXTREME = ("tests/topk/test_ever.py", "-k", "extreme")
MAPPED = ("tests/spark/test_ever.py", "-k", "streams or late or mappers")
ODDS = ("tests/topk/test_odds.py", "-k", "limit")
