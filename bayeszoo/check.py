"""The contract: every check over a model, as a scorecard. The tests, the command line and users call the same one.

Identities need no sampling and see a prior off by one part in a million; the sampler is then checked against the
exact answer, because no identity sees a sampler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from bayeszoo.data import Data, example, read
from bayeszoo.fit import fit
from bayeszoo.gate import Check, at_least, at_most
from bayeszoo.model import CAPABILITIES, Model
from bayeszoo.problem import Reporter
from bayeszoo.tree import QUANTILES, nested

if TYPE_CHECKING:
    from bayeszoo.identities import Case

MAX_Z = 4.4
"""Two-sided level 1e-5 for one standard normal number."""
MAX_MCSE = {"mean": 0.1, "sd": 0.1, "q025": 0.2, "median": 0.2, "q975": 0.2}
"""Largest Monte Carlo standard error, in posterior sd: agreement must not be had by vagueness."""


class Identity(NamedTuple):
    """A deterministic check, the capabilities it needs, and the condition on the model's inputs."""

    function: str
    needs: tuple[str, ...]
    finite_support: bool = False
    data_free: bool = False
    """Whether it draws its own data, so that one case is enough."""


IDENTITIES = (
    Identity("independent_density", ("Conjugate", "Observable")),
    Identity("candidate_identity", ("Conjugate",)),
    Identity("compressed_density", ("Conjugate",)),
    Identity("chain_rule", ("Conjugate",)),
    Identity("normalization", ("Conjugate",), finite_support=True, data_free=True),
    Identity("gradient", ("Conjugate",)),
    Identity("jacobian", ("Conjugate",)),
    Identity("row_order", ("Conjugate",)),
    Identity("weak_defaults", ()),
    Identity("predictive_shape", ("Conjugate",)),
    Identity("likelihood_shape", ("Conjugate", "Observable")),
    Identity("batches", ("Conjugate",)),
    Identity("no_data", ("Conjugate",)),
    Identity("simulator", ("Conjugate",), data_free=True),
    Identity("prior_sampler", ("Conjugate",), data_free=True),
    Identity("map_is_the_maximum", ("Conjugate", "PointEstimates")),
    Identity("mle_is_the_maximum", ("Conjugate", "PointEstimates")),
)


def check(
    model: Model | type[Model],
    data: Any = None,
    *,
    seed: int = 0,
    sampler: bool = True,
    reporter: Reporter | None = None,
) -> list[Check]:
    """Run every check that applies to a model.

    Parameters
    ----------
    model : Model or its class
        A class is checked with its fields moved off their defaults: a = b = 1 would hide that two were swapped.
    data : Data or anything that `read` takes, optional
        By default 20 simulated rows, in each form that a table may take, and every real data set that comes with the
        model; the sampler is checked on the first of these.
    seed : int
        Of the points, the simulated data and the chains.
    sampler : bool
        Whether to run NUTS and compare it with the exact answer.
    reporter : Reporter, optional
        Takes progress.

    Returns
    -------
    list of Check
        Name, whether it passed, the figure found and its limit. A check that raises has not passed.
    """
    model = off_default(model) if isinstance(model, type) else model
    say = (reporter or Reporter()).say
    cases = cases_of(model, data, seed)
    found = _or_failed("source", lambda: source_checks(model, cases[0]))
    for identity in applicable(type(model)):
        say(f"{model.name}: {identity.function}")
        found += _or_failed(identity.function, lambda: [_worst(identity, cases)])  # noqa: B023
    if sampler and isinstance(model, CAPABILITIES["Conjugate"]):
        say(f"{model.name}: NUTS against the exact answer")
        found += _or_failed("NUTS", lambda: sampler_checks(model, data, seed))
    return found


def case_of(model: Model, data: Any = None, seed: int = 0) -> Case:
    """Pair a model with the data that its identities are checked on."""
    from bayeszoo.identities import Case

    if data is None:
        data = model.simulate(np.random.default_rng(seed), 20)[1]
    return Case(model, read(model, data), seed)


def cases_of(model: Model, data: Any = None, seed: int = 0) -> list[Case]:
    """Return every case that the identities are checked on."""
    first = case_of(model, data, seed)
    if data is not None:
        return [first]
    others = [*model.inputs.other_forms(first.data), *(example(model, item.name) for item in model.examples)]
    return [first, *(case_of(model, other, seed) for other in others)]


def _worst(identity: Identity, cases: list[Case]) -> Check:
    """Run an identity on every case, and return the check that failed or came nearest to failing."""
    checks = [run_identity(identity, case) for case in (cases[:1] if identity.data_free else cases)]
    failed = [check for check in checks if not check.passed]
    return failed[0] if failed else max(checks, key=lambda check: check.value or 0.0)


def applicable(model: type[Model]) -> Iterator[Identity]:
    """Yield the identities that a model has the capabilities for."""
    for identity in IDENTITIES:
        capable = all(issubclass(model, CAPABILITIES[name]) for name in identity.needs)
        if capable and not (identity.finite_support and model.inputs.support is None):
            yield identity


