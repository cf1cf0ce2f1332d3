"""The contract of every engine: four methods, and the arrays that go in and out of them.

An engine serves a tuple of queries over one stream of scored arrivals, in groups. It knows no columns, no Arrow and
no user's types: scores are keys (larger is better), groups are codes, objects are serial numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from skyband.query.tuning import Tuning

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
NEVER = np.iinfo(np.int64).max  # objects stay until they are deleted
#: The length of a window without end. Its clock stands still at 0: any time and this length fit into 64 bits together,
#: and nothing is ever due.
EVER = 2**62
T = TypeVar("T")


class Lazy:
    """A field of a dataclass that is given as an array, or as a function that makes it when the field is first read."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        found = vars(instance)[self.name]
        if callable(found):
            found = vars(instance)[self.name] = found()
        return found

    def __set__(self, instance: Any, value: Any) -> None:
        vars(instance)[self.name] = value


def lazy(*names: str) -> Callable[[type[T]], type[T]]:
    """Make these fields of a dataclass lazy."""

    def decorate(class_: type[T]) -> type[T]:
        for name in names:
            setattr(class_, name, Lazy(name))
        return class_

    return decorate


@dataclass(frozen=True)
class Spec:
    """One query as an engine sees it: how many, over how long a window (arrivals, or units of time)."""

    k: int
    length: int
    threshold: float | None = None  # all above it, instead of the k best
    semantics: str | None = None  # which of the meanings of uncertain top-k


@dataclass(frozen=True)
class Scorings:
    """Scorings of one family, one per lane of an engine (engines/topk/kernels/scores.py)."""

    form: int
    turned: bool  # the smallest score is best
    points: Floats  # one row each: weights of a linear form, or the point of a distance
    weights: Floats  # of a distance; no columns: none
    keys: Callable[[int, Floats], Floats]  # of objects with these attributes, one row each, for one of the scorings
    lows: Floats = field(default_factory=lambda: np.empty((0, 0)))  # boxes: only objects within count; no rows: all do
    highs: Floats = field(default_factory=lambda: np.empty((0, 0)))
    programs: Any = None  # that bound expressions (engines/topk/bounds.py): their keys come with the objects
    columns: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # which of the expressions each one is


@dataclass(frozen=True)
class Vectors:
    """The vectors of arrivals, one row each, and their norms."""

    matrix: NDArray[Any]
    norms: Floats

    def only(self, which: Any) -> Vectors:
        """Some of them."""
        return Vectors(self.matrix[which], self.norms[which])


@lazy("rows", "groups", "stamps", "now")  # where all rows of a batch arrive most engines do without some of them
@dataclass(frozen=True)
class Arrivals:
    """One batch, in order of arrival. Arrays have one entry per arrival of these queries."""

    rows: Ints  # its row in the batch
    groups: Ints  # its group's code
    keys: Floats
    stamps: Ints  # count windows: its number in the group; time windows: its time
    now: Ints  # count windows: its number; time windows: the clock when it arrived
    eligible: Bools | None  # False: it moves the window but is no answer; None: all are eligible
    serial: int  # of row 0 of the batch
    size: int  # rows of the batch
    clock: int  # time windows: the clock after the batch
    clocks: Ints | None  # time windows: the clock after each row of the batch
    total: int  # groups known so far
    attributes: tuple[Floats, ...] | None = None  # of a family, instead of keys
    vectors: Vectors | None = None  # what a family of Similar compares
    wants_alive: bool = True  # whether columns of objects are kept: then `alive` is read
    more: bool = False  # net changes can wait: the batch goes on with the next arrivals
    whole: bool = False  # every row of the batch arrives: `rows` are 0, 1, 2, ...
    first: int | None = None  # all are of one group, and `stamps` and `now` are first, first + 1, ...
    names: Ints | None = None  # ids as codes, where objects are deleted by them; ids or alternatives as 64-bit keys
    named: Bools | None = None  # which arrivals have such a key; None: all
    deletes: Bools | None = None  # these rows are no arrivals: they delete an id
    probabilities: Floats | None = None  # that the object exists
    steps: Ints | None = None  # which step an arrival is part of, where several are one
    limits: Ints | None = None  # the k that a row brings for its group
    parts: Ints | None = None  # which part of its object a row brings, in the query's order
    columns: Any = None  # of pairs: what the scoring reads of each arrival
    scored: Bools | None = None  # of pairs: arrivals whose pairs with earlier ones are scored here; None: all
    objects: Ints | None = None  # of groups: which object each row belongs to
    weights: Ints | None = None  # of groups over Ever(): how many rows each stands for; None: one

    @property
    def in_time(self) -> bool:
        """Whether none is late, as it never is in count windows: `stamps` and `now` are the same."""
        return self.first is not None or bool((self.stamps == self.now).all())

    def rows_at(self, places: Ints) -> Ints:
        """The rows of the arrivals at these places."""
        return places if self.whole else self.rows[places]

    def stamps_at(self, places: Ints) -> Ints:
        """The stamps of the arrivals at these places."""
        return self.stamps[places] if self.first is None else self.first + places

    def only(self, which: Ints | slice) -> Arrivals:
        """Some of these arrivals."""
        return replace(
            self,
            rows=self.rows[which],
            groups=self.groups[which],
            keys=self.keys[which],
            stamps=self.stamps[which],
            now=self.now[which],
            whole=False,
            first=None,
            eligible=None if self.eligible is None else self.eligible[which],
        )


