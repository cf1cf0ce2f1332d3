"""Vectors standing on a GPU against the bare matrix product: `python -m benchmarks.gpu --store FILE.jsonl`.

Needs PyTorch, Triton and NumPy alone: it drives the lanes of `Monitor(..., device="cuda")`
(engines/topk/torch_device.py, device_turns.py) as its engine does. Vectors of documents begin in memory of the host and
changes end there. The window is filled, then pushes are timed; then answers of some lanes are held against answers
found by the contract's rule.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from datetime import UTC, datetime
from typing import Any

import numpy as np
import torch

from benchmarks.store import Row, write
from skyband.engines.topk.device_turns import FREE, Block, Numbers, Rows, room_for, take_block, unit_of, want_of
from skyband.engines.topk.kernels import device as kernels
from skyband.engines.topk.torch_device import TorchLanes
from skyband.query.scoring.forms import COSINE

LANES_AT_ONCE = 1 << 15


def main() -> None:
    """Measure, check, print, and store one row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1_000_000)
    parser.add_argument("--d", type=int, default=768)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, default=8_192, help="of a push")
    parser.add_argument("--pushes", type=int, default=40, help="that are timed, once the window is full")
    parser.add_argument("--commit", default="", help="what is measured")
    parser.add_argument("--store", default="", help="the file that a row is added to")
    parser.add_argument("--profile", action="store_true", help="time each part of some more pushes")
    asked = parser.parse_args()
    run = Run(asked)
    run.fill()
    times, changes = run.measure(asked.pushes)
    if asked.profile:
        run.profile(8)
    bare = bare_products(asked.queries, asked.rows, asked.d)
    right = run.check()
    rate, bare_rate = asked.rows / np.median(times), asked.rows / np.median(bare)
    print(
        f"{asked.queries:,} queries, d={asked.d}, k={asked.k}, n={asked.n:,}, pushes of {asked.rows:,}: "
        f"{rate:,.0f} documents/s (bare product {bare_rate:,.0f}, ratio {rate / bare_rate:.3f}), "
        f"{changes / asked.pushes / asked.rows:.1f} changes a document, {'right' if right else 'WRONG'}",
        flush=True,
    )
    if asked.store:
        names = ("queries", "d", "k", "n", "rows", "pushes")
        common: dict[str, Any] = {
            "experiment": "gpu", "cell": f"{asked.queries:,} queries, pushes of {asked.rows:,}", "number": 0,
            "workload": "random unit vectors", "parameters": {name: getattr(asked, name) for name in names}, "seed": 7,
            "right": right, "commit": asked.commit, "dirty": False, "machine": machine(),
            "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
            "run": datetime.now(UTC).isoformat(timespec="seconds"), "load": round(os.getloadavg()[0], 1),
        }  # fmt: skip
        mine = {
            "documents_per_second": [asked.rows / one for one in times], "changes": [changes / asked.pushes],
            "gpu_bytes": [torch.cuda.max_memory_allocated()], "error_of_bound": [run.largest_error()],
        }  # fmt: skip
        theirs = {"documents_per_second": [asked.rows / one for one in bare]}
        with open(asked.store, "a") as file:
            write(file, Row(contestant="cuda", call="lanes", seconds=times, counters=mine, **common))
            write(file, Row(contestant="bare product", call="matmul", seconds=bare, counters=theirs, **common))


