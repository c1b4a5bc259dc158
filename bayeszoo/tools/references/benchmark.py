"""Whether a sampler is right: its draws of targets whose answer is known, against independent draws and the density."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy

from bayeszoo.errors import InputError
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.named import Document
from bayeszoo.foundation.numerics.optimize import Gradient
from bayeszoo.inference.problem import Problem
from bayeszoo.tools.references.posteriors import Reference, entries_of, references
from bayeszoo.tools.references.samplers import Sampler, sampler_named

if TYPE_CHECKING:
    import pandas as pd

TARGETS = (
    "placenta_previa-beta_bernoulli",
    "horse_kicks-gamma_poisson",
    "newcomb-normal_gamma",
    "poll1988-dirichlet_multinomial",
    "eight_schools-normal_means",
    "bioassay-logistic_regression",
)
"""Names of references of few coordinates and one mode."""
ALARMS = 1e-3
"""Chance that a right sampler is called wrong on all targets together."""
TAILS = (0.025, 0.975)
PARTS = 4
LEAST_ESS = 100.0
"""Effective draws below which a sampler has not mixed, whatever it says."""


@dataclass(frozen=True, eq=False)
class Target:
    """A log density of unconstrained coordinates whose answer is known."""

    name: str
    log_density: Gradient
    """A function of a point (D,) that returns the log density and its gradient."""
    draws: np.ndarray
    """Independent draws of it, shape (n, D)."""
    log_evidence: float = np.nan
    """The log of its integral, in nats, where it is known."""
    parameters: Callable[[np.ndarray], Mapping[str, np.ndarray]] | None = None
    """A function of points (..., D) that returns the named parameters there, each (..., own shape); None where the
    coordinates have no other names."""


@dataclass(frozen=True, eq=False)
class Benchmark:
    """The result of a sampler on each target."""

    verdict: str
    """``"right"``; ``"wrong"`` where the draws are not of a target; or ``"not mixed"`` where too few are effective."""
    table: pd.DataFrame
    """A row for each target: the largest |z| of each kind of quantity with its ``limit``, the ratio of sds furthest
    from 1, effective draws (of the coordinate with fewest), calls of the density, effective draws per call, the error
    of the log evidence in nats where the sampler gives one, and the verdict."""
    quantities: pd.DataFrame
    """A row for each number of each parameter, or each coordinate of a target without named parameters: bias of the
    mean in sds of the target and in standard errors, ratio of the sds, shares of draws beyond the 2.5% and the 97.5%
    point, and effective draws."""
    sampler: str
    """The name of the sampler."""

    def __repr__(self) -> str:
        """Say the verdict, and show the table."""
        return f"verdict {self.verdict}\n{self.table.round(2).to_string()}"


def benchmark(
    sampler: Sampler | str, targets: Iterable[Target | str] | None = None, *, budget: int = 100_000, seed: int = 0
) -> Benchmark:
    """Run a sampler on targets whose answer is known, and say whether its draws are of them.

    Means, squares, both tails and the log density of the draws are compared with 10,000 independent draws, in standard
    errors of the difference; and by the gradient g at the draws, the mean of g must be 0 and that of x g be -1.

    Parameters
    ----------
    sampler : callable or str
        ``sampler(log_density, dim, init, seed, budget)`` returns draws of shape (draw, D) or (chain, draw, D), or a
        pair of them and the log evidence in nats; or the name of a library that is installed: ``"blackjax"``,
        ``"emcee"``, ``"numpyro"``, ``"nutpie"`` or ``"pymc"``.
    targets : iterable of Target or str, optional
        Targets, or names of `bz.references`; by default six of one to seven coordinates with one mode.
    budget : int
        Calls of the log density, which the sampler is told; they are counted.
    seed : int
        Given to the sampler.

    Returns
    -------
    Benchmark
        A right sampler that mixes is called wrong in one of a thousand benchmarks.

    Notes
    -----
    A sampler that is wrong by less than its Monte Carlo error passes: the table has the effective draws.
    """
    chosen = [
        each if isinstance(each, Target) else target_of(each) for each in (TARGETS if targets is None else targets)
    ]
    if not chosen:
        raise InputError("there is no target", "no_data")
    import pandas as pd

    name, run = (sampler, sampler_named(sampler)) if isinstance(sampler, str) else (_name(sampler), sampler)
    rows, parts = zip(*(_run(run, target, budget, seed, ALARMS / len(chosen)) for target in chosen), strict=True)
    names = [target.name for target in chosen]
    table = pd.DataFrame(rows, index=pd.Index(names, name="target"))
    worst = next(v for v in ("wrong", "not mixed", "right") if v in set(table["verdict"]))
    return Benchmark(worst, table, pd.concat(parts, keys=names, names=["target", "quantity"]), name)


def _name(sampler: object) -> str:
    return str(getattr(sampler, "__name__", type(sampler).__name__))


def target_of(name: str) -> Target:
    """Return a reference as a target: the density that is sampled, in its unconstrained coordinates."""
    (reference,) = references([name])
    density = Problem(reference.model, reference.data, np.random.default_rng(0)).density
    points = _points(density.unconstrain, reference, [v.name for v in density.model.free_RVs])
    return Target(name, density.joint, points, reference.log_evidence, density.constrain)


def _points(
    unconstrain: Callable[[Mapping[str, np.ndarray]], np.ndarray], reference: Reference, names: Collection[str]
) -> np.ndarray:
    flat = {name: reference.draws[name].reshape(-1, *reference.draws[name].shape[2:]) for name in names}
    return np.array([unconstrain(dict(zip(flat, row, strict=True))) for row in zip(*flat.values(), strict=True)])


def _run(
    sampler: Sampler, target: Target, budget: int, seed: int, alarms: float
) -> tuple[dict[str, object], pd.DataFrame]:
    """Run a sampler on a target; return its row of the table, and a row for each quantity."""
    calls = 0

    def counted(x: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal calls
        calls += 1
        value, gradient = target.log_density(np.asarray(x, dtype=np.float64))
        return value, gradient

    size = target.draws.shape[1]
    init = target.draws[seed % len(target.draws)]
    answer = sampler(counted, size, init.copy(), seed, budget)
    values, log_evidence = answer if isinstance(answer, tuple) else (answer, np.nan)
    draws = np.asarray(values, dtype=np.float64)
    draws = _parts(draws) if draws.ndim == 2 else draws
    if draws.ndim != 3 or draws.shape[2] != size or draws.shape[1] < 4:
        raise InputError(
            f"draws of {target.name} have the shape {draws.shape}, not (chain, draw, {size})", "wrong_shape"
        )
    row = _judged(target, draws, alarms)
    per_call = {"calls": calls, "ess_per_call": row["ess"] / calls if calls else np.nan}
    return {**row, **per_call, "evidence_error": log_evidence - target.log_evidence}, _of_each(target, draws)


def _of_each(target: Target, draws: np.ndarray) -> pd.DataFrame:
    """Return for each quantity what its draws are off by, and how many are effective."""
    import pandas as pd

    entries = [_entries(target, points) for points in (draws, target.draws[None])]
    draws, (known,) = (np.stack(list(values.values()), axis=-1) for values in entries)
    bias, sd, own = draws.mean(axis=(0, 1)) - known.mean(axis=0), known.std(axis=0), draws.std(axis=(0, 1))
    low, high = np.quantile(known, TAILS, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        columns = {
            "bias": bias / sd,
            "bias_z": bias / np.hypot(_mcse(draws), diagnostics.mcse(known[None], independent=True)),
            "sd_ratio": own / sd,
            "below_q025": (draws < low).mean(axis=(0, 1)),
            "above_q975": (draws > high).mean(axis=(0, 1)),
        }
    columns["ess"] = np.minimum(*(diagnostics.ess(draws, kind) for kind in ("bulk", "tail")))
    return pd.DataFrame(columns, index=list(entries[0]))


def _entries(target: Target, points: np.ndarray) -> dict[str, np.ndarray]:
    """Return each number of the parameters, or of the coordinates x, at points (chain, draw, D)."""
    return entries_of({"x": points} if target.parameters is None else target.parameters(points))


def _parts(chain: np.ndarray) -> np.ndarray:
    """Cut one chain (draw, D) into four: R-hat then sees a drift."""
    length = len(chain) // PARTS
    return chain[: PARTS * length].reshape(PARTS, length, -1)


def _judged(target: Target, draws: np.ndarray, alarms: float) -> Document:
    known, size = target.draws[None], draws.shape[2]
    if not np.isfinite(draws).all():
        return {"verdict": "wrong", "ess": 0.0}
    ess = float(min(diagnostics.ess(draws, kind).min() for kind in ("bulk", "tail")))
    z = {name: _z(own, other) for name, own, other in _quantities(target, draws, known)}
    z |= _of_gradient(target, draws)
    count = 6 * size + 1
    limit = float(scipy.stats.norm.isf(alarms / (2 * count)))
    ratio = draws.std(axis=(0, 1)) / known.std(axis=(0, 1))
    mixed = ess >= LEAST_ESS and float(diagnostics.r_hat(draws).max()) < 1.05
    verdict = "not mixed" if not mixed else "wrong" if max(z.values()) > limit else "right"
    return {
        **{"verdict": verdict, **z, "limit": limit, "ess": ess},
        "sd_ratio": float(ratio[np.argmax(np.abs(np.log(np.maximum(ratio, 1e-300))))]),
    }


def _quantities(target: Target, draws: np.ndarray, known: np.ndarray) -> Iterable[tuple[str, np.ndarray, np.ndarray]]:
    """Yield what has a mean to compare: (name, of the draws, of the independent draws)."""
    centre, (low, high) = known.mean(axis=(0, 1)), np.quantile(known, TAILS, axis=(0, 1))
    yield "mean_z", draws, known
    yield "square_z", np.square(draws - centre), np.square(known - centre)
    beyond = [np.concatenate([x < low, x > high], axis=2).astype(np.float64) for x in (draws, known)]
    yield "tail_z", beyond[0], beyond[1]
    yield "log_density_z", _heights(target, draws)[0][..., None], _heights(target, known)[0][..., None]


def _heights(target: Target, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    pairs = [target.log_density(x) for x in points.reshape(-1, points.shape[-1])]
    heights, slopes = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
    return heights.reshape(points.shape[:2]), slopes.reshape(points.shape)


def _z(own: np.ndarray, known: np.ndarray) -> float:
    """Return the largest difference of two means in its standard errors; the second are independent draws."""
    error = np.hypot(_mcse(own), diagnostics.mcse(known, independent=True))
    gap = np.abs(own.mean(axis=(0, 1)) - known.mean(axis=(0, 1)))
    return float(np.max(np.divide(gap, error, out=np.full_like(gap, np.inf), where=error > 0)))


def _of_gradient(target: Target, draws: np.ndarray) -> dict[str, float]:
    slopes = _heights(target, draws)[1]
    terms = {"score_z": slopes, "virial_z": 1 + (draws - target.draws.mean(axis=0)) * slopes}
    return {
        name: float(np.max(np.abs(v.mean(axis=(0, 1))) / np.maximum(_mcse(v), 1e-300))) for name, v in terms.items()
    }


def _mcse(values: np.ndarray) -> np.ndarray:
    return np.nan_to_num(diagnostics.mcse(values))
