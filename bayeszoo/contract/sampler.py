"""NUTS against the exact answer, and the power of the comparison to detect a wrong sampler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bayeszoo.contract.case import Case, case_of, closed_case, real_data, with_few_outer
from bayeszoo.distributions.posterior import QUANTILES, Marginal
from bayeszoo.fit import fit, uninterrupted
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.gate import Check, at_least, at_most
from bayeszoo.foundation.named import Params
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Conditional, Gibbs, exchangeable_axis

MAX_Z = 4.4  # two-sided level 1e-5 for one standard normal number
MAX_TAIL = 2.4
MAX_MCSE = {"mean": 0.1, "sd": 0.1, "q025": 0.2, "median": 0.2, "q975": 0.2}
"""Largest Monte Carlo standard error, in posterior sd: agreement must not be due to large errors."""


def sampler_checks(model: Model | type[Model], data: object, seed: int) -> list[Check]:
    """Compare NUTS with the closed form (layer 2), and show that the comparison would detect a wrong sampler."""
    case = closed_case(model, seed) if data is None else with_few_outer(case_of(model, data))
    if not case.is_closed:
        return []
    posterior = case.posterior
    if exchangeable_axis(case.model) is not None:
        return label_free_checks(case, posterior.rvs((4, 5000), case.rng), "quadrature", seed)
    # sampling two or three outer parameters is fast, and their tails are long
    length = 2000 if isinstance(case.model, Conditional) else 1000
    fitted = uninterrupted(fit(case.model, case.data, "nuts", seed=seed, groups=(), draws=length))
    draws, failed = fitted.draws(), fitted.failed
    exact = posterior.rvs((4, 1000), case.rng)
    return [
        at_most(" ".join(["NUTS: failed gate checks", *failed]), len(failed), 0),
        at_most("NUTS: largest |z|", largest_z(draws, posterior), MAX_Z),
        at_most("NUTS: |z| of the mean log density", abs(joint_z(draws, posterior, case.rng)), MAX_Z),
        at_most("NUTS: MCSE over its limit", _vagueness(draws, posterior), 1.0),
        at_least("power: |z| of sd x 1.1", largest_z(_distorted(exact, posterior, 1.1, 0.0), posterior), MAX_Z),
        at_least("power: |z| of mean + 0.2 sd", largest_z(_distorted(exact, posterior, 1.0, 0.2), posterior), MAX_Z),
        *(_gibbs_checks(case, seed) if isinstance(case.model, Gibbs) else ()),
    ]


def _gibbs_checks(case: Case, seed: int) -> list[Check]:
    """Compare Gibbs sampling with the closed form in the same way."""
    fitted = uninterrupted(fit(case.model, case.data, "gibbs", seed=seed, groups=()))
    draws, failed = fitted.draws(), fitted.failed
    return [
        at_most(" ".join(["Gibbs: failed gate checks", *failed]), len(failed), 0),
        at_most("Gibbs: largest |z|", largest_z(draws, case.posterior), MAX_Z),
        at_most("Gibbs: |z| of the mean log density", abs(joint_z(draws, case.posterior, case.rng)), MAX_Z),
    ]


def label_free_checks(case: Case, exact: Params, standard: str, seed: int) -> list[Check]:
    """Compare NUTS, and Gibbs sampling, with exact draws, in quantities that do not depend on labels."""
    reference = case.model.invariants(exact, case.data)
    distorted = {name: values[:, :1000] + 0.2 * values.std() for name, values in reference.items()}
    samplers = {"NUTS": "nuts", **({"Gibbs": "gibbs"} if isinstance(case.model, Gibbs) else {})}
    return [
        *(check for sampler in samplers.items() for check in _against(reference, standard, case, *sampler, seed)),
        at_least("power: |z| of label-free quantities + 0.2 sd", largest_quartile_z(distorted, reference), MAX_Z),
    ]


def _against(reference: Params, standard: str, case: Case, name: str, method: str, seed: int) -> list[Check]:
    """Check that a sampler passes the gate, and that its draws agree with the reference."""
    fitted = uninterrupted(fit(case.model, dict(case.data), method, seed=seed, groups=()))
    # if labels have a meaning, the fit has not computed the label-free quantities
    sampled = fitted.draws("invariants") or case.model.invariants(fitted.draws(), case.data)
    return [
        at_most(" ".join([f"{name}: failed gate checks", *fitted.failed]), len(fitted.failed), 0),
        at_most(f"{name} against {standard}: largest |z|", largest_quartile_z(sampled, reference), MAX_Z),
    ]


def largest_quartile_z(sampled: Params, reference: Params) -> float:
    """Return the largest error of a quartile of any quantity, in Monte Carlo errors of both sides."""
    errors = []
    for name in reference:
        drawn, expected = np.asarray(sampled[name]), np.asarray(reference[name])
        for q in (0.25, 0.5, 0.75):
            mcse = [diagnostics.mcse(values, "quantile", q) for values in (drawn, expected)]
            difference = np.quantile(drawn, q, axis=(0, 1)) - np.quantile(expected, q, axis=(0, 1))
            same = np.abs(difference) <= 1e-6 * np.maximum(1.0, np.abs(expected).max())  # of probabilities near 0 or 1
            with np.errstate(divide="ignore", invalid="ignore"):
                errors.append(np.max(np.where(same, 0.0, np.abs(difference) / np.hypot(*mcse))))
    return float(np.max(errors))


def point_mass_checks(model: Model | type[Model], data: object, seed: int) -> list[Check]:
    """Compare collapsed Gibbs sampling with the closed form for parameters with atoms, and show its power likewise."""
    case = case_of(model, real_data(model) if data is None else data)
    posterior, rng = case.posterior, case.rng
    fitted = uninterrupted(fit(case.model, case.data, "gibbs", seed=seed, groups=()))
    draws, failed = fitted.draws(), fitted.failed
    exact = posterior.rvs((4, 1000), rng)
    seldom = {name: np.where(rng.random(values.shape) < 0.1, 0.0, values) for name, values in exact.items()}
    dense = {name: marginal for name, marginal in posterior.items() if name not in case.model.atoms}
    wide = {**exact, **_distorted({name: exact[name] for name in dense}, posterior, 1.1, 0.0)}
    return [
        at_most(" ".join(["Gibbs: failed gate checks", *failed]), len(failed), 0),
        at_most("Gibbs: largest |z|", largest_share_z(draws, posterior), MAX_Z),
        at_most("Gibbs: |z| of the mean log density", abs(joint_z(draws, posterior, rng)), MAX_Z),
        at_least(
            "power: |z| of a tenth of the draws at 0", largest_share_z({**exact, "w": seldom["w"]}, posterior), MAX_Z
        ),
        at_least("power: |z| of sd x 1.1", largest_share_z(wide, posterior), MAX_Z),
    ]


def largest_share_z(draws: Mapping[str, np.ndarray], posterior: Any) -> float:
    """Return the largest error of a share of draws that are 0, or up to an exact quantile, in standard errors.

    Shares whose exact value is below 1/200 or above 199/200 are left out: their errors are not normal.
    """
    errors = [np.zeros(1)]
    for name, marginal in posterior.items():
        places = [np.asarray(marginal.ppf(prob)) for prob in QUANTILES.values()]
        shares = [(draws[name] <= place, marginal.cdf(place)) for place in places]
        for seen, level in [*shares, (draws[name] == 0, marginal.atom)]:
            level = np.broadcast_to(level, seen.shape[2:])
            kept = (level > 0.005) & (level < 0.995)
            below = seen[..., kept].astype(np.float64)
            ess = diagnostics.ess(below, "mean") if kept.any() else np.ones(0)
            errors.append((below.mean((0, 1)) - level[kept]) / np.sqrt(level[kept] * (1 - level[kept]) / ess))
    return float(np.max(np.abs(np.concatenate([np.ravel(error) for error in errors]))))


def joint_z(draws: Mapping[str, np.ndarray], posterior: Any, rng: np.random.Generator) -> float:
    """Return the error of the mean log density of the draws against that of exact draws, in its standard error.

    It detects draws with correct marginals and a wrong dependence.
    """
    densities, expected = posterior.logpdf(draws), posterior.logpdf(posterior.rvs(4000, rng))
    mcse = diagnostics.mcse(densities)
    return float((densities.mean() - expected.mean()) / np.hypot(mcse, expected.std() / np.sqrt(4000)))


def largest_z(draws: Mapping[str, np.ndarray], posterior: Any) -> float:
    """Return the largest error of any mean, sd or quantile of draws (chain, draw, ...) in Monte Carlo standard errors.

    Means and standard deviations of heavy-tailed parameters are left out: their errors are not normal. A quantile is
    compared by the share of draws below the exact one. The standard error of a quantile itself is a distance between
    two draws, so uncertain in a tail that a |z| above 4 is 24 times as frequent as for a normal number.
    """
    moments = [(value - exact) / mcse for _, value, exact, mcse, _ in _moments(draws, posterior)]
    shares = [
        (below.mean((0, 1)) - prob) / np.sqrt(prob * (1 - prob) / diagnostics.ess(below, "mean"))
        for name, marginal in posterior.items()
        for prob in QUANTILES.values()
        for below in [np.where(draws[name] <= marginal.ppf(prob), 1.0, 0.0)]
    ]
    return float(np.max(np.abs(np.concatenate([np.ravel(z) for z in moments + shares]))))


def _vagueness(draws: Mapping[str, np.ndarray], posterior: Any) -> float:
    """Return the largest ratio of a Monte Carlo standard error to the limit for its functional."""
    errors = [(label, mcse / scale) for label, _, _, mcse, scale in _moments(draws, posterior)]
    errors += [
        (label, np.ravel(diagnostics.mcse(draws[name], "quantile", prob) / _scale(marginal)))
        for name, marginal in posterior.items()
        for label, prob in QUANTILES.items()
    ]
    return max(float(np.max(error / MAX_MCSE[label])) for label, error in errors)


def _moments(draws: Mapping[str, np.ndarray], posterior: Any) -> Iterator[tuple[str, Any, Any, Any, Any]]:
    """Yield (name, estimate, exact, its MCSE, scale) of the mean and sd of light-tailed entries, each of shape (k,)."""
    for name, marginal in posterior.items():
        values, scale = draws[name], _scale(marginal)
        light = _light_tailed(marginal) & np.isfinite(marginal.std())
        if light.any():
            for label, estimate, exact in (
                ("mean", values.mean((0, 1)), marginal.mean()),
                ("sd", values.std((0, 1), ddof=1), marginal.std()),
            ):
                mcse = diagnostics.mcse(values, label)
                yield label, estimate[light], np.asarray(exact)[light], mcse[light], scale[light]


def _scale(marginal: Marginal) -> np.ndarray:
    """Half the width of the central 68%: a measure of scale that always exists."""
    return (np.asarray(marginal.ppf(0.84)) - np.asarray(marginal.ppf(0.16))) / 2


def _light_tailed(marginal: Marginal) -> np.ndarray:
    """Say for each entry whether its tails are light enough for the error of a standard deviation to be normal.

    Tails are measured by the distance of the 0.1% quantile from the median over that of the 2.5% quantile: 1.6 for a
    Gaussian, 2.2 for an exponential, 2.6 for a Student-t(4) distribution.
    """
    middle = np.asarray(marginal.ppf(0.5))
    near = [np.abs(marginal.ppf(q) - middle) for q in (0.025, 0.975)]
    far = [np.abs(marginal.ppf(q) - middle) for q in (0.001, 0.999)]
    return np.asarray(np.maximum(*far) < MAX_TAIL * np.maximum(*near))


def _distorted(draws: Mapping[str, np.ndarray], posterior: Any, stretch: float, shift: float) -> dict[str, np.ndarray]:
    """Return draws stretched around the exact median and shifted by a multiple of the exact scale."""
    return {
        name: posterior[name].ppf(0.5) * (1 - stretch) + stretch * values + shift * _scale(posterior[name])
        for name, values in draws.items()
    }
