"""Files and lines of source of the library that one fit runs.

Usage: python -m benchmarks.traced
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import bayeszoo as bz

FITS = {"NUTS": ("beta_bernoulli", "nuts"), "EM": ("gaussian_mixture", "em"), "exact": ("beta_bernoulli", "exact")}
ROOTS = tuple(f"{Path(bz.__file__).parents[1]}/{folder}/" for folder in ("bayeszoo", "models"))


def functions_of(run: Callable[[], Any]) -> set[CodeType]:
    """Return the named functions of the library that a call runs, those of its threads too; others are within them."""
    ran = set[CodeType]()

    def trace(frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOTS) and code.co_flags & inspect.CO_NEWLOCALS:
            ran.add(code)

    sys.setprofile(trace)
    threading.setprofile(trace)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return {code for code in ran if not code.co_name.startswith("<")}


def lines_of(functions: set[CodeType]) -> set[tuple[str, int]]:
    """Return the lines of source of functions, each once."""
    lines = set[tuple[str, int]]()
    for code in functions:
        source, start = inspect.getsourcelines(code)
        lines |= {(code.co_filename, start + i) for i in range(len(source))}
    return lines


def main() -> None:
    """Print a line for each method."""
    for name, (model, method) in FITS.items():
        cls = bz.find(model)
        data = bz.example(cls)
        ran = functions_of(lambda cls=cls, data=data, method=method: bz.fit(cls.weak(data), data, method, seed=1))
        print(f"{name:6} {len({code.co_filename for code in ran}):3} files {len(lines_of(ran)):6,} lines")


if __name__ == "__main__":
    main()
