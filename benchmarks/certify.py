"""`make certify`: hours of fits that test the promise, resumed where they were interrupted.

Every cell (one simulated data set, one repeated fit, one target, one file of seeded bugs) is a line of
``models/scorecards/certificate.jsonl``, appended when it is done; a cell with a line is not run again. ``--fresh``
starts anew; ``--recheck 40`` repeats forty random cells of former models and engines, and records whether the verdicts
are the same. The page ``docs/guide/certificate.md`` is written from the lines alone.

    python -m benchmarks.certify [WORDS ...] [--simulations 200] [--workers 2] [--fresh] [--recheck 0]

runs the cells whose name holds one of the words, such as ``sbc/gaussian_mean`` or ``bad/``; all without any.
"""

import argparse
import json
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cells import ROOT, cells, run, source_digest
from benchmarks.certificate import page

LINES, PAGE = ROOT / "models" / "scorecards" / "certificate.jsonl", ROOT / "docs" / "guide" / "certificate.md"
VERDICT = ("status", "missed", "raised")  # what must be the same again: draws may differ by rounding, and so in ranks


def read_lines(path: Path = LINES) -> dict[str, dict[str, Any]]:
    """Read the lines by cell; one that an interrupt cut off is left out."""
    lines = {}
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            continue
        lines[line["cell"]] = line
    return lines


def run_all(names: Iterable[str], workers: int, path: Path = LINES) -> None:
    """Run the cells without a line, and append each as soon as it is done."""
    done = read_lines(path)
    todo = (name for name in names if name not in done)
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    with path.open("a", encoding="utf-8") as out:
        if path.stat().st_size and not path.read_text(encoding="utf-8").endswith("\n"):
            out.write("\n")
        try:
            while batch := list(islice(todo, 4 * workers)):
                running: dict[Future[dict[str, Any]], str] = {pool.submit(run, name): name for name in batch}
                for future in as_completed(running):
                    line = {"cell": running[future], "source": source_digest(running[future]), **future.result()}
                    out.write(json.dumps(line) + "\n")
                    out.flush()
                    print(running[future], *(f"{k} {line[k]}" for k in ("status", "missed", "raised") if k in line))
        finally:
            pool.shutdown(cancel_futures=True)


def recheck(count: int, workers: int, words: Sequence[str], path: Path = LINES) -> None:
    """Run cells of former models and engines again, drawn at random, and write in their lines what came of it."""
    lines = read_lines(path)
    former = [name for name, line in lines.items() if line["source"] != source_digest(name) and "bugs/" not in name]
    former = [name for name in former if not words or any(word in name for word in words)]
    chosen = np.random.default_rng(count).permutation(former)[:count].tolist()
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for name, again in zip(chosen, pool.map(run, chosen), strict=True):
            before = lines[name]
            same = all(before.get(key) == again.get(key) for key in VERDICT)
            lines[name] = {"cell": name, "source": source_digest(name), **again, "same": same}
            print(name, "the same" if same else f"was {before}, is {again}", flush=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines.values()), encoding="utf-8")


def main() -> None:
    """Run what was asked for, and write the page also when interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--recheck", type=int, default=0)
    asked = parser.parse_args()
    if asked.fresh:
        LINES.unlink(missing_ok=True)
    names = [cell for cell in cells(asked.simulations) if not asked.words or any(word in cell for word in asked.words)]
    try:
        if asked.recheck:
            recheck(asked.recheck, asked.workers, asked.words)
        else:
            run_all(names, asked.workers)
    finally:
        PAGE.write_text(page(read_lines()), encoding="utf-8")


if __name__ == "__main__":
    main()
