"""Hints what to change in your own model when a check fails."""

from __future__ import annotations

from collections.abc import Iterable

from bayeszoo.foundation import check_names
from bayeszoo.foundation.gate import Check

_CURES = {
    "literal numbers in PyMC": "write np.float64(2) for 2: PyTensor reads 2 as int8 and 2.0 as float32",
    "variables below float64": "write np.float64(2) for 2, and cast arrays by np.asarray(values, dtype=np.float64)",
    "unknown PyMC keywords": "PyMC ignores keywords that it does not know: write sigma=, not sd=",
    "weak defaults in other units": "multiply each field of weak by the power of the unit that units= says",
    "weak defaults": "weak must give fields that are valid for one row and for equal rows",
    "invalid weak defaults": "weak must give fields that are valid for one row and for equal rows",
    "likelihood shape": "likelihood returns a SciPy distribution of one row each, shape (..., rows): "
    "params['mu'][..., None] broadcast against an array of data rows, such as np.zeros(len(data['y']))",
    "likelihood equals declared": "likelihood and declare must be one density: compare scale, rate and sd",
    "parameters with other axes than declared": "say the axes of each parameter by dims on the class, and their labels "
    "by coords(data)",
    "gradient": "the gradient of declare is not that of its density: look at own Ops, and at clipped values",
}
"""Hints by the start of a check's plain name."""


def cures(checks: Iterable[Check]) -> list[str]:
    """Return a line for each check that failed and has a known cure: its name, and what to write instead."""
    failed = [check_names.plain(check.name) for check in checks if not check.passed and check.value is not None]
    lines = []
    for name in failed:
        starts = [start for start in _CURES if name.startswith(start)]
        lines += [f"{name.partition(':')[0]}: {_CURES[max(starts, key=len)]}"] if starts else []
    return list(dict.fromkeys(lines))
