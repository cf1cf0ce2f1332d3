"""Ids as codes, for engines that find objects by them: to replace and delete them, or to count each id once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyband.engines.adapter import Adapter
from skyband.tables.columns import as_arrow
from skyband.tables.groups import Groups
from skyband.tables.input import Batch
from skyband.tables.push import Push
from skyband.tables.scores import Scored, Validated

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


class IdCodes(Adapter):
    """The part of an adapter that gives codes to ids, within groups. `ids` is None where ids are only labels."""

    ids: Groups | None = None

    def _no_ids(self) -> Groups:
        """Codes of ids, none yet: an id is a key within its group."""
        return Groups(("group", "id") if self.groups.names else ("id",))

    def _codes_of_ids(self, groups: Ints, ids: Any) -> Ints:
        assert self.ids is not None
        return self.ids.codes([as_arrow(groups), ids] if self.groups.names else [ids], len(ids))

    @property
    def machine(self) -> Any:
        return self.engine

    def validate(self, batch: Batch, cache: dict[Any, Scored], bad_times: dict[str, Bools | None]) -> Validated:
        if self.deletable and self.options.id is not None:
            ids = batch.array(self.options.id)
            bad_times = {**bad_times, "id is null": np.asarray(ids.is_null(), np.bool_) if ids.null_count else None}
        return super().validate(batch, cache, bad_times)

    def names_of(self, rows: Ints, groups: Ints, push: Push) -> Ints | None:
        """The codes of the ids of these rows; None: ids are only labels."""
        if self.ids is None:
            return None
        if not len(rows):  # a batch may go on with no row for these queries
            return np.empty(0, np.int64)
        column = push.columns["id"]
        whole = len(rows) == len(column)
        return self._codes_of_ids(groups, column if whole else column.take(as_arrow(rows)))

    def take(self, push: Push, validated: Validated, codes: Ints) -> tuple[dict[str, Any], Bools, Bools]:
        taken = super().take(push, validated, codes)
        if self.ids is not None:
            self.tidy()
        return taken

    # --- deletions

    def delete(self, ids: Any, push: Push) -> tuple[dict[str, Any], NDArray[np.bool_]]:
        """Delete objects by id, one step each; returns the changes as columns, and which ids were known."""
        assert self.ids is not None
        known = np.zeros(len(ids), np.bool_)
        if self.engine is None:
            return {}, known
        if self.ids.columns:
            codes, steps = self.ids.holding(ids.cast(self.ids.columns[-1].type))
            owners = self.ids.columns[0].bits[codes] if self.groups.names else np.zeros(len(codes), np.int64)
            changes, deleted = self.machine.delete(codes, owners, steps)
            known[deleted] = True
            piece = self.output.changes_at_rest(changes, push.clock, deleted=True)
            self.tidy()
            return piece, known
        return {}, known

    def count_unknown(self) -> None:
        """Count the rows that were to delete an id which is not there."""
        if self.machine.unknown:
            self.rejected["unknown id"] = self.rejected.get("unknown id", 0) + len(self.machine.unknown)

    def tidy(self) -> None:
        """Forget the ids of objects that are gone, once they are many."""
        assert self.ids is not None
        if self.ids.total > 1024 + 4 * int(self.machine.kept.sum()):
            self.rebuild_ids()

    def after_restore(self) -> None:
        self.rebuild_ids()

    def keep_groups(self, codes: Ints) -> None:
        super().keep_groups(codes)
        self.rebuild_ids()

    def forget_groups(self, codes: Ints) -> None:
        super().forget_groups(codes)
        self.rebuild_ids()

    def rebuild_ids(self) -> None:
        """Give codes to the ids of the valid objects only."""
        if self.ids is None or self.engine is None:
            return
        self.ids = self._no_ids()
        serials, sizes = self.machine.serials()
        owners, column = np.repeat(np.arange(len(sizes)), sizes), self.kept_columns.read("id", serials)
        codes = self._codes_of_ids(owners, column) if len(serials) else serials
        self.machine.set_ids(codes, sizes, self.ids.total)
