"""Output columns of TopKGroups: the id is the object's, kept columns are of the row that decides, then `select`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.contract import Answer, Changes
from skyband.engines.output import Fresh, Output
from skyband.query.expressions import Operand
from skyband.tables.columns import as_arrow
from skyband.tables.groups import Groups

Ints = NDArray[np.int64]


class GroupsOutput(Output):
    """The output columns of one engine of groups."""

    objects: Groups  # the values of `of` by object, after the group's code where there is one
    of: tuple[str, ...]
    select: tuple[str, ...] = ()

    @property
    def reports_numbers(self) -> bool:
        return False

    def _members(self, of: Changes | Answer, sequences: Ints, fresh: Fresh | None) -> dict[str, Any]:
        assert of.object is not None
        columns = {"id": self.ids(of.object)}
        for name in self.options.kept:
            columns[name] = self._reported(name, of.serial, of.stamp, sequences, fresh)
        return columns | dict(zip(self.select, map(column_of, of.shown), strict=False))

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
