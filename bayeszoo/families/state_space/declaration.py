"""PyMC declarations of levels that move in time, and the density of rows with the levels integrated out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayeszoo.data.inputs import starts as starts_of
from bayeszoo.families.state_space.matrices import Matrices
from bayeszoo.families.state_space.structure import SDS, Structure
from bayeszoo.likelihoods.ops.kalman import level_log_likelihood, structural_log_likelihood


def walk(name: str, q: object, m0: float, s0: float, opens: np.ndarray, dims: str) -> pt.TensorVariable:
    """Declare levels: N(m0, s0^2) in the first row of each sequence, then N(previous level, q^2)."""
    constants = (np.float64(m0), np.float64(s0), opens.astype(np.float64))
    return pm.CustomDist(name, q, *constants, logp=_log_walk, random=_walked, signature="(),(),(),(t)->(t)", dims=dims)


def _log_walk(level: pt.TensorVariable, q: pt.TensorVariable, m0: Any, s0: Any, opens: Any) -> pt.TensorVariable:
    before = pt.concatenate([pt.atleast_1d(m0), level[:-1]])
    mean, sd = opens * m0 + (1 - opens) * before, opens * s0 + (1 - opens) * q
    return pt.sum(pm.logp(pm.Normal.dist(mean, sd), level))


def _walked(q: Any, m0: Any, s0: Any, opens: Any, rng: Any = None, size: Any = None) -> np.ndarray:
    moves = rng.normal(0.0, np.where(opens > 0, s0, q))
    start = np.maximum.accumulate(np.where(opens > 0, np.arange(len(opens)), 0))
    moved = np.cumsum(moves)
    return np.asarray(m0 + moved - moved[start] + moves[start])


def marginal(q: object, r: object, y: np.ndarray, m0: float, s0: float, starts: np.ndarray) -> pt.TensorVariable:
    """Return the log density of the rows, NaN if missing, given both standard deviations."""
    rows = _with_gaps(y - m0)
    return level_log_likelihood(q, r, rows, pm.Data("variance_0", np.float64(s0) ** 2), pm.Data("starts", starts))


def _with_gaps(deviations: np.ndarray) -> pt.TensorVariable:
    """Declare numbers with NaN for missing ones, which `pymc.Data` does not accept."""
    missing = np.isnan(deviations)
    filled = pm.Data("deviations", np.where(missing, 0.0, deviations))
    return pt.switch(pm.Data("missing", missing.astype(np.float64)), np.float64(np.nan), filled)


def structural(
    outer: Mapping[str, object], data: Mapping[str, np.ndarray], m0: float, structure: Structure | Matrices
) -> pt.TensorVariable:
    """Return the log density of the rows given standard deviations by name, by default 0."""
    q, r = pt.stack([outer.get(name, np.float64(0.0)) for name in SDS][:-1]), outer.get("r", np.float64(0.0))
    first, spread = structure.factors
    constants = {"X": data["X"], "first": first, "spread": spread, "starts": starts_of(data["sequence"])}
    form = dict(zip(("sizes", "start", "matrix", "noise", "parts"), structure.form, strict=True))
    declared = [pm.Data(name, values) for name, values in {**constants, **form}.items()]
    return structural_log_likelihood(q, r, _with_gaps(data["y"] - m0), *declared)


def covariance(outer: Mapping[str, object], terms: Mapping[str, np.ndarray]) -> pt.TensorVariable:
    """Return the covariance matrix of rows: the constant term, plus variances times the terms of moving parts."""
    moving = (pt.square(sd) * pm.Data(f"of_{name}", terms[name]) for name, sd in outer.items())
    return pm.Data("of_first", terms[""]) + sum(moving)
