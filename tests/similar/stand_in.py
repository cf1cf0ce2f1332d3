"""A device of NumPy behind the door of devices: rounds vectors to bfloat16 and does all that a GPU does, slowly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.topk.device_turns import (
    FREE,
    Found,
    Moved,
    Rows,
    bars_of,
    distance_error,
    ring_stretches,
    scales_of,
    terms_of,
    undominated,
)
from skyband.kernels.records import NEVER
from skyband.query.scoring.forms import COSINE, DISTANCE, DOT

Array = NDArray[Any]
COLUMNS = {"norms": "f8", "bars": "f4", "depths": "f8", "dues": "i8", "counts": "i4"} | dict.fromkeys(
    ("k", "want", "length", "birth"), "i8"
)
RING = {"norms": "f8", "floors": "f4", "weights": "f4", "offsets": "f4", "slack": "f4"} | dict.fromkeys(
    ("stamps", "serials", "now"), "i8"
)


class NumPyLanes:
    """What torch_device.TorchLanes does on a GPU."""

    made = 0  # how many there have been

    def __init__(self, d: int, room: int, form: int, *, turned: bool, timed: bool) -> None:
        type(self).made += 1
        self.d, self.room, self.form, self.turned, self.timed = d, room, form, turned, timed
        self.size, self.rows, self.error, self.split, self.deepened = 0, 0, 0.0, 0, 0
        self.columns = {name: np.zeros(0, kind) for name, kind in COLUMNS.items()}
        self.columns |= {"unit": np.zeros((0, d), np.float32), "points": np.zeros((0, d))}
        self.columns |= {"keys": np.zeros((0, room)), "stamps": np.zeros((0, room), np.int64)}
        self.columns |= {"serials": np.zeros((0, room), np.int64), "flags": np.zeros((0, room), np.int8)}
        self.ring = {name: np.zeros(0, kind) for name, kind in RING.items()}
        self.ring |= {"half": np.zeros((0, d), np.float32), "matrix": np.zeros((0, d))}
        self.kind: Any = np.float32

    def write(
        self, places: Array, points: Array, unit: Array, norms: Array, numbers: dict[str, Array], runs: Moved | None
    ) -> None:
        self.size = max(self.size, int(places.max(initial=-1)) + 1)
        for name, old in self.columns.items():
            new = np.zeros((self.size, *old.shape[1:]), old.dtype)
            new[: len(old)] = old
            self.columns[name] = new
        half = rounded(unit)
        self.columns["unit"][places], self.columns["points"][places] = half, points
        if self.form != DISTANCE:
            self.error = max(self.error, float(np.sqrt(((unit - half) ** 2).sum(1)).max(initial=0)))
        self.columns["norms"][places], self.columns["counts"][places] = norms, 0
        self.columns["stamps"][places], self.columns["flags"][places] = FREE, 0
        for name, values in numbers.items():
            self.columns[name][places] = values
        if runs is not None:
            self.write_runs(places, runs)
        self._set_bars(places)

    def free(self, places: Array) -> None:
        for name, value in (("k", 0), ("stamps", FREE), ("flags", 0), ("counts", 0), ("dues", NEVER)):
            self.columns[name][places] = value
        self._set_bars(places)

    def write_runs(self, places: Array, runs: Moved) -> None:
        for name in Moved._fields:
            self.columns[name][places] = getattr(runs, name)
        self.columns["counts"][places] = (self.columns["stamps"][places] > FREE).sum(1)
        self._set_bars(places)

    def read_runs(self, places: Array) -> Moved:
        return Moved(*(self.columns[name][places].copy() for name in Moved._fields))

    def _set_bars(self, places: Array) -> None:
        depths, norms = self.columns["depths"][places], self.columns["norms"][places]
        with np.errstate(all="ignore"):
            bars = bars_of(depths, norms, self.form, self.turned, self.d)
        bars = np.where(self.columns["k"][places] > 0, bars, np.inf)
        self.columns["bars"][places] = np.where(np.isnan(bars), -np.inf, bars)

    def mark_shown(self) -> None:
        self.columns["flags"] |= (self.columns["flags"] & 1) << 1

    def reserve_rows(self, size: int, begin: int, end: int) -> None:
        old, before, self.rows = self.ring, self.rows, size
        self.ring = {name: np.zeros((size, *one.shape[1:]), one.dtype) for name, one in old.items()}
        for p in range(begin, end):
            for name, one in self.ring.items():
                one[p % size] = old[name][p % before]

    def put(self, rows: Rows) -> None:
        assert rows.norms is not None
        if rows.matrix.dtype == np.float64:
            self.kind = np.float64
        done = 0
        for at in ring_stretches(rows.begin, rows.begin + len(rows.stamps), self.rows):
            here = slice(done, done + at.stop - at.start)
            exact, norms, ring = rows.matrix[here].astype(np.float64), rows.norms[here], self.ring
            with np.errstate(all="ignore"):
                scale, tame = scales_of(norms, self.form)
                whole = np.where(tame[:, None], exact, 0.0) / scale[:, None]
                half = rounded(whole)
                wrong = np.sqrt(((whole - half) ** 2).sum(1))
                offsets, slack = terms_of(wrong, norms, self.error, self.d, self.form, self.turned)
                slack = np.where(tame, slack, np.inf)
                ring["half"][at], ring["matrix"][at], ring["norms"][at] = half, exact, norms
                ring["offsets"][at], ring["slack"][at], ring["floors"][at] = offsets, slack, offsets - slack
                ring["weights"][at] = 1 / scale if self.form == DOT else 1.0
            for name in ("stamps", "serials", "now"):
                ring[name][at] = getattr(rows, name)[here]
            done = here.stop

    def vectors(self, begin: int, end: int) -> Array:
        found: Array = self.ring["matrix"][np.arange(begin, end) % max(1, self.rows)].astype(self.kind)
        return found

    def lacking(self, left: int, last: int) -> Array:
        c = self.columns
        bound = np.maximum(last - c["length"], left)
        newer = (c["stamps"] > bound[:, None]).sum(1)
        found = np.flatnonzero((c["k"] > 0) & (c["depths"] > -np.inf) & (newer < c["k"]))
        self.deepened += len(found)
        return found

    def _key(self, lane: int, row: int) -> float:
        a, b, total = self.ring["matrix"][row], self.columns["points"][lane], -0.0
        for x, y in zip(a.tolist(), b.tolist(), strict=True):
            total += (x - y) * (x - y) if self.form == DISTANCE else x * y
        if self.form == COSINE:
            total /= float(self.ring["norms"][row]) * float(self.columns["norms"][lane])
        return -total if self.turned else total

    def find(self, low: int, high: int) -> bool:
        c, ring, rows = self.columns, self.ring, np.arange(low, high) % self.rows
        with np.errstate(all="ignore"):
            limit = c["bars"][:, None] * ring["weights"][rows] + ring["floors"][rows]
            below = c["unit"] @ ring["half"][rows].T < limit
        self.hits: list[tuple[int, int, float]] = []
        for lane, i in zip(*np.nonzero(~below & (c["bars"] < np.inf)[:, None]), strict=True):
            key = self._key(lane, rows[i])
            if key >= c["depths"][lane] and ring["serials"][rows[i]] >= c["birth"][lane]:
                self.hits.append((int(lane), int(rows[i]), key))
        return True

    def crowded(self, before: int, left: int, last: int) -> bool:
        c = self.columns
        coming = np.bincount([lane for lane, _, _ in self.hits], minlength=self.size)
        total = c["counts"] + coming
        for s in np.flatnonzero((total > self.room) | ((coming > 0) & (2 * total > 3 * c["want"]))).tolist():
            stamps, keys, serials = c["stamps"][s], c["keys"][s], c["serials"][s]
            alive = np.flatnonzero((stamps > FREE) & (stamps > before - c["length"][s]))
            best = alive[np.lexsort((-serials[alive], -stamps[alive], -keys[alive]))]
            lasting = keys[best][stamps[best] > max(last - int(c["length"][s]), left)]
            if len(lasting) >= c["want"][s]:
                c["depths"][s] = max(c["depths"][s], lasting[c["want"][s] - 1])
            best = best[undominated(stamps[best], int(c["k"][s]))]
            best = best[keys[best] >= c["depths"][s]]
            drop = np.setdiff1d(np.arange(self.room), best)
            c["stamps"][s, drop], c["flags"][s, drop], c["counts"][s] = FREE, 0, len(best)
            self._set_bars(np.array([s]))
        self.hits = [one for one in self.hits if one[2] >= c["depths"][one[0]]]
        coming = np.bincount([lane for lane, _, _ in self.hits], minlength=self.size)
        full = bool((c["counts"] + coming > self.room).any())
        self.split += full
        return full

    def replay(self, last: int, *, net: bool) -> Found:
        out: list[tuple[Any, ...]] = []
        for s in range(self.size):
            self._replay(s, [one for one in self.hits if one[0] == s], last, 1 if net else 3, out)
        self.hits = []
        if not out:
            return Found.nothing()
        kinds = (np.int64, np.float64, np.int64, np.int64, np.int64, np.int64, np.int8)
        return Found(*(np.array(one, kind) for one, kind in zip(zip(*out, strict=True), kinds, strict=True)))

    def _replay(self, s: int, hits: list[tuple[int, int, float]], last: int, shown: int, out: list[Any]) -> None:
        c, length, k = self.columns, int(self.columns["length"][s]), int(self.columns["k"][s])
        keys, stamps, serials, flags = (c[name][s] for name in ("keys", "stamps", "serials", "flags"))

        def tell(i: int, enters: int, step: int, at: int) -> None:
            out.append((s, keys[i], stamps[i], serials[i], step, at, enters | (flags[i] & 2)))
            flags[i] = (shown | flags[i]) if enters else flags[i] & 2

        while True:
            members = stamps[(flags & 1) > 0]
            due = int(members.min()) + length if len(members) else NEVER
            coming = int(self.ring["now"][hits[0][1]]) if hits else NEVER
            step = min(due, coming)
            if step > last or step == NEVER:
                break
            takes = coming < due if self.timed else coming == step
            at = int(self.ring["serials"][hits[0][1]]) if takes else -1
            old = (stamps > FREE) & (stamps <= step - length)
            for i in np.flatnonzero(old & ((flags & 1) > 0)).tolist():
                tell(i, 0, step, at)
            stamps[old], flags[old] = FREE, 0
            if takes:
                _, row, key = hits.pop(0)
                if self.ring["stamps"][row] > step - length:
                    i = int(np.argmax(stamps == FREE))
                    keys[i], stamps[i], serials[i], flags[i] = key, self.ring["stamps"][row], at, 0
            alive = np.flatnonzero(stamps > FREE)
            best = alive[np.lexsort((-serials[alive], -stamps[alive], -keys[alive]))][:k].tolist()
            for i in np.flatnonzero(flags & 1).tolist():
                if i not in best:
                    tell(i, 0, step, at)
            for i in best:
                if not flags[i] & 1:
                    tell(i, 1, step, at)
        c["dues"][s], c["counts"][s] = due, (stamps > FREE).sum()

    def near(self, places: Array, begin: int, end: int, left: int, last: int) -> tuple[Array, Array, Array]:
        found: list[tuple[int, int, float]] = []
        c, ring = self.columns, self.ring
        rows = np.arange(begin, end) % max(1, self.rows)
        for g, s in enumerate(places.tolist()):
            values, want = ring["half"][rows] @ c["unit"][s], int(c["want"][s])
            there = ring["serials"][rows] >= c["birth"][s]
            lasting = there & (ring["stamps"][rows] > max(left, last - int(c["length"][s])))
            with np.errstate(all="ignore"):
                weights, offsets, slack = (ring[name][rows] for name in ("weights", "offsets", "slack"))
                least = np.nan_to_num((values - offsets - slack) / weights, nan=-np.inf, neginf=-np.inf)
                bar = -np.inf
                if lasting.sum() > 2 * want:
                    bar = float(np.sort(least[lasting])[-want])
                    bar -= float(c["norms"][s] ** 2) * (distance_error(self.d) if self.form == DISTANCE else 0.0)
                    bar -= abs(bar) * 2.0**-20
                good = there & ~((values - offsets + slack) / weights < bar)
            found += [(g, begin + int(i), self._key(s, int(rows[i]))) for i in np.flatnonzero(good)]
        which, arrivals, keys = zip(*found, strict=True) if found else ((), (), ())
        return np.array(which, np.int64), np.array(arrivals, np.int64), np.array(keys, np.float64)

    @property
    def due(self) -> int:
        return int(self.columns["dues"].min(initial=NEVER))

    @property
    def objects(self) -> int:
        return int(self.columns["counts"].sum())

    @property
    def nbytes(self) -> int:
        return sum(int(one.nbytes) for one in (*self.columns.values(), *self.ring.values()))


def rounded(values: Array) -> Array:
    """To bfloat16, the nearest, ties to even; as float32."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    found: Array = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return found
