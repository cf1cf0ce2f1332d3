"""The invariants of engines of uncertain streams that kernels rely on, over all groups at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.arena import runs
from skyband.engines.contract import NEVER, Ints
from skyband.engines.invariants import (
    FAR,
    are_known,
    by_run,
    check_ages,
    distinct,
    near,
    owners,
    require,
    rising,
    within,
)
from skyband.engines.uncertain.kernels.prefix import PT, UK

if TYPE_CHECKING:
    from skyband.engines.uncertain.front_engine import FrontEngine

Records = NDArray[Any]


def check_window(tuples: Records, sizes: Ints) -> None:
    """Tuples of all groups, so many each: by age, with keys and probabilities."""
    require(near(tuples["stamp"]) and within(tuples["serial"], 0, NEVER - 1), "tuples have stamps and serials")
    require(not np.isnan(tuples["key"]).any(), "tuples have keys")
    require(((tuples["p"] > 0) & (tuples["p"] <= 1)).all(), "tuples exist with a probability in (0, 1]")
    require(rising(sizes, tuples["stamp"], tuples["serial"]), "tuples are in order of age")
    require(distinct(tuples["serial"], owners(sizes)), "a tuple is kept once")


def check_answers(answers: Records, sizes: Ints, of: Ints, tuples: Records, groups: Ints, by_rank: bool) -> None:
    """Reported answers, so many tuples each, of these groups; tuples, groups: what is kept."""
    known = are_known(answers["serial"], np.repeat(of, sizes), tuples["serial"], groups)
    require(known.all(), "answers are tuples of the window")
    require(near(answers["stamp"]) and not np.isnan(answers["key"]).any(), "answers have stamps and keys")
    require(within(answers["p"], 0, 1 + 1e-6), "answers have probabilities")
    if by_rank:
        require(within(answers["mark"], 1, NEVER) and rising(sizes, answers["mark"]), "answers have ranks")
    else:
        require(
            not answers["mark"].any() and distinct(answers["serial"], owners(sizes)), "a tuple is in an answer once"
        )


def check_tuples(engine: FrontEngine, now: Ints | None) -> None:
    """Windows, views and answers of an engine with fronts."""
    state, reported, Q = engine.state, engine.reported, len(engine.specs)
    groups, views, G = state.groups, state.views, len(state.groups)
    sizes, window = engine.kept, runs(state.window.records, state.window.runs, np.arange(G))
    check_window(window, sizes)
    require((window["p"] <= np.repeat(state.most, sizes)).all(), "no tuple is more probable than its group knows")
    check_ages(window["stamp"], sizes, now, FAR)  # after `refit` some have left the longest window
    require(now is None or (groups["now"] <= now).all(), "a group's clock has not passed")
    used, free = reported.slots.tolist()
    slots = np.concatenate([window["mark"][window["mark"] >= 0], reported.free[:free]])
    fits = 0 <= free <= used <= len(reported.entered) and within(window["mark"], -1, used - 1)
    require(fits and len(slots) == used and distinct(slots) and within(slots, 0, used - 1), "each slot has one owner")
    require(within(groups["base"], 0, FAR) and within(groups["target"], 0, FAR), "fronts have positions")
    require(within(groups["since"], 0, FAR) and within(groups["kept"], 0, FAR // 16), "steps are counted")
    require(within(groups["open"], 0, 1), "a batch is open, or none")
    newest = by_run(np.maximum, window["stamp"], sizes, -NEVER)
    require(
        (groups["newest"] >= newest).all() and near(groups["newest"][groups["newest"] > -NEVER]), "no tuple is newer"
    )
    require(near(groups["now"][groups["now"] > -NEVER]), "groups have a clock")
    none = np.isnan(groups["level"])
    require(not state.front.runs["size"][none].any(), "a front has a level")
    lows, firsts = views["low"].reshape(G, Q), views["first"].reshape(G, Q)
    for q in range(Q):
        before = window["stamp"] <= np.repeat(lows[:, q], sizes)
        first = groups["base"] + np.bincount(owners(sizes)[before], minlength=G)
        require((firsts[:, q] == first).all(), "the oldest valid tuple is where it should be")
        oldest = by_run(np.minimum, np.where(before, NEVER, window["stamp"]), sizes, NEVER)
        require(now is None or (oldest > now - engine.queries["length"][q]).all(), "what is due has left")
    require(within(views["guess"], 0, FAR // 4) and not np.isnan(views["floor"]).any(), "views have a floor")
    require(within(views["low"][views["low"] > -NEVER], -FAR, FAR - 1), "views have a clock")
    answers, each = reported.answers, reported.answers.runs["size"]
    shown, by_rank = runs(answers.records, answers.runs, np.arange(G * Q)), engine.semantics == UK
    if not groups["open"].any():
        check_answers(shown, each, np.arange(G * Q) // Q, window, owners(sizes), by_rank)
    if engine.semantics != PT:
        require((each <= np.tile(engine.queries["k"], G)).all(), "an answer has at most k")
    require(not by_rank or (shown["mark"] <= np.repeat(np.tile(engine.own, G), each)).all(), "no rank is beyond k")
