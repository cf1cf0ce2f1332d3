"""The keys of an order of groups: their types, their values as engines compare them, and their output columns."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.engines.groups.arguments import Arguments
from skyband.engines.invariants import require
from skyband.query.aggregates import Id
from skyband.query.expressions import Operand
from skyband.query.kinds import TopKGroups
from skyband.tables.columns import bits_of, is_fixed
from skyband.tables.groups import Groups
from skyband.tables.input import Batch, is_number
from skyband.tables.orders import as_score, checked_key, without_nan

Ints = NDArray[np.int64]


class GroupKeys:
    """What an adapter knows of the keys of its queries, once rows have come."""

    objects: Groups  # the values of `of` by object, after the group's code where there is one

    def __init__(self, query: TopKGroups, of: tuple[str, ...], arguments: Arguments) -> None:
        self.query, self.of, self.arguments = query, of, arguments
        self.asked = query.expressions.keys
        self.types: list[Any] = [pa.null()] * len(self.asked)
        self.seen = list(self.types)  # in a batch that is not taken yet
        self.settled = False  # whether rows have come, so that types stay

    @property
    def ordered(self) -> bool:
        """Whether objects are ranked by an order; one key of no number is one."""
        return self.query.ordered or not all(map(_is_score, self.types))

    @property
    def shown(self) -> list[Any]:
        """The types of the keys that are reported besides the score."""
        return self.shown_of(self.types)

    def shown_of(self, types: list[Any]) -> list[Any]:
        """The same of keys of these types."""
        return types if isinstance(self.query.by, tuple) or not all(map(_is_score, types)) else []

    def types_in(self, batch: Batch) -> list[Any]:
        """The types of the keys in a batch."""
        found = self.seen = list[Any]()
        for key in self.asked:
            if not isinstance(key, Id):
                found.append(self.arguments.type_of(key, self.arguments.seen))
                continue
            columns = {name: checked_key(name, batch.array(name)).type for name in self.of}
            alone = key.column or (self.of[0] if len(self.of) == 1 else None)
            found.append(columns[alone] if alone else pa.struct(list(columns.items())))
        return found

    def learn(self) -> None:
        """Know the types of the batch that is taken now."""
        if not self.settled:
            self.types = self.seen

    def operands(self, key: Id, slots: Ints) -> list[Operand]:
        """The ids of objects, or a column of theirs, as an order compares them."""
        return [_operand(column) for name, column in self._columns(slots).items() if key.column in (None, name)]

    def columns(self, shown: tuple[Operand, ...], objects: Ints, column_of: Any) -> dict[str, Any]:
        """The score and the keys of changes or answers; shown: the keys that are aggregates."""
        found, values = [], iter(shown[len(self.query.shown) :])
        for key, type_ in zip(self.asked, self.types, strict=True):
            if isinstance(key, Id):
                columns = self._columns(objects)
                alone = key.column or (self.of[0] if len(self.of) == 1 else None)
                both = columns[alone] if alone else pa.StructArray.from_arrays(list(columns.values()), names=self.of)
            elif (operand := next(values, None)) is None:  # nothing to show
                both = pa.nulls(len(objects), type_)
            else:
                both = without_nan(column_of(operand))
            found.append(both)
        score = as_score(found[0]) if found else pa.nulls(len(objects), pa.float64())
        keys = {f"key_{i + 1}": column for i, column in enumerate(found)} if self.shown else {}
        return {"score": score} | keys

    def _columns(self, objects: Ints) -> dict[str, Any]:
        known = [column.take(objects) for column in self.objects.columns[-len(self.of) :]]
        return dict(zip(self.of, known or [pa.nulls(0)] * len(self.of), strict=True))

    # --- snapshots

    def facts(self) -> dict[str, Any]:
        """What a snapshot keeps of them."""
        if not self.ordered or not self.settled:
            return {}
        schema = pa.schema([pa.field(f"key_{i + 1}", type_) for i, type_ in enumerate(self.types)])
        return {"key_types": base64.b64encode(schema.serialize().to_pybytes()).decode()}

    def restore(self, facts: dict[str, Any]) -> None:
        if "key_types" in facts:
            schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(facts["key_types"])))
            self.types = self.seen = [field.type for field in schema]
            self.settled = True
            fit = len(self.types) == len(self.asked)
            require(fit and all(map(self._fits, self.asked, self.types)), "keys have the types of their aggregates")

    def _fits(self, key: Any, type_: Any) -> bool:
        """Whether values of a key can have a type; of ids: as `check` finds, once objects are there."""
        return isinstance(key, Id) or self.arguments.type_of(key, self.arguments.kinds) == type_

    def check(self) -> None:
        """Of objects that are there the types of keys are known."""
        if self.ordered:
            require(self.settled, "keys of objects have types")
            of = dict(zip(self.of, (column.type for column in self.objects.columns[-len(self.of) :]), strict=True))
            for key, type_ in zip(self.asked, self.types, strict=True):
                if isinstance(key, Id):
                    alone = key.column or (self.of[0] if len(self.of) == 1 else None)
                    require(type_ == (of[alone] if alone else pa.struct(list(of.items()))), "ids have their type")


def _is_score(type_: Any) -> bool:
    """Whether keys of a type are scores, where there is one key."""
    return is_number(type_) or pa.types.is_null(type_)


def _operand(column: Any) -> Operand:
    """A column of ids as numbers, or as words that are compared as a whole."""
    type_ = column.type
    if pa.types.is_floating(type_):
        return Operand(np.asarray(column.cast(pa.float64())))
    if is_fixed(type_) and not pa.types.is_decimal(type_):
        bits = bits_of(column)
        return Operand(bits.view(f"u{bits.itemsize}") if pa.types.is_unsigned_integer(type_) else bits)
    words = np.empty(len(column), object)
    words[:] = column.to_pylist()
    return Operand(words)