class Run:
    """Standing vectors and a stream."""

    def __init__(self, asked: Any) -> None:
        self.asked, self.random = asked, torch.Generator("cuda").manual_seed(7)
        k, n = asked.k, asked.n
        self.lanes = TorchLanes(asked.d, room_for(k), COSINE, turned=False, timed=False)
        self.lanes.reserve(asked.queries)
        began = time.perf_counter()
        for low in range(0, asked.queries, LANES_AT_ONCE):
            size = min(LANES_AT_ONCE, asked.queries - low)
            points = self.vectors(size).astype(np.float64)
            norms = rule_norms(points)
            ones = np.ones(size, np.int64)
            numbers = {
                "k": k * ones, "want": want_of(k) * ones, "length": n * ones, "birth": 0 * ones,
                "depths": np.full(size, -np.inf), "dues": -FREE * ones,
            }  # fmt: skip
            self.lanes.write(
                np.arange(low, low + size), points, unit_of(points, norms, COSINE, False), norms, numbers, None
            )
        self.lanes.reserve_rows(n + 4 * asked.rows, 0, 0)
        print(f"lanes written in {time.perf_counter() - began:.0f} s", flush=True)
        ones = np.ones(asked.queries, np.int64)
        self.known = k * ones, want_of(k) * ones, n * ones
        watched = range(0, asked.queries, max(1, asked.queries // 64))
        self.end, self.members = 0, dict[int, dict[int, float]]((lane, {}) for lane in watched)
        self.watched = np.array(list(self.members))
        self.marks = np.zeros(asked.queries, np.bool_)
        self.marks[self.watched] = True
        self.numbers = np.arange(4 * n + 400 * asked.rows)

    def vectors(self, size: int) -> Any:
        found = torch.randn((size, self.asked.d), generator=self.random, device="cuda")
        return (found / found.norm(dim=1, keepdim=True)).cpu().numpy()

    def push(self, matrix: Any) -> int:
        """Take documents; returns how many changes there are."""
        n, low, high = self.asked.n, self.end, self.end + len(matrix)
        numbers = self.numbers[low:high]
        self.lanes.put(Rows(low, matrix, None, numbers, numbers, numbers))
        begin = max(0, low - n)
        window = self.numbers[begin:high]
        known, changes = Numbers(*self.known, begin, window, window, window), 0
        while low < high:
            size = min(high - low, max(16, low // 2), n // 4)
            for found in take_block(
                self.lanes, known, Block(low, low + size, low - 1, low + size - 1, FREE), net=False
            ):
                changes += len(found.lanes)
                self.follow(found)
            low += size
        self.end = high
        return changes

    def follow(self, found: Any) -> None:
        """Keep the answers of some lanes by changes alone."""
        for i in np.flatnonzero(self.marks[found.lanes]).tolist():
            answer, serial = self.members[int(found.lanes[i])], int(found.serials[i])
            if found.bits[i] & 1:
                answer[serial] = float(found.keys[i])
            else:
                del answer[serial]

    def fill(self) -> None:
        began, changes = time.perf_counter(), 0
        while self.end < self.asked.n:
            changes += self.push(self.vectors(min(self.asked.rows, self.asked.n - self.end)))
        print(f"filled in {time.perf_counter() - began:.1f} s, {changes:,} changes", flush=True)

    def measure(self, pushes: int) -> tuple[list[float], int]:
        """Seconds of each push, and how many changes there were."""
        times, changes = [], 0
        for _ in range(3):
            self.push(self.vectors(self.asked.rows))
        batches = [self.vectors(self.asked.rows) for _ in range(pushes)]
        for batch in batches:
            torch.cuda.synchronize()
            began = time.perf_counter()
            changes += self.push(batch)
            torch.cuda.synchronize()
            times.append(time.perf_counter() - began)
        return times, changes

    def profile(self, pushes: int) -> None:
        """Print the milliseconds a push that each part takes."""
        spent: dict[str, list[float]] = {}
        names = ("put", "_stage", "_get", "lacking", "near", "find", "_sieve", "_score", "crowded", "replay")
        for name in names:
            plain = getattr(self.lanes, name)

            def timed(*given: Any, name: str = name, plain: Any = plain, **more: Any) -> Any:
                torch.cuda.synchronize()
                began = time.perf_counter()
                found = plain(*given, **more)
                torch.cuda.synchronize()
                spent.setdefault(name, []).append(time.perf_counter() - began)
                return found

            setattr(self.lanes, name, timed)
        for _ in range(pushes):
            self.push(self.vectors(self.asked.rows))
        for name in names:
            setattr(self.lanes, name, getattr(TorchLanes, name).__get__(self.lanes))
        parts = {name: (1e3 * sum(took) / pushes, len(took)) for name, took in spent.items()}
        print("ms a push:", {name: f"{ms:.2f} ({calls})" for name, (ms, calls) in parts.items()}, flush=True)
        counts = self.lanes.columns["counts"][: self.asked.queries].double().mean()
        print(f"objects a lane {float(counts):.1f}", flush=True)

    def largest_error(self) -> float:
        """The largest error of the sums of products, over what the bound allows for it."""
        c, ring, rows = self.lanes.columns, self.lanes.ring, 1 << 14
        some = torch.from_numpy(self.watched).cuda()[:64].contiguous()
        out = torch.empty((len(some), rows), device="cuda")
        kernels.products[(rows // 128, len(some) // 16)](
            c["unit"], ring["half"], some, out, 0, rows, D=self.lanes.wide, BM=16, BN=128, BK=64, num_warps=4
        )
        exact = c["unit"][some].double() @ ring["half"][:rows].double().T
        largest: float = (out.double() - exact).abs().max().item()
        return float(largest / ((self.asked.d + 64) * 2.0**-21))

    def check(self) -> bool:
        """Whether the answers of the watched lanes are those of the rule, and the changes lead to them."""
        n, d, end = self.asked.n, self.asked.d, self.end
        ring, points = self.lanes.ring["matrix"], self.lanes.columns["points"]
        rows = torch.arange(end - n, end, device="cuda") % self.lanes.rows
        watched = torch.from_numpy(self.watched).cuda()
        right = True
        near = torch.full((len(watched), 0), 0.0, device="cuda", dtype=torch.float64)
        for low in range(0, n, 1 << 16):
            near = torch.cat([near, points[watched, :d].double() @ ring[rows[low : low + (1 << 16)], :d].double().T], 1)
        best = torch.topk(near, 4 * self.asked.k, dim=1).indices.cpu().numpy()
        runs = self.lanes.read_runs(self.watched)
        for g, lane in enumerate(self.watched.tolist()):
            point = points[lane, :d].double().cpu().numpy()
            some = best[g]
            a = ring[rows[torch.from_numpy(some).cuda()], :d].double().cpu().numpy()
            dots = np.cumsum(a * point, axis=1)[:, -1]
            keys = dots / (rule_norms(a) * rule_norms(point[None, :]))
            order = np.lexsort((-some, -keys))[: self.asked.k]
            wanted = {int(some[i] + end - n): float(keys[i]) for i in order}
            inside = (runs.flags[g] & 1) > 0
            kept = dict(zip(runs.serials[g][inside].tolist(), runs.keys[g][inside].tolist(), strict=True))
            right &= wanted == kept == self.members[lane]
        return right


def rule_norms(points: Any) -> Any:
    """Norms by the contract's rule: squares summed from left to right."""
    return np.sqrt(np.cumsum(points * points, axis=1)[:, -1])


def bare_products(queries: int, rows: int, d: int) -> list[float]:
    """Seconds of the same products in bfloat16 by PyTorch, their results written to memory."""
    lanes = torch.randn((queries, d), device="cuda", dtype=torch.bfloat16)
    documents = torch.randn((rows, d), device="cuda", dtype=torch.bfloat16)
    step, times = 1 << 16, []
    out = torch.empty((step, rows), device="cuda", dtype=torch.bfloat16)
    for _ in range(12):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for low in range(0, queries, step):
            some = lanes[low : low + step]
            torch.matmul(some, documents.T, out=out[: len(some)])
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return times[2:]


def machine() -> dict[str, Any]:
    """What it ran on."""
    return {
        "gpu": torch.cuda.get_device_name(0), "torch": torch.__version__, "python": platform.python_version(),
        "system": platform.platform(),
    }  # fmt: skip


if __name__ == "__main__":
    main()
