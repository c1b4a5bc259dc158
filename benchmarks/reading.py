"""Reading a CSV of 1e6 x 11 as ratios, both sides in one run, interleaved, medians. Never a test: machines differ.

The peers' strict readers: pyarrow and polars, told that every column is float64. Seconds of a clock and of the
processors are both shown: on a busy machine threads wait.
"""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from pyarrow import csv

import bayeszoo as bz

REPEATS = 5
ROWS, FEATURES = 10**6, 10
NAMES = [*(f"x{i}" for i in range(FEATURES)), "y"]


def seconds(action: Callable[[], object]) -> tuple[float, float]:
    """Time one call by the clock and on the processors."""
    clock, processors = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - clock, time.process_time() - processors


def versus(title: str, ours: Callable[[], object], peer: Callable[[], object], target: str) -> None:
    """Print the ratios of medians of interleaved timings, after one call of each to warm up."""
    ours(), peer()
    pairs = [(seconds(ours), seconds(peer)) for _ in range(REPEATS)]
    for i, name in enumerate(("clock", "processors")):
        mine, theirs = (median(side[i] for side in sides) for sides in zip(*pairs, strict=True))
        ratio = f"{mine:7.3f} s {theirs:7.3f} s  ratio {mine / theirs:6.3f}"
        print(f"{title:64s} {name:10s} {ratio}  target {target}", flush=True)


def written(folder: str, digits: int | None) -> Path:
    """Write normal numbers with so many decimals, or with all their digits."""
    path, rng = Path(folder, f"{digits}.csv"), np.random.default_rng(0)
    values = rng.normal(size=(ROWS, FEATURES + 1))
    pd.DataFrame(values if digits is None else values.round(digits), columns=NAMES).to_csv(path, index=False)
    return path


def main() -> None:
    """Compare reading for a regression and for a mixture with what the peers need for the numbers alone."""
    types = csv.ConvertOptions(column_types=dict.fromkeys(NAMES, pa.float64()))
    with tempfile.TemporaryDirectory() as folder:
        for digits in (None, 4):
            path = written(folder, digits)
            peers: dict[str, Callable[[], object]] = {
                "pyarrow": partial(csv.read_csv, path, convert_options=types),
                "polars": partial(pl.read_csv, path, schema=dict.fromkeys(NAMES, pl.Float64)),
            }
            for model in ("linear_regression", "gaussian_mixture"):
                ours = partial(bz.read, bz.find(model), path)
                for name, peer in peers.items():
                    digits_said = "all digits" if digits is None else f"{digits} decimals"
                    versus(f"CSV of 1e6 x 11, {digits_said}, for {model} / {name}", ours, peer, "<= 3")


if __name__ == "__main__":
    main()
