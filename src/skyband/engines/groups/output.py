"""Output columns of TopKGroups: the id is the object's, kept columns are of the row that decides, then `select`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.contract import Answer, Changes
from skyband.engines.groups.arguments import Arguments
from skyband.engines.groups.keys import GroupKeys
from skyband.engines.output import Fresh, Output
from skyband.query.expressions import Operand
from skyband.query.kinds import TopKGroups
from skyband.tables.columns import as_arrow
from skyband.tables.groups import Groups

if TYPE_CHECKING:
    from skyband.engines.groups.decay import Fading

Ints = NDArray[np.int64]


class GroupsOutput(Output):
    """The output columns of one engine of groups."""

    objects: Groups  # the values of `of` by object, after the group's code where there is one
    of: tuple[str, ...]
    query: TopKGroups  # one of those that share the engine: `select` is the same
    arguments: Arguments
    fading: Fading | None = None  # with decay
    clock: Callable[[], int]  # of the engine
    order_keys: GroupKeys

    def answer(self, answer: Answer, query: int) -> dict[str, Any]:
        columns = super().answer(answer, query)
        if self.fading is not None:
            columns["score"] = self._faded(answer.shown, np.full(len(answer.serial), self.clock()))
        return columns

    def _change_columns(
        self, changes: Changes, at: Ints, when: Ints, sequences: Ints, fresh: Fresh | None
    ) -> dict[str, Any]:
        columns = super()._change_columns(changes, at, when, sequences, fresh)
        if self.fading is not None:
            columns["score"] = self._faded(changes.shown, when)  # of a group that is forgotten: when it was due
        return columns

    def _faded(self, parts: tuple[Operand, ...], clocks: Ints) -> Any:
        """Scores that have faded until these instants."""
        assert self.fading is not None
        if not parts:
            return as_arrow(np.empty(0))
        return as_arrow(self.fading.scores(parts[0].values, parts[1].values, clocks))

    def id_type(self, types: dict[str, Any]) -> Any:
        fields = [(name, types.get(name, pa.null())) for name in self.of]
        if len(fields) == 1:
            return fields[0][1]
        known = all(name in types for name in self.of)
        return pa.struct(fields) if known else pa.null()

    def shown_types(self) -> dict[str, Any]:
        return self.arguments.shown_types(self.query)

    @property
    def reports_numbers(self) -> bool:
        return False

    def _members(self, of: Changes | Answer, sequences: Ints, fresh: Fresh | None, queries: Any) -> dict[str, Any]:
        assert of.object is not None
        columns = {"id": self.ids(of.object)}
        for name in self.options.kept:
            columns[name] = self._reported(name, of.serial, of.stamp, sequences, fresh)
        return columns | dict(zip(self.query.shown, map(column_of, of.shown), strict=False))

    def _keys(self, of: Changes | Answer, fresh: Fresh | None) -> dict[str, Any]:
        if not self.order_keys.ordered or self.fading is not None:
            return {}
        assert of.object is not None
        return self.order_keys.columns(of.shown, of.object, column_of)

    def ids(self, objects: Ints) -> Any:
        """The ids of objects: values of one column, or structs of several."""
        columns = [column.take(objects) for column in self.objects.columns[-len(self.of) :]]
        if len(self.of) == 1:
            return columns[0] if columns else pa.nulls(0)
        return pa.StructArray.from_arrays(columns, names=list(self.of)) if columns else pa.nulls(0)


def column_of(values: Operand) -> Any:
    """Values of an expression as Arrow."""
    null = None if values.valid is None else ~values.valid
    if values.values.dtype == object:
        return pa.array(values.values, pa.string(), mask=null)
    return as_arrow(values.values) if null is None else pa.array(values.values, mask=null)
