"""One table of a TOML file: returns its values and collects every mistake with the key's full name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from skyband.errors import QueryError
from skyband.query.windows import Last


def near(word: str, known: Iterable[str], what: str = "There are") -> str:
    """A hint: the known word nearest to this one, or else all of them."""
    listed = list(known)
    found = get_close_matches(word.lower(), [name.lower() for name in listed], 1)
    meant = [name for name in listed if name.lower() in found]
    return f"Did you mean {meant[0]!r}?" if meant else f"{what}: {', '.join(listed)}."


class Table:
    """Values by key. A wrong value goes to `mistakes`, and the default is returned instead."""

    def __init__(self, name: str, data: Any, mistakes: list[str]) -> None:
        self.name = name
        self.mistakes = mistakes
        self._read: list[str] = []
        self.data: Mapping[str, Any] = {}
        if isinstance(data, Mapping):
            self.data = data
        else:
            self.mistakes.append(f"{name} is a table, [{name}]; got {data!r}.")

    def mistake(self, key: str, message: str) -> None:
        self.mistakes.append(f"{self.path(key)}: {message}")

    def path(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key

    def raw(self, key: str, *, needed: str = "") -> Any:
        """The value as it is, or None. `needed`: what to write when it is missing."""
        self._read.append(key)
        if needed and self.data.get(key) is None:
            self.mistake(key, f"is missing. {needed}")
        return self.data.get(key)

    def text(self, key: str, default: str | None = None, *, needed: str = "") -> str | None:
        value = self.raw(key, needed=needed)
        if value is None:
            return default
        if not isinstance(value, str) or not value:
            self.mistake(key, f"is a text that is not empty; got {value!r}.")
            return default
        if "\0" in value:
            self.mistake(key, f"holds a character that no name may have; got {value!r}.")
            return default
        return value

    def one_of(self, key: str, allowed: Iterable[str], default: str | None = None, *, needed: str = "") -> str | None:
        value = self.text(key, default, needed=needed)
        choice = list(allowed)
        if value is not None and value not in choice:
            meant = get_close_matches(value.lower(), choice, 1)
            hint = f" Did you mean {meant[0]!r}?" if meant else ""
            self.mistake(key, f"{value!r} is unknown.{hint} Use one of {', '.join(choice)}.")
            return default
        return value

    def whole(self, key: str, least: int) -> int | None:
        value = self.raw(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            self.mistake(key, f"is a whole number, at least {least}; got {value!r}.")
            return None
        return value

    def names(self, key: str) -> tuple[str, ...] | None:
        """A column, or a list of columns."""
        value = self.raw(key)
        if value is None:
            return None
        columns = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else (None,)
        if not all(isinstance(column, str) and column for column in columns):
            self.mistake(key, f"names a column, or a list of columns; got {value!r}.")
            return None
        return columns

    def milliseconds(self, key: str, text: str) -> int | None:
        """A duration."""
        try:
            nanoseconds = Last(text).nanoseconds
        except QueryError:
            nanoseconds = None
        if not nanoseconds or nanoseconds % 10**6:
            self.mistake(key, f'{text!r} is not a duration of whole milliseconds, such as "10 seconds", "500 ms".')
            return None
        return nanoseconds // 10**6

    def settings(self, key: str) -> dict[str, str]:
        """Names with dots and their values as text; `a.b = 1` without quotes means the same as `"a.b" = 1`."""
        found: dict[str, str] = {}

        def walk(data: Mapping[str, Any], before: str) -> None:
            for name, value in data.items():
                if isinstance(value, Mapping):
                    walk(value, f"{before}{name}.")
                elif isinstance(value, bool):
                    found[before + name] = str(value).lower()
                elif isinstance(value, str | int | float):
                    found[before + name] = str(value)
                else:
                    self.mistake(f"{key}.{before}{name}", f"is a text, a number, true or false; got {value!r}.")

        walk(self.table(key).data, "")
        return found

    def table(self, key: str) -> Table:
        """An inner table; empty if it is missing."""
        self._read.append(key)
        return Table(self.path(key), self.data.get(key, {}), self.mistakes)

    def end(self, why: Mapping[str, str] | None = None) -> None:
        """All keys have been read: any other is a mistake. `why`: the message for keys that belong elsewhere."""
        for key in self.data:
            if why is not None and key in why:
                self.mistake(key, why[key])
            elif key not in self._read:
                place = f"[{self.name}]" if self.name else "the file"
                self.mistake(key, f"is not a key of {place}. {near(key, self._read)}")
