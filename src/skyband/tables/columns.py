"""Values of any Arrow type, kept by place: appended, taken and thinned without a loop per row.

Types of 8 to 64 bits are kept as their bits, everything else as Python objects. Only kept objects get here, so the
slow kind stays small.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]


#: What Arrow raises at bad input. Its want of memory is a MemoryError and no fault of the input.
ARROW_ERRORS = (
    pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, pa.ArrowKeyError, pa.ArrowIndexError,
    pa.lib.ArrowCapacityError, pa.ArrowSerializationError,
)  # fmt: skip


def plain(column: Any) -> Any:
    """One contiguous array, dictionaries decoded."""
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # some types stay chunked
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(column.type):
        return plain(column.dictionary).take(column.indices)
    if pa.types.is_string_view(column.type):  # Arrow cannot take from views
        return column.cast(pa.string())
    return column.cast(pa.binary()) if pa.types.is_binary_view(column.type) else column


def as_arrow(values: NDArray[Any]) -> Any:
    """A NumPy array of numbers or booleans as Arrow, without a copy where it is contiguous.

    `pa.array` would import pandas first, if that is installed, only to ask whether this is one of its own.
    """
    if values.dtype == np.bool_:
        packed = pa.py_buffer(np.packbits(values, bitorder="little"))
        return pa.Array.from_buffers(pa.bool_(), len(values), [None, packed])
    whole = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(whole.dtype), len(whole), [None, pa.py_buffer(whole)])


def grown(values: NDArray[Any], size: int) -> NDArray[Any]:
    """The array with room for so many values and more, of zeros: O(1) amortised for each that is added.

    Zeros that nobody has written to take no memory. The first room has some more as well, so that one value after a
    table of them does not copy all.
    """
    if size <= len(values):
        return values
    found = np.zeros(max(size + size // 8, 2 * len(values)), values.dtype)
    found[: len(values)] = values
    return found


def bits_of(column: Any) -> NDArray[Any]:
    """The bits of a fixed-width array as integers; null slots hold anything."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    width = column.type.bit_width // 8
    data = column.buffers()[1]
    if data is None:
        return np.zeros(len(column), f"i{width}")
    found = lent(np.frombuffer(data, f"i{width}", len(column), column.offset * width))
    return found if found.flags.aligned else found.copy()


def lent(array: NDArray[Any]) -> NDArray[Any]:
    """The array as kernels take it, without a copy: they only read it."""
    return array if array.flags.writeable else np.asarray(_Memory(array))