def off_default(model: type[Model]) -> Model:
    """Make a model whose hyperparameters all differ from their defaults and from each other."""
    moved = {}
    for i, f in enumerate(f for f in fields(cast(Any, model)) if "label" in f.metadata):
        default = cast(float, f.default)
        moved[f.name] = default * (1.5 + 0.4 * i) if f.metadata["positive"] else default + 0.3 * (i + 1)
    return model(**moved)


def _or_failed(name: str, run: Callable[[], list[Check]]) -> list[Check]:
    """Run checks; one that raises has not passed."""
    try:
        return run()
    except Exception as error:  # a model under test may raise anything, and the scorecard is where to say it
        return [Check(name, False, None, f"computed, but it raised {type(error).__name__}: {error}")]


def run_identity(identity: Identity, case: Case) -> Check:
    """Run one identity."""
    from bayeszoo import identities

    function: Callable[[Case], Check] = getattr(identities, identity.function)
    return function(case)


def source_checks(model: Model, case: Case) -> list[Check]:
    """Check the source for ignored keywords and numbers that PyTensor would read as less than float64."""
    from bayeszoo import source

    text = source.source_of(type(model))
    found = {
        "unknown PyMC keywords": source.unknown_keywords(text),
        "literal numbers in PyMC": source.literal_numbers(text),
        "variables below float64": source.narrow_variables(model.declare(case.data)),
    }
    named = {f"{name}: {', '.join(places)}" if places else name: len(places) for name, places in found.items()}
    return [at_most(name, count, 0) for name, count in named.items()]


def sampler_checks(model: Any, data: Any, seed: int) -> list[Check]:
    """Compare NUTS with the closed form (layer 2), and show that the comparison would see a wrong sampler."""
    data = _real_data(model) if data is None else read(model, data)
    posterior = model.posterior(model.statistics(data))
    tree = fit(model, data, "nuts", seed=seed)
    draws = {str(name): v.to_numpy() for name, v in tree["posterior"].data_vars.items()}
    gate = nested(tree, "gate")
    return [
        at_most("NUTS: failed gate checks", sum(not c["passed"] for c in gate["checks"].values()), 0),
        at_most("NUTS: largest |z|", largest_z(draws, posterior), MAX_Z),
        at_most("NUTS: MCSE over its limit", _vagueness(draws, posterior), 1.0),
        at_least("power: |z| of sd x 1.1", largest_z(_distorted(draws, posterior, 1.1, 0.0), posterior), MAX_Z),
        at_least("power: |z| of mean + 0.2 sd", largest_z(_distorted(draws, posterior, 1.0, 0.2), posterior), MAX_Z),
    ]


def _real_data(model: Model) -> Data:
    return example(model) if model.examples else case_of(model).data


def largest_z(draws: Mapping[str, np.ndarray], posterior: Any) -> float:
    """Return the largest error of any mean, sd or quantile in its own Monte Carlo standard errors.

    Parameters
    ----------
    draws : mapping of str to ndarray
        Shape (chain, draw, *parameter shape).
    posterior : Posterior
        Closed form.
    """
    errors = [(found - exact) / mcse for _, found, exact, mcse, _ in _functionals(draws, posterior)]
    return float(np.max(np.abs(np.concatenate([np.ravel(error) for error in errors]))))


def _vagueness(draws: Mapping[str, np.ndarray], posterior: Any) -> float:
    """Return the largest Monte Carlo standard error over the limit for its functional."""
    return max(float(np.max(mcse / (MAX_MCSE[name] * sd))) for name, _, _, mcse, sd in _functionals(draws, posterior))


def _functionals(draws: Mapping[str, np.ndarray], posterior: Any) -> Iterator[tuple[str, Any, Any, Any, Any]]:
    """Yield (name, estimate, exact, MCSE of the same functional, posterior sd) for every parameter."""
    from arviz_stats.base import array_stats

    axes = {"chain_axis": 0, "draw_axis": 1}
    for name, marginal in posterior.items():
        values, sd = draws[name], marginal.std()
        both = (0, 1)
        yield "mean", values.mean(both), marginal.mean(), array_stats.mcse(values, method="mean", **axes), sd
        yield "sd", values.std(both, ddof=1), sd, array_stats.mcse(values, method="sd", **axes), sd
        for label, q in QUANTILES.items():
            mcse = array_stats.mcse(values, method="quantile", prob=q, **axes)
            yield label, np.quantile(values, q, axis=both), marginal.ppf(q), mcse, sd


def _distorted(draws: Mapping[str, np.ndarray], posterior: Any, scale: float, shift: float) -> dict[str, np.ndarray]:
    """Return draws stretched about the exact mean and moved by a share of the exact sd."""
    return {
        name: posterior[name].mean() + scale * (values - posterior[name].mean()) + shift * posterior[name].std()
        for name, values in draws.items()
    }
