"""The adapter of TopKGroups: rows to objects by the columns of `of`, and aggregates to scores.

An object has a code, which is its slot in the engine, while a row of it is valid. Codes of objects that are gone are
given back when they outnumber the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter, Columns
from skyband.engines.contract import Arrivals, Changes, Spec
from skyband.engines.groups.arguments import Arguments
from skyband.engines.groups.keys import GroupKeys
from skyband.engines.groups.output import GroupsOutput
from skyband.engines.invariants import require
from skyband.engines.registry import row_of
from skyband.engines.session_rows import SessionRows
from skyband.errors import QueryError
from skyband.query.kinds import Query, TopKGroups
from skyband.query.windows import Session
from skyband.tables.columns import as_arrow
from skyband.tables.groups import Groups
from skyband.tables.input import Batch, is_number
from skyband.tables.push import STEP, WEIGHT, Push
from skyband.tables.scores import Scored, Validated, matches, reject_beyond

if TYPE_CHECKING:
    from skyband.engines.groups.decay import Fading
    from skyband.engines.groups.tally import TALLY

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
SHORTEST = 2**9  # nanoseconds: the shortest half-life for times in nanoseconds
FEWEST = 1024  # objects that are gone before it is worth the while to look for them


class GroupsAdapter(SessionRows, Adapter):
    """One engine for queries that rank the same objects by the same aggregates."""

    scored = False
    stands_still = False  # decay goes by the clock

    def __init__(self, query: Query, *args: Any, **options: Any) -> None:
        super().__init__(query, *args, **options)
        assert isinstance(query, TopKGroups)
        self.of = query.of_columns or (cast(str, self.options.id),)
        self.arguments = Arguments(query)
        self.output = GroupsOutput(self.groups, self.options, self.numbering, self.score_of, self.deletable)
        self.output.of, self.output.query, self.output.arguments = self.of, query, self.arguments
        self.order_keys = self.output.order_keys = GroupKeys(query, self.of, self.arguments)
        self._set_objects(self._no_objects())
        self.ids = self._no_ids() if self.deletable else None
        self.fading: Fading | None = None
        self.output.clock = lambda: self.machine.clock

    @staticmethod
    def key(query: Query) -> tuple[Any, ...]:
        """An approximate engine keeps what its own k needs; sessions end by their gap."""
        assert isinstance(query, TopKGroups)
        own = query.window if isinstance(query.window, Session) else None
        return (*Adapter.key(query), own, None if row_of(query).exact else query.k)

    def _no_objects(self) -> Groups:
        """Codes of objects, none yet."""
        return Groups(("group", *self.of) if self.groups.names else self.of)

    def _no_ids(self) -> Groups:
        """Codes of the ids of rows, none yet: an id is a key within its group."""
        return Groups(("group", "id") if self.groups.names else ("id",))

    def _set_objects(self, objects: Groups) -> None:
        self.objects = cast(GroupsOutput, self.output).objects = self.order_keys.objects = objects

    def _codes(self, of: Groups, groups: Ints, columns: Sequence[Any]) -> Ints:
        """The codes of values within their groups."""
        first = [as_arrow(groups)] if self.groups.names else []
        return of.codes([*first, *columns], len(groups))

    def learn(self, validated: Validated) -> None:
        self.order_keys.learn()

    def start(self, unit: int | None) -> None:
        self.unit = unit
        if self.order_keys.ordered and self.engine is not None and self.machine.measures.order is None:
            self.engine = None  # nothing has arrived: only now it is known that the key is no number
        if (half_life := self.example.half_life(unit)) is not None:
            from skyband.engines.groups.decay import Fading

            self.fading = cast(GroupsOutput, self.output).fading = Fading(half_life)
        super().start(unit)

    def reach(self, unit: int | None) -> int:
        if (half_life := self.example.half_life(unit)) is not None and unit == 1 and half_life < SHORTEST:
            raise QueryError(
                f"TopKGroups: decay={self.example.decay!r} is shorter than {SHORTEST} nanoseconds, and times are in "
                "nanoseconds. Use a longer half-life, or a coarser time column."
            )
        return super().reach(unit)

    @property
    def machine(self) -> TALLY:
        return cast("TALLY", self.engine)

    def engine_options(self) -> dict[str, Any]:
        from skyband.engines.groups.scores import measures_of, order_of

        order = order_of(self.example, len(self.of)) if self.order_keys.ordered else None
        if self.fading is not None:
            from skyband.engines.groups.decay import fading_measures

            return {"sort": "ever", "measures": fading_measures(self.descending, order)}
        measures = measures_of(self.example, self.arguments, order, self.order_keys.operands)
        if isinstance(self.example.window, Session):
            return {"sort": "session", "measures": measures, "gap": self.example.window.gap(self.unit)}
        return {"sort": self.example.window.sort, "measures": measures}

    # --- rows

    def validate(self, batch: Batch, cache: dict[Any, Scored], bad_times: dict[str, Bools | None]) -> Validated:
        scored = Scored(np.empty(batch.rows))
        for reason, rows in bad_times.items():
            if rows is not None:
                scored.reject(reason, rows)
        named = [(name, f"{name} is null") for name in self.of]
        if self.ids is not None:
            named.append((cast(str, self.options.id), "id is null"))  # `of` may be a column called "id" too
        for name, reason in named:
            column = batch.array(name)
            if column.null_count:
                scored.reject(reason, np.asarray(column.is_null(), np.bool_))
        self.arguments.read(batch, scored, self.example)
        if self.algorithm == "SKETCH":  # whose counters only rise
            self.arguments.reject_negative(batch, scored)
        eligible = None
        if self.where is not None:
            eligible, columns = matches(batch, self.where)
            reject_beyond(scored, batch, columns)
        types = self.order_keys.types_in(batch)
        if self.example.by == "id" and is_number(types[0]):  # a number that is the only key is a score
            batch.operand(self.of[0])
            reject_beyond(scored, batch, self.of)
        if self.example.ordered or self.order_keys.shown_of(types):
            scored.keys = [pa.nulls(0, type_) for type_ in types]
        return scored.validated(eligible)

    @property
    def shown_keys(self) -> Any:
        return self.order_keys.shown if self.order_keys.ordered else ()

    def new_keys(self, validated: Validated) -> list[Any]:
        """The types of the keys that are reported, of a batch that is not taken yet."""
        return self.order_keys.shown_of([key.type for key in validated.scored.keys or []])

    def seen_types(self) -> dict[str, Any]:
        """The types of the columns of `select`, of a batch that is not taken yet."""
        return self.arguments.shown_types(self.example, seen=True)

    def reads(self, batch: Batch | None) -> tuple[str, ...]:
        """The columns of objects, unless that is the Monitor's id, which is kept anyway."""
        return tuple(name for name in self.of if name != self.options.id)

    def _columns_of(self, push: Push) -> list[Any]:
        return [push.columns["id"] if name == self.options.id else push.inputs[name] for name in self.of]

    def extra_arrays(self, push: Push, validated: Validated, rows: Ints) -> dict[str, Any]:
        if not len(rows):
            none: Any = np.empty(0, np.int64)
            none_of = self.arguments.none if self.fading is None else (np.empty(0), np.empty(0))
            return {"attributes": none_of, "objects": none, "names": none if self.deletable else None}
        attributes = self.arguments.values(push.batch)
        if self.fading is not None:
            assert push.times is not None
            terms = [(weight, self.arguments.of(at, attributes)) for at, weight in self.example.weights]
            attributes = self.fading.contributions(terms, push.times)
        if push.deletes is not None:
            nothing = push.deletes if validated.eligible is None else push.deletes | ~validated.eligible
            attributes = tuple(np.where(nothing, 0.0, one) for one in attributes)
        if WEIGHT in push.batch.names:
            attributes = self.arguments.totals(push.batch, attributes)
        more = {"steps": np.asarray(push.batch.array(STEP))[rows]} if push.over else {}
        more |= {"weights": np.asarray(push.batch.array(WEIGHT))[rows]} if WEIGHT in push.batch.names else {}
        return {"attributes": tuple(one[rows] if len(rows) < len(one) else one for one in attributes), **more}

    def run(self, arrivals: Arrivals, push: Push) -> Changes:
        from dataclasses import replace

        rows = arrivals.rows
        if len(rows):
            self.order_keys.settled = True
            here = None if len(rows) == push.batch.rows else as_arrow(rows)
            columns = [one if here is None else one.take(here) for one in self._columns_of(push)]
            arrivals = replace(arrivals, objects=self._codes(self.objects, arrivals.groups, columns))
            if self.ids is not None:
                column = push.columns["id"] if here is None else push.columns["id"].take(here)
                deletes = None if push.deletes is None else push.deletes[rows]
                arrivals = replace(arrivals, names=self._codes(self.ids, arrivals.groups, [column]), deletes=deletes)
        self.machine.moves = self.output.sourced
        changes = self.machine.take(arrivals)
        if self.machine.unknown and not self.options.inner:
            self.rejected["unknown id"] = self.rejected.get("unknown id", 0) + len(self.machine.unknown)
        return changes

    def take(self, push: Push, validated: Validated, codes: Ints) -> tuple[dict[str, Any], Bools, Bools]:
        taken = super().take(push, validated, codes)
        if not push.more:
            self.tidy()
        return taken

    def answer_at(self, query: int, spec: Spec, clock: int, groups: Ints | None) -> Columns:
        if self.fading is not None:  # on Spark a group may have been stored before the clock moved on
            self.machine.clock = max(self.machine.clock, clock)
        return super().answer_at(query, spec, clock, groups)

    def score_of(self, keys: Floats) -> Floats:
        return self.keys(keys)

    def live_serials(self) -> Ints:
        serials = np.sort(np.concatenate([self.machine.serials()[0], self.machine.shown()]))
        once: Ints = serials[np.diff(serials, prepend=-1) > 0]
        return once

    def refit(self, queries: dict[str, Query], unit: int | None, clock: int) -> dict[str, Any]:
        if self.engine is not None:
            self.machine.moves = self.output.sourced
        return super().refit(queries, unit, clock)

    # --- deletions

    def delete(self, ids: Any, push: Push) -> tuple[dict[str, Any], NDArray[np.bool_]]:
        """Delete rows by id, one step each; returns the changes as columns, and which ids were known."""
        assert self.ids is not None
        known = np.zeros(len(ids), np.bool_)
        if self.engine is None or not self.ids.columns:
            return {}, known
        codes, steps = self.ids.holding(ids.cast(self.ids.columns[-1].type))
        owners = self.ids.columns[0].bits[codes] if self.groups.names else np.zeros(len(codes), np.int64)
        self.machine.moves = self.output.sourced
        changes, deleted = self.machine.delete(codes, owners, steps)
        known[deleted] = True
        piece = self.output.changes_at_rest(changes, push.clock, deleted=True)
        self.tidy()
        return piece, known

    # --- codes

    def tidy(self) -> None:
        """Give back the codes of objects, and of ids, that are gone, once they are many."""
        if self.objects.total > FEWEST + 2 * self.machine.objects:
            kept = np.flatnonzero(self.machine.there[: self.objects.total])
            columns = [column.take(kept) for column in self.objects.columns]
            self.machine.keep_objects(kept)
            self._set_objects(self._no_objects())
            if len(kept):
                self.objects.codes(columns, len(kept))
            self._rank_again()
        if self.ids is not None and self.ids.total > FEWEST + 4 * self.machine.rows:
            self._rebuild_ids()

    def _rank_again(self) -> None:
        """Rank objects by an order again, since their codes are others."""
        if self.order_keys.ordered:
            self.machine.rank_again()

    def after_restore(self) -> None:
        self._rebuild_codes()
        if self.objects.total:
            self.arguments.check()
            self.order_keys.check()

    def keep_groups(self, codes: Ints) -> None:
        super().keep_groups(codes)
        self._rebuild_codes()

    def forget_groups(self, codes: Ints) -> None:
        super().forget_groups(codes)
        self._rebuild_codes()

    def _rebuild_codes(self) -> None:
        """Give codes to the objects of the engine, in their order, from the columns that are kept of their rows."""
        self._set_objects(self._no_objects())
        if self.engine is None:
            return
        slots, groups, serials = self.machine.object_serials()
        require((slots == np.arange(len(slots))).all(), "objects are numbered")
        if len(slots):
            names = ["id" if name == self.options.id else f"={name}" for name in self.of]
            codes = self._codes(self.objects, groups, [self.kept_columns.read(name, serials) for name in names])
            require((codes == slots).all(), "an id is one object")
        self._rank_again()
        self._rebuild_ids()

    def _rebuild_ids(self) -> None:
        if self.ids is None or self.engine is None:
            return
        self.ids = self._no_ids()
        serials, sizes = self.machine.serials()
        owners = np.repeat(np.arange(len(sizes)), sizes)
        codes = self._codes(self.ids, owners, [self.kept_columns.read("id", serials)]) if len(serials) else serials
        self.machine.set_ids(codes, serials, self.ids.total)

    # --- snapshots

    def extra_facts(self) -> dict[str, Any]:
        return self.arguments.facts() | self.order_keys.facts()

    def restore_facts(self, facts: dict[str, Any]) -> None:
        self.arguments.restore(facts)
        self.order_keys.restore(facts)

    def stats(self, name: str) -> dict[str, Any]:
        if self.engine is None:
            return super().stats(name)
        more: dict[str, Any] = getattr(self.engine, "more_stats", dict)()  # of approximate engines
        return super().stats(name) | {"rows": self.machine.rows} | more