class _Memory:
    """The memory of a read-only array, not marked as such.

    Kernels only read it; they are compiled ahead for plain arrays, and a read-only array is another type to Numba.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array  # lives as long as this
        self.__array_interface__ = {**array.__array_interface__, "data": (array.__array_interface__["data"][0], False)}


def valid_of(column: Any) -> NDArray[np.bool_] | None:
    """Which slots hold a value; None: all of them."""
    if column.null_count == 0:
        return None
    valid: NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def is_fixed(type_: Any) -> bool:
    return bool(pa.types.is_boolean(type_) or (pa.types.is_primitive(type_) and type_.bit_width in (8, 16, 32, 64)))


def key_bits(column: Any) -> NDArray[np.int64] | None:
    """A key column as 64 bits each, equal just where the keys are; None: its type needs more than that."""
    if pa.types.is_floating(column.type):
        numbers = np.array(column.cast(pa.float64()).to_numpy(zero_copy_only=False))
        numbers[numbers == 0] = 0.0  # -0.0 is 0.0
        numbers[np.isnan(numbers)] = np.nan  # and any NaN is the same key
        return numbers.view(np.int64)
    return bits_of(column).astype(np.int64) if is_fixed(column.type) else None


def name_bits(column: Any) -> NDArray[np.int64]:
    """Keys as 64 bits each, the same in every process: exact for types of up to 64 bits, else 64 bits of BLAKE2b.

    Of 10^6 names that are hashed two are the same with a chance of 3e-8. Nulls get any bits.
    """
    keys = key_bits(column)
    if keys is not None:
        return keys
    values, slots = distinct(column)
    hashed = [hashlib.blake2b(_bytes(value), digest_size=8).digest() for value in values]
    return np.append(np.frombuffer(b"".join(hashed), np.int64), 0)[slots]


def name_digests(columns: list[Any]) -> tuple[Ints, NDArray[np.uint16]]:
    """Keys of one or several columns as 64 bits and 16 more each, the same in every process.

    Exact for one column of up to 64 bits, else BLAKE2b.
    """
    if len(columns) == 1 and (keys := key_bits(columns[0])) is not None:
        valid = valid_of(columns[0])
        if valid is None:
            return keys, np.zeros(len(keys), np.uint16)
        return np.where(valid, keys, _NULL), (~valid).astype(np.uint16)
    words = [[None if value is None else _bytes(value) for value in column.to_pylist()] for column in columns]
    digests = [hashlib.blake2b(_framed(one), digest_size=10).digest() for one in zip(*words, strict=True)]
    halves = np.frombuffer(b"".join(digests), np.dtype([("key", "<i8"), ("check", "<u2")]))
    return halves["key"].copy(), halves["check"].copy()


_MANY, _SPARSE = 1 << 10, 16  # serials that are looked up in a table, of at most so many entries for each
_NULL = 0x5B7E_1D3A_94C2_F086  # the key of null, beside numbers


def _framed(words: tuple[bytes | None, ...]) -> bytes:
    """Several values as bytes that no other values have."""
    return b"".join(b"-" if word is None else b"%d:%b" % (len(word), word) for word in words)


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    return value if isinstance(value, bytes) else repr(value).encode()


def distinct(column: Any) -> tuple[list[Any], Ints]:
    """The distinct values of a column, and which of them each row has (nulls: any)."""
    if pa.types.is_nested(column.type):  # Arrow has no dictionaries of these
        return column.to_pylist(), np.arange(len(column))
    if isinstance(column.type, pa.BaseExtensionType):
        return distinct(column.storage)
    if pa.types.is_decimal32(column.type) or pa.types.is_decimal64(column.type):  # nor of these
        column = column.cast(pa.decimal128(column.type.precision, column.type.scale))
    encoded = column.dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)


class Column:
    """A growing list of values of one Arrow type."""

    def __init__(self, type_: Any) -> None:
        self.type = type_
        self.fixed = is_fixed(type_)
        width = 8 if pa.types.is_boolean(type_) or not self.fixed else type_.bit_width
        self._values: NDArray[Any] = np.empty(0, f"i{width // 8}" if self.fixed else object)
        self._valid = np.empty(0, np.bool_)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def nbytes(self) -> int:
        """Bytes in use; of Python objects only the references are counted."""
        return self._size * (self._values.itemsize + 1)

    @property
    def bits(self) -> NDArray[Any]:
        """All values as they are kept."""
        return self._values[: self._size]

    def append(self, column: Any) -> None:
        if pa.types.is_null(self.type) and not pa.types.is_null(column.type):
            self._be_nulls(column.type)  # only nulls so far: the type is known now
        more = len(column)
        if self._size + more > len(self._values):
            room = max(16, 4 * len(self._values), (self._size + more) * 9 // 8)  # what is not used costs nothing
            values, valid = np.empty(room, self._values.dtype), np.empty(room, np.bool_)
            values[: self._size], valid[: self._size] = self._values[: self._size], self._valid[: self._size]
            self._values, self._valid = values, valid  # both or, without memory, neither
        new = slice(self._size, self._size + more)
        self._values[new] = bits_of(column) if self.fixed else np.fromiter(column.to_pylist(), object, more)
        known = valid_of(column)
        self._valid[new] = True if known is None else known
        self._size += more

    def _be_nulls(self, type_: Any) -> None:
        """Be of another type, with as many nulls; at once."""
        other = Column(type_)
        other.append(pa.nulls(self._size, type_))
        vars(self).update(vars(other))

    def take(self, places: Ints) -> Any:
        """The values at these places, as an Arrow array."""
        values, valid = self._values[: self._size][places], self._valid[: self._size][places]
        if not self.fixed:
            return pa.array(list(values), self.type, from_pandas=False)
        if pa.types.is_boolean(self.type):
            values = np.packbits(values.astype(np.bool_), bitorder="little")
        mask = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
        return pa.Array.from_buffers(self.type, len(valid), [mask, pa.py_buffer(values)])

    def take_with(self, places: Ints, fresh: Any, rows: Ints, old: NDArray[np.bool_]) -> Any | None:
        """The values at these places where `old` holds, else those of rows of `fresh`; None: Arrow must join them."""
        if not self.fixed or self.type != fresh.type or fresh.null_count or pa.types.is_boolean(self.type):
            return None
        if not self._valid[: self._size][places].all():
            return None
        values = np.empty(len(old), self._values.dtype)
        values[old], values[~old] = self._values[: self._size][places], bits_of(fresh)[rows]
        return pa.Array.from_buffers(self.type, len(old), [None, pa.py_buffer(values)])

    def all(self) -> Any:
        return self.take(np.arange(self._size))

    def cut(self, size: int, type_: Any) -> None:
        """Keep only the first so many, which were of this type."""
        self._values[size : self._size] = None if not self.fixed else 0
        self._size = min(size, self._size)
        if type_ != self.type:
            self._be_nulls(type_)

    def thin(self, places: Ints) -> None:
        """Keep only these places, in this order."""
        self._values, self._valid, self._size = self._values[places], self._valid[places], len(places)


class KeptColumns:
    """The columns that are reported of kept objects later (id, time, kept columns), by serial number.

    Serials only rise, so places are found by bisection. Objects that are gone are swept out once they are more than
    half of the kept columns: O(1) amortised per object.
    """

    def __init__(self) -> None:
        self._serials = Column(pa.int64())
        self.columns: dict[str, Column] = {}

    def __len__(self) -> int:
        return len(self._serials)

    @property
    def serials(self) -> Ints:
        """Of the objects, rising."""
        return self._serials.bits

    @property
    def nbytes(self) -> int:
        return self._serials.nbytes + sum(column.nbytes for column in self.columns.values())

    def copy(self) -> KeptColumns:
        twin = KeptColumns()
        twin.add(self.serials.copy(), {name: column.all() for name, column in self.columns.items()})
        return twin

    def add(self, serials: Ints, columns: dict[str, Any]) -> None:
        if not len(serials):
            return
        size = len(self)
        if size and serials[0] <= self.serials[-1]:  # some are there: several engines keep columns here
            places = np.searchsorted(self.serials, serials)
            fresh = np.flatnonzero(self.serials[np.minimum(places, size - 1)] != serials)
            serials, columns = serials[fresh], {name: column.take(as_arrow(fresh)) for name, column in columns.items()}
            if not len(serials):
                return
        rises = not size or serials[0] > self.serials[-1]
        self._serials.append(as_arrow(serials))
        for name, column in columns.items():
            self.columns.setdefault(name, Column(column.type)).append(column)
        if not rises:
            self._thin(np.argsort(self.serials))

    def read(self, name: str, serials: Ints, fresh: Any = None, first: int = 0) -> Any:
        """The column's values for these objects; those from serial `first` on are rows of `fresh`."""
        old = None if fresh is None else serials < first
        if old is not None and not old.any():
            return fresh.take(as_arrow(serials - first))
        kept = self.columns.get(name)
        stored = serials if old is None else serials[old]
        if kept is None:  # nothing was ever stored
            return pa.nulls(0, pa.null())
        found = self.places(stored)
        if old is None or len(stored) == len(serials):
            return kept.take(found)
        joined = kept.take_with(found, fresh, serials[~old] - first, old)
        if joined is not None:
            return joined
        here, there = kept.take(found), fresh.take(as_arrow(serials[~old] - first))
        if here.type != there.type:  # only nulls until now
            here = here.cast(there.type)
        places = np.empty(len(serials), np.int64)
        places[np.concatenate([np.flatnonzero(old), np.flatnonzero(~old)])] = np.arange(len(serials))
        return pa.concat_arrays([here, there]).take(as_arrow(places))

    def places(self, wanted: Ints) -> Ints:
        """Where these serials are, in all columns.

        Many are looked up in a table, since bisection misses the cache at each step.
        """
        serials = self.serials
        span = int(serials[-1] - serials[0]) + 1 if len(serials) else 0
        few = len(wanted) < _MANY or span > _SPARSE * len(wanted)
        if few or wanted.min() < serials[0] or wanted.max() > serials[-1]:
            return np.searchsorted(serials, wanted)
        table = np.zeros(span, np.int32 if len(serials) < 2**31 else np.int64)
        table[serials - serials[0]] = np.arange(len(serials), dtype=table.dtype)
        places: Ints = table[wanted - serials[0]]
        return places

    def relabel(self, prefix: str, names: dict[str, str]) -> None:
        """Columns that begin with `prefix` get new names (new: old); one may serve several, others go."""
        columns = {name: column for name, column in self.columns.items() if not name.startswith(prefix)}
        for new, old in names.items():
            if old in self.columns:
                columns[new] = Column(self.columns[old].type)
                columns[new].append(self.columns[old].all())
        self.columns = columns

    def sweep(self, live: Ints) -> None:
        """Only these serials are still kept."""
        if not self.columns:
            return
        self._thin(np.searchsorted(self.serials, np.sort(live)))

    def _thin(self, places: Ints) -> None:
        for column in (self._serials, *self.columns.values()):
            column.thin(places)
