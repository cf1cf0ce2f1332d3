"""Spark's daemon of Python workers, with a clock in skyband's stages: `spark.python.daemon.module` takes its name.

After each task of a worker a line is appended to a file of its own in the folder that SKYBAND_TIMES names: seconds of
processor time by what they were spent on, each without what is nested in it, and all of the task under "task".
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import pyspark.daemon

from skyband.spark.daemon import load


class Stopwatch:
    """Processor time by name; a name that is nested in another takes its time from it."""

    def __init__(self) -> None:
        self.spent: defaultdict[str, float] = defaultdict(float)
        self.open: list[str] = []
        self.since = 0.0

    def enter(self, name: str) -> None:
        self._settle()
        self.open.append(name)

    def leave(self) -> None:
        self._settle()
        self.open.pop()

    def _settle(self) -> None:
        now = time.process_time()
        if self.open:
            self.spent[self.open[-1]] += now - self.since
        self.since = now

    def around(self, owner: Any, attribute: str, name: str) -> None:
        """Let a function, or a generator each time that it is resumed, be counted under a name."""
        function = getattr(owner, attribute)
        wrap = self._generator if inspect.isgeneratorfunction(function) else self._function
        setattr(owner, attribute, wrap(function, name))

    def _function(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            self.enter(name)
            try:
                return function(*args, **kwargs)
            finally:
                self.leave()

        return call

    def _generator(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Iterator[Any]:
            values = function(*args, **kwargs)
            while True:
                self.enter(name)
                try:
                    value = next(values)
                except StopIteration:
                    return
                finally:
                    self.leave()
                yield value

        return call


def install(watch: Stopwatch) -> None:
    """Clocks in the mapper, the operator and the last mapper."""
    from skyband.spark import mappers, operator, shard
    from skyband.spark.forget import SetLoop
    from skyband.spark.trigger_rows import TriggerRows

    watch.around(mappers, "in_order", "mapper: order of rows")
    watch.around(mappers.Packer, "send", "mapper: pack")
    watch.around(mappers.Packer, "_needed", "mapper: prune")
    watch.around(mappers.Validator, "examine", "mapper: validate")
    watch.around(mappers, "to_bytes", "mapper: Arrow bytes")
    watch.around(operator.Operator, "handleInputRows", "operator: messages")
    watch.around(TriggerRows, "add", "operator: unpack")
    watch.around(TriggerRows, "slices", "operator: order of rows")
    watch.around(TriggerRows, "hashes", "operator: touched cells")
    watch.around(shard.Shard, "_read", "state: head")
    watch.around(shard.Shard, "head", "state: head")
    watch.around(shard.Shard, "_load", "state: read cells")
    watch.around(shard.Shard, "_revive", "state: cells to arrays")
    watch.around(shard.Shard, "_store", "state: write cells")
    watch.around(shard, "cut", "state: arrays to cells")
    watch.around(SetLoop, "push", "operator: push")
    watch.around(operator, "to_bytes", "operator: Arrow bytes")
    watch.around(mappers, "from_bytes", "output: read")


def main() -> None:
    folder, work = Path(os.environ["SKYBAND_TIMES"]), pyspark.daemon.worker
    watch = Stopwatch()
    if sys.argv[1:2] == ["pyspark.worker"]:
        load()

    def worker(sock: Any, authenticated: bool) -> int:
        install_once()
        watch.spent.clear()
        begin = time.process_time()
        try:
            return work(sock, authenticated)
        finally:
            watch.spent["task"] = time.process_time() - begin
            with (folder / f"{os.getpid()}.jsonl").open("a") as file:
                print(json.dumps(watch.spent), file=file)

    def install_once() -> None:
        if not watch.since and sys.argv[1:2] == ["pyspark.worker"]:
            watch.since = time.process_time()
            install(watch)

    pyspark.daemon.worker = worker
    pyspark.daemon.manager()


if __name__ == "__main__":
    main()
