"""What approximate engines have in common: what they expect of rows, a sample that is kept whole, its precision.

One id in many (by a hash of it) is shadowed: all rows of these ids are kept exactly, beside what the engine keeps.
Every so many arrivals the shadows are held against the answer: who of them is in it, and who should be but is missing.
That is `precision` in `stats()`. It leans to the low side: who is missed counts as missed even if his rank is below
that of others who are missed too.

Everything happens at arrivals that their number in the group decides, so the answers do not depend on how a stream is
cut. An object that was dropped and comes back is `first` again.

An item is an instance, as in the paper: an object with a stamp. An instance that goes leaves what it holds to the next
older one of its object that stays, for as long as that lives: then it has several rows, at most one for each part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from skyband.engines.contract import Arrivals, Bools, Changes, Ints, Spec
from skyband.engines.incomplete.assembly import Parts
from skyband.engines.incomplete.base import Records
from skyband.engines.incomplete.kernels import rows as pieces
from skyband.engines.incomplete.kernels.assembly import ASK, OUT, Columns
from skyband.engines.incomplete.kernels.batches import squeeze_one, survey
from skyband.engines.incomplete.kernels.prospects import Sheet, appraise, fold, relink
from skyband.engines.incomplete.sketches import Sketches, choose
from skyband.kernels.records import CHANGE
from skyband.query.tuning import Tuning

OFTEN = 64  # arrivals of a group, at least, from one look at the shadows to the next
COARSEST = 3  # the sample begins with one id in 2^3
PLACES = ("level", "hits", "misses", "looks")  # numbers that each group has


class Approximate(Parts):
    """Rows that are likely to matter, and the shadows."""

    rule = ASK

    def __init__(self, asked: tuple[Spec, ...], tuning: Tuning, **more: Any) -> None:
        super().__init__(asked, tuning, **more)
        self.K, self.length = int(self.views["k"][0]), int(self.views["length"][0])
        self.period = max(OFTEN, 4 * self.K, 0 if self.timed else self.length // 16)
        self.shadow = Parts(asked, tuning, **(more | {"quiet": True, "register": None}))
        self.level, self.hits, self.misses, self.looks = (np.zeros(0, np.int64) for _ in PLACES)
        self.lore: dict[int, dict[str, Records]] = {}  # by group: what it knows of its stream
        self._fed = 0

    def _grow(self, total: int) -> None:
        before = len(self.packs)
        super()._grow(total)
        for group in range(before, len(self.packs)):
            self.packs["tick"][group] = min(self.period, self._patience(group))
        self.packs["limit"][before:] = self._limit(before, 0)
        more = len(self.packs) - len(self.level)
        self.level = np.concatenate([self.level, np.full(more, self._coarsest)])
        self.looks = np.concatenate([self.looks, np.full(more, self.period)])
        self.hits, self.misses = (
            np.concatenate([array, np.zeros(more, np.int64)]) for array in (self.hits, self.misses)
        )

    @property
    def _coarsest(self) -> int:
        """The sample begins with one id in 2 to the power of this."""
        return COARSEST

    def _limit(self, group: int, kept: int) -> int:
        """How many rows a group may have before it is asked for."""
        raise NotImplementedError

    # --- the stream

    def take(self, arrivals: Arrivals) -> Changes:
        self._fed, self._given = 0, arrivals
        return super().take(arrivals)

    def _run(self, columns: Columns, visits: Records, alive: Bools, arrivals: Arrivals) -> Records:
        self._columns, self._groups = columns, np.repeat(visits["group"], visits["end"] - visits["begin"])
        out = super()._run(columns, visits, alive, arrivals)
        self._feed(len(columns.names), arrivals.clock)
        del self._columns, self._groups, self._given
        return out

    def _feed(self, until: int, clock: int) -> None:
        """Shadows and sketches see the arrivals up to here."""
        here = slice(self._fed, until)
        self._fed = until
        names, groups = self._columns.names[here], self._groups[here]
        for group in np.unique(groups):
            mine = groups == group
            given = (self._columns.names, self._columns.parts, self._columns.stamps, self._columns.values)
            self._observe(int(group), *(column[here][mine] for column in given))
        chosen = np.zeros(len(names), np.bool_)
        choose(names, groups, self.level, self.tuning.seed, chosen)
        if not chosen.any() and not self.timed:
            return
        taken = np.flatnonzero(chosen) + here.start
        columns = Columns(*(column[taken] for column in self._columns))
        order = np.argsort(columns.rows, kind="stable")
        self.shadow.take(
            replace(
                self._given,
                rows=columns.rows[order],
                groups=self._groups[taken][order],
                keys=columns.values[order],
                stamps=columns.stamps[order],
                now=columns.now[order],
                names=columns.names[order],
                parts=columns.parts[order],
                clock=clock,
                more=False,
            )
        )

    def _observe(self, group: int, names: Ints, parts: Ints, stamps: Ints, values: Records) -> None:
        """More of a group's stream."""

    def _prune(self, group: int, alive: Bools, serial: int, out: Records, step: Records) -> Records:
        if self.facts[pieces.WRITTEN] + self._margin > len(out):
            out = self._make_room(OUT, out)
        self._feed(int(self.facts[pieces.ARRIVAL]), int(self.packs["now"][group]))
        pack = self.packs[group]
        if pack["dead"]:
            squeeze_one(self.store, self.views, group, alive, serial)
        seen = int(pack["seen"])
        if seen >= self.looks[group]:
            self.looks[group] = seen + self.period
            self._look(group)
        kept = int(self.packs["size"][group])
        if self._is_full(group):
            sheet = self._sheet(kept)
            appraise(
                self.store,
                self.recipe,
                sheet,
                group,
                self.K,
                self._odds(group),
                self._repeats(group),
                self.repeat,
                np.empty(self.d),
            )
            places, _ = self._places(np.array([group]))
            stays = np.zeros(len(self.rows), np.bool_)
            stays[places[self._choose(group, sheet)]] = True
            shrink(self, group, stays, alive, serial, out, step)
            self.packs["limit"][group] = self._limit(group, int(self.packs["size"][group]))
        self.packs["tick"][group] = min(int(self.looks[group]), seen + self._patience(group))
        return out

    def _is_full(self, group: int) -> bool:
        """Has something to go?"""
        return bool(self.packs["size"][group] > self.packs["limit"][group])

    def _patience(self, group: int) -> int:
        """How many arrivals a group may have until it is asked for, whatever it keeps."""
        return self.period

    def _choose(self, group: int, sheet: Sheet) -> Bools:
        """Which rows that lead an instance stay."""
        raise NotImplementedError

    def _sheet(self, size: int) -> Sheet:
        things = len(self.things)
        return Sheet(
            current=np.empty(size),
            best=np.empty(size),
            bound=np.empty(size),
            parts=np.empty(size, np.int64),
            wanted=np.empty(size),
            values=np.empty(things * self.d),
            counts=np.empty(things * self.d, np.int32),
            masks=np.empty(things, np.int64),
            held=np.empty(things),
            top=np.empty(4 * self.K),
        )

    def _odds(self, group: int) -> Records:
        """How likely the parts that an object lacks are to come."""
        return np.ones((2**self.d if self.d <= 6 else self.d, self.d))

    def _repeats(self, group: int) -> Records:
        """How often each part of an object comes: given, or estimated from the self-join size."""
        if self.tuning.repeats is not None:
            return np.full(self.d, float(self.tuning.repeats))
        known = self.lore.get(group, {}).get("repeats")
        return np.ones(self.d) if known is None else known

    # --- shadows

    def _look(self, group: int) -> None:
        """Hold the shadows against the answer; a sample that has grown too large is halved."""
        if group >= len(self.shadow.packs):
            return
        now, K = int(self.packs["now"][group]), self.K
        found = np.empty(int(self.shadow.packs["size"][group]), CHANGE)
        groups = np.array([group])
        bounds = np.array([now - self.length])
        store = self.shadow.store
        size = survey(store, self.recipe, groups, bounds, self.repeat, np.empty(self.d), found)
        answer = self._front(0, K, groups)
        worst = (-np.inf, 0, 0)
        if len(answer.key) == K:
            worst = (float(answer.key[-1]), int(answer.stamp[-1]), int(answer.serial[-1]))
        members = set(answer.serial.tolist())
        for one in found[:size]:
            if (float(one["key"]), int(one["stamp"]), int(one["serial"])) >= worst:
                hit = int(one["serial"]) in members
                self.hits[group] += hit
                self.misses[group] += not hit
        while self.shadow.packs["size"][group] - self.shadow.packs["dead"][group] > self._most_shadows(group):
            self._halve(group)

    def _most_shadows(self, group: int) -> int:
        return max(32, int(self.packs["size"][group]) // 8)

    def _halve(self, group: int) -> None:
        """Half of the ids of a sample are shadowed no more."""
        self.level[group] += 1
        shadow, none = self.shadow, np.zeros(1, np.bool_)
        squeeze_one(shadow.store, shadow.views, group, none, 2**62)
        places, _ = shadow._places(np.array([group]))
        names = shadow.things["name"][shadow.rows["object"][places]]
        keep = np.zeros(len(names), np.bool_)
        choose(names, np.full(len(names), group), self.level, self.tuning.seed, keep)
        stays = np.zeros(len(shadow.rows), np.bool_)
        stays[places[keep]] = True
        shrink(shadow, group, stays, none, 2**62, np.empty(0, CHANGE), np.zeros(1, CHANGE))

    def facts_of(self) -> dict[str, Any]:
        """Items of the sample, and the precision that it shows: of so many answers that were looked at."""
        hits, misses = int(self.hits.sum()), int(self.misses.sum())
        precision = hits / (hits + misses) if hits + misses else None
        return {"shadows": int(self.shadow.kept.sum()), "precision": precision, "looked": hits + misses}

    def _instances(self, group: int | None = None) -> int:
        """How many instances there are, in one group or in all."""
        groups = np.arange(len(self.packs)) if group is None else np.array([group])
        rows, _ = self._live(groups)
        leads = (rows["older"] < 0) | (self.rows["stamp"][rows["older"]] != rows["stamp"])
        return int(leads.sum())

    def size_of(self, query: int) -> int:
        return self._instances() + int(self.shadow.kept.sum())

    @property
    def nbytes(self) -> int:
        lore = sum(array.nbytes for known in self.lore.values() for array in known.values())
        return super().nbytes + self.shadow.nbytes + lore

    # --- state

    def _new_lore(self) -> dict[str, Records]:
        """What is known of a stream that has not begun."""
        return {}

    def snapshot(self, groups: Ints) -> dict[str, tuple[Records, Ints]]:
        ones = np.ones(len(groups), np.int64)
        self.shadow._grow(len(self.packs))
        state = super().snapshot(groups)
        state |= {f"shadow {name}": stored for name, stored in self.shadow.snapshot(groups).items()}
        state |= {name: (getattr(self, name)[groups], ones) for name in PLACES}
        known = np.array([int(group) in self.lore for group in groups], np.int64)
        state["known"] = (known, ones)
        for name, like in self._new_lore().items():
            arrays = [self.lore[int(group)][name].reshape(-1) for group in groups if int(group) in self.lore]
            flat = np.concatenate([np.empty(0, like.dtype), *arrays])
            state[f"lore {name}"] = (flat, known * like.size)
        return state

    def restore(self, state: Mapping[str, Records]) -> None:
        super().restore(state)
        self.shadow.restore({name: state[f"shadow {name}"] for name in self.shadow.snapshot(np.empty(0, np.int64))})
        self.level, self.hits, self.misses, self.looks = (state[name].astype(np.int64) for name in PLACES)
        self.lore = {int(group): {} for group in np.flatnonzero(state["known"])}
        for name, like in self._new_lore().items():
            flat = state[f"lore {name}"].reshape(len(self.lore), *like.shape)
            for known, array in zip(self.lore.values(), flat, strict=True):
                known[name] = array.copy()

    def check(self) -> None:
        super().check()
        self.shadow.check()


def shrink(engine: Parts, group: int, stays: Bools, alive: Bools, serial: int, out: Records, step: Records) -> None:
    """Keep these instances of a group, by the places of the rows that lead them."""
    fold(engine.store, group, stays, engine.repeat, alive, serial)
    head, size = int(engine.packs["head"][group]), int(engine.packs["size"][group])
    run = engine.order[head : head + size]
    run[:] = run[np.lexsort((engine.rows["serial"][run], engine.rows["stamp"][run]))]
    relink(engine.store, engine.recipe, engine.queries, group, engine.repeat, engine.net, out, step)


def sketches(lore: dict[str, Records], parts: int, length: int, seed: int) -> Sketches:
    """The sketches that a group's lore holds."""
    made = Sketches.__new__(Sketches)
    made.parts, made.length, made.seed = parts, length, seed
    made.bits, made.counters, made.rows = lore["bits"], lore["counters"], lore["rows"]
    made.width = max(1, -(-length // 8))
    return made