@dataclass(frozen=True)
class Changes:
    """What enters and leaves, in the order of the contract: by query, then by step, leaving first."""

    query: Ints | NDArray[np.int32]  # which of the engine's queries
    group: Ints
    row: Ints  # the step's arrival, or the group's last one before it; -1: none in this batch
    instant: Ints  # time windows: when
    stamp: Ints  # of the object
    serial: Ints
    key: Floats
    diff: NDArray[np.int8]  # 0: a member that stays has moved; only where questions over the answers are standing
    first: Bools
    alive: Bools  # per row of the batch: is the object still kept
    older: Ints | None = None  # of pairs: the serial of the older member (`serial` is the newer's)
    older_stamp: Ints | None = None
    rank: Ints | None = None  # the rank held, where that is part of the answer; 0: none
    probability: Floats | None = None
    object: Ints | None = None  # of groups: which object (`serial` is the row that decides its kept columns)
    shown: tuple[Any, ...] = ()  # of groups: the values of `select`

    def only(self, which: Ints) -> Changes:
        """Some of these changes, of single objects."""
        names = ("query", "group", "row", "instant", "stamp", "serial", "key", "diff", "first")
        return replace(self, **{name: getattr(self, name)[which] for name in names})


@dataclass(frozen=True)
class Answer:
    """An answer: groups in order, each best first."""

    group: Ints
    rank: Ints  # from 1
    stamp: Ints
    serial: Ints
    key: Floats
    older: Ints | None = None  # as in `Changes`
    older_stamp: Ints | None = None
    probability: Floats | None = None
    object: Ints | None = None
    shown: tuple[Any, ...] = ()


class Engine(Protocol):
    name: str
    held: NDArray[Any]  # changes of a batch that goes on

    def __init__(self, asked: tuple[Spec, ...], tuning: Tuning, *, timed: bool, net: bool, **more: Any) -> None: ...

    @staticmethod
    def needed(arrivals: Arrivals, asked: tuple[Spec, ...], *, net: bool) -> Bools:
        """Which arrivals of a part of a batch can matter for time windows, whatever else arrives with them."""

    def take(self, arrivals: Arrivals) -> Changes:
        """Take a batch of arrivals; return the changes of the answers."""

    def answer(self, query: int, asked: Spec, now: Ints, groups: Ints | None) -> Answer:
        """The current answers of these groups (None: all) to `asked`, which must fit into the given query.

        `now` per group: number or clock.
        """

    def refit(self, asked: tuple[Spec, ...], predecessors: Ints, now: Ints) -> Changes:
        """Serve other queries that fit into the present ones; `predecessors`: which of these each goes on from.

        -1: from none; it begins with what is there, and its whole answer enters.
        """

    def snapshot(self, groups: Ints) -> dict[str, tuple[NDArray[Any], Ints]]:
        """The state of these groups: flat arrays in their order, each with its number of entries per group."""

    def restore(self, state: Mapping[str, NDArray[Any]], *, trusted: bool = True) -> None:
        """Take the arrays of one or several snapshots, joined; the first group is 0. The engine is new.

        Arrays that are not trusted are checked before kernels see them, with a StateError; then `check` is called.
        """

    def keep_groups(self, groups: Ints) -> None:
        """Keep only these groups, under the codes 0, 1, ...; no batch is open, and in the others nothing is valid."""

    def reset_groups(self, groups: Ints) -> None:
        """Drop everything that is known of these groups. Nothing is reported."""

    def check(self, *, deep: bool = True, now: Ints | None = None) -> None:
        """Check every invariant that kernels rely on, in O(n log n); deep: every other one too, however long it takes.

        The first are a StateError where they fail (snapshots of strangers), the others an AssertionError (tests).
        now: per group the number of the last arrival, or the clock, if that is to be checked too.
        """

    def serials(self, groups: Ints | None = None) -> tuple[Ints, Ints]:
        """Which objects are kept for these groups (None: all), each once and group by group; and how many for each."""

    @property
    def kept(self) -> Ints:
        """How many records are kept, per group."""

    @property
    def buffer(self) -> int:
        """How many recent arrivals wait, for all queries together."""

    def size_of(self, query: int) -> int:
        """How many objects are kept for this query, of all groups."""

    @property
    def due(self) -> Ints:
        """Per group: time takes nothing from its answers before this instant."""

    @property
    def nbytes(self) -> int: ...
