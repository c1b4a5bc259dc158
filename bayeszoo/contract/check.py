"""The contract: every check over a model, as a scorecard. The tests, the command line and users call the same one.

Identities need no sampling and see a prior off by one part in a million; the sampler is then checked against the
exact answer, because no identity sees a sampler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from bayeszoo.data.inputs import Inputs, Series
from bayeszoo.data.read import Data, example, read
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.errors import InputError
from bayeszoo.fit import fit
from bayeszoo.foundation.gate import Check, at_least, at_most
from bayeszoo.foundation.progress import Reporter
from bayeszoo.model.base import CAPABILITIES, Model
from bayeszoo.model.fields import moved
from bayeszoo.results.assemble import nested

if TYPE_CHECKING:
    from bayeszoo.contract.case import Case

MAX_Z = 4.4
"""Two-sided level 1e-5 for one standard normal number."""
MAX_TAIL = 2.4
MAX_MCSE = {"mean": 0.1, "sd": 0.1, "q025": 0.2, "median": 0.2, "q975": 0.2}
"""Largest Monte Carlo standard error, in posterior sd: agreement must not be had by vagueness."""


MOST_COST = 5_000
"""Cost of a step above which the identities are checked on an excerpt of the data."""


class Identity(NamedTuple):
    """A deterministic check, the capabilities it needs, and what the model's inputs must be like."""

    function: str
    needs: tuple[str, ...] = ("Exact",)
    when: Callable[[Inputs], bool] = lambda inputs: True
    data_free: bool = False
    """Whether it draws its own data, so that one case is enough."""
    closed: bool = True
    """Whether it needs the closed form, which some data may not have."""


def _countable(inputs: Inputs) -> bool:
    return type(inputs).possible is not Inputs.possible


def _measured(inputs: Inputs) -> bool:
    return hasattr(inputs, "in_units")


def _labelled(inputs: Inputs) -> bool:
    return bool(inputs.coords)


def _regression(inputs: Inputs) -> bool:
    return hasattr(inputs, "rescaled")


def _unordered(inputs: Inputs) -> bool:
    return not isinstance(inputs, Series)


OBSERVABLE, ESTIMATES = ("Exact", "Observable"), ("Exact", "PointEstimates")
LATENT, MIXTURE = ("Latent",), ("Latent", "Variational", "Enumerable")

IDENTITIES = (
    Identity("independent_density", OBSERVABLE, closed=False),
    Identity("candidate_identity"),
    Identity("compressed_density", closed=False),
    Identity("chain_rule", ("Predictive",)),
    Identity("normalization", when=_countable, data_free=True),
    Identity("gradient", closed=False),
    Identity("jacobian", closed=False),
    Identity("row_order"),
    Identity("label_order", when=_labelled),
    Identity("units", when=_measured),
    Identity("feature_units", when=_regression),
    Identity("weak_defaults", (), closed=False),
    Identity("weak_units", (), when=_measured, closed=False),
    Identity("names_of_axes", closed=False),
    Identity("predictive_shape", ("Predictive",)),
    Identity("likelihood_shape", OBSERVABLE),
    Identity("derived_quantities", ("Exact", "Derived")),
    Identity("batches"),
    Identity("no_data", closed=False),
    Identity("simulator", data_free=True, closed=False),
    Identity("prior_sampler", data_free=True, closed=False),
    Identity("map_is_the_maximum", ESTIMATES, closed=False),
    Identity("mle_is_the_maximum", ESTIMATES, closed=False),
    Identity("free_parameters", ESTIMATES, closed=False),
    Identity("em_objective", LATENT, closed=False),
    Identity("em_map_is_stationary", LATENT, closed=False),
    Identity("em_mle_is_stationary", LATENT, closed=False),
    Identity("compiled_density", (*LATENT, "Compiled"), closed=False),
    Identity("compiled_gradient", (*LATENT, "Compiled"), closed=False),
    Identity("statistics_density", (*LATENT, "Sufficient"), closed=False),
    Identity("statistics_gradient", (*LATENT, "Sufficient"), closed=False),
    Identity("likelihood_of_rows", (*LATENT, "Observable"), closed=False),
    Identity("labels_mean_nothing", (*LATENT, "Symmetric"), closed=False),
    Identity("bound", MIXTURE, closed=False),
    Identity("one_component", MIXTURE, closed=False),
    Identity("enumerated_candidate", MIXTURE, closed=False),
    Identity("enumerated_row_order", MIXTURE, when=_unordered, closed=False),
    Identity("enumerated_units", MIXTURE, when=_measured, closed=False),
    Identity("simulation_based", MIXTURE, data_free=True, closed=False),
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
    say = (reporter or Reporter()).say
    cases = cases_of(model, data, seed)
    first: Model = cases[0].model
    found = _or_failed("source", lambda: source_checks(first, cases[0]))
    closed = isinstance(model, type) or any(case.is_closed for case in cases)
    for identity in applicable(type(first), closed):
        say(f"{first.name}: {identity.function}")
        found += _or_failed(identity.function, lambda: [_worst(identity, cases)])  # noqa: B023
    if sampler and isinstance(first, CAPABILITIES["Exact"]):
        say(f"{first.name}: NUTS against the exact answer")
        found += _or_failed("NUTS", lambda: sampler_checks(model, data, seed))
    if sampler and isinstance(first, CAPABILITIES["Enumerable"]):
        say(f"{first.name}: NUTS against enumeration")
        found += _or_failed("NUTS", lambda: latent_identities().sampler_checks(model, data, seed))
    return found


def latent_identities() -> Any:
    """Return the identities of models with latent variables, which import PyMC."""
    from bayeszoo.contract import latent as latent_identities

    return latent_identities


def case_of(model: Model | type[Model], data: Any = None, seed: int = 0) -> Case:
    """Pair a model with the data that its identities are checked on; a class is moved off its defaults."""
    from bayeszoo.contract.case import Case

    if data is None:
        made = off_default(model) if isinstance(model, type) else model
        return Case(made, read(made, made.simulate(np.random.default_rng(seed), 20)[1]), seed)
    data = _part(model, read(model, data))
    return Case(off_default(model, data) if isinstance(model, type) else model, data, seed)


def _part(model: Any, data: Data) -> Data:
    """Return so much of the data that every number of the model's declaration can be differentiated; mostly all."""
    if not hasattr(model, "excerpt"):
        return data
    kind = model() if isinstance(model, type) else model
    return replace(read(model, kind.excerpt(data)), source=data.source) if kind.cost(data) > MOST_COST else data


def cases_of(model: Model | type[Model], data: Any = None, seed: int = 0) -> list[Case]:
    """Return every case that the identities are checked on."""
    first = case_of(model, data, seed)
    if data is not None:
        return [first]
    others = [case_of(first.model, other, seed) for other in first.model.inputs.other_forms(first.data)]
    real = [example(model, item.name) for item in model.examples]
    return [first, *others, *(case_of(model, one, seed) for one in real if _suits(model, one))]


def _suits(model: Model | type[Model], data: Data) -> bool:
    """Say whether the data have as many labels as an instance has hyperparameters; a class is made to suit them."""
    if isinstance(model, type):
        return True
    try:
        return not isinstance(model, CAPABILITIES["Sufficient"]) or cast(Any, model).statistics(data) is not None
    except InputError:
        return False


def _worst(identity: Identity, cases: list[Case]) -> Check:
    """Run an identity on every case, and return the check that failed or came nearest to failing."""
    suited = [case for case in cases if not identity.closed or case.is_closed]
    checks = [run_identity(identity, case) for case in (suited[:1] if identity.data_free else suited)]
    failed = [check for check in checks if not check.passed]
    return failed[0] if failed else max(checks, key=lambda check: check.value or 0.0)


def applicable(model: type[Model], closed: bool = True) -> Iterator[Identity]:
    """Yield the identities that a model has the capabilities for, and where there is no closed form the others."""
    for identity in IDENTITIES:
        capable = all(issubclass(model, CAPABILITIES[name]) for name in identity.needs)
        if capable and (closed or not identity.closed) and identity.when(model.inputs):
            yield identity


def off_default(model: type[Model], data: Data | None = None) -> Model:
    """Make a model whose hyperparameters all differ from their defaults and from each other.

    Parameters
    ----------
    model : class
        Its weakly informative fields are moved; without ``data``, its defaults.
    data : Data, optional
        What the model must suit.
    """
    base = model() if data is None else model.weak(data)
    arrays = base.simulate(np.random.default_rng(0), 1)[1] if data is None else data
    return cast(Model, moved(base, base.sizes(arrays)))


def _or_failed(name: str, run: Callable[[], list[Check]]) -> list[Check]:
    """Run checks; one that raises has not passed."""
    try:
        return run()
    except Exception as error:  # a model under test may raise anything, and the scorecard is where to say it
        return [Check(name, False, None, f"computed, but it raised {type(error).__name__}: {error}")]


def run_identity(identity: Identity, case: Case) -> Check:
    """Run one identity."""
    from bayeszoo.contract import identities

    where = identities if hasattr(identities, identity.function) else latent_identities()
    function: Callable[[Case], Check] = getattr(where, identity.function)
    return function(case)


def source_checks(model: Model, case: Case) -> list[Check]:
    """Check the source for ignored keywords and numbers that PyTensor would read as less than float64."""
    from bayeszoo.contract import source

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
    case = case_of(model, _real_data(model) if data is None else data)
    if data is None and not case.is_closed:
        case = case_of(model, None, seed)
    if not case.is_closed:
        return []
    posterior = case.model.posterior(case.stats)
    tree = fit(case.model, case.data, "nuts", seed=seed)
    draws = {str(name): v.to_numpy() for name, v in tree["posterior"].data_vars.items()}
    exact = posterior.rvs((4, 1000), case.rng)
    failed = [name for name, check in nested(tree, "gate")["checks"].items() if not check["passed"]]
    return [
        at_most(" ".join(["NUTS: failed gate checks", *failed]), len(failed), 0),
        at_most("NUTS: largest |z|", largest_z(draws, posterior), MAX_Z),
        at_most("NUTS: |z| of the mean log density", abs(joint_z(draws, posterior, case.rng)), MAX_Z),
        at_most("NUTS: MCSE over its limit", _vagueness(draws, posterior), 1.0),
        at_least("power: |z| of sd x 1.1", largest_z(_distorted(exact, posterior, 1.1, 0.0), posterior), MAX_Z),
        at_least("power: |z| of mean + 0.2 sd", largest_z(_distorted(exact, posterior, 1.0, 0.2), posterior), MAX_Z),
    ]


def _real_data(model: Any) -> Data | None:
    return example(model) if model.examples and _suits(model, example(model)) else None


def joint_z(draws: Mapping[str, np.ndarray], posterior: Any, rng: np.random.Generator) -> float:
    """Return the error of the mean log density of the draws against that of exact draws, in its standard error.

    It sees draws whose every marginal is right and whose dependence is not.
    """
    from arviz_stats.base import array_stats

    shape = next(iter(draws.values())).shape[:2]
    found = np.array(
        [[posterior.logpdf({k: v[i, j] for k, v in draws.items()}) for j in range(shape[1])] for i in range(shape[0])]
    )
    exact = posterior.rvs(4000, rng)
    expected = np.array([posterior.logpdf({k: v[i] for k, v in exact.items()}) for i in range(4000)])
    mcse = array_stats.mcse(found, method="mean", chain_axis=0, draw_axis=1)
    return float((found.mean() - expected.mean()) / np.hypot(mcse, expected.std() / np.sqrt(4000)))


def largest_z(draws: Mapping[str, np.ndarray], posterior: Any) -> float:
    """Return the largest error of any mean, sd or quantile in its own Monte Carlo standard errors.

    Means and standard deviations of heavy-tailed parameters are left out: their errors are not normal.

    Parameters
    ----------
    draws : mapping of str to ndarray
        Shape (chain, draw, *parameter shape).
    posterior : Posterior
        Closed form.
    """
    errors = [(found - exact) / mcse for _, found, exact, mcse, _ in _functionals(draws, posterior)]
    return float(np.max(np.abs(np.concatenate(errors))))


def _vagueness(draws: Mapping[str, np.ndarray], posterior: Any) -> float:
    """Return the largest Monte Carlo standard error over the limit for its functional."""
    return max(float(np.max(mcse / (MAX_MCSE[name] * sd))) for name, _, _, mcse, sd in _functionals(draws, posterior))


def _functionals(draws: Mapping[str, np.ndarray], posterior: Any) -> Iterator[tuple[str, Any, Any, Any, Any]]:
    """Yield (name, estimate, exact, MCSE of the same functional, scale) for every parameter, each of shape (k,)."""
    from arviz_stats.base import array_stats

    axes, both = {"chain_axis": 0, "draw_axis": 1}, (0, 1)
    for name, marginal in posterior.items():
        values, light, scale = draws[name], _light_tailed(marginal), _scale(marginal)
        for label, found, exact in (
            ("mean", values.mean(both), marginal.mean()),
            ("sd", values.std(both, ddof=1), marginal.std()),
        ):
            mcse = array_stats.mcse(values, method=label, **axes)
            if light.any():
                yield label, found[light], np.asarray(exact)[light], mcse[light], scale[light]
        for label, q in QUANTILES.items():
            mcse = array_stats.mcse(values, method="quantile", prob=q, **axes)
            found = np.quantile(values, q, axis=both)
            yield label, np.ravel(found), np.ravel(marginal.ppf(q)), np.ravel(mcse), np.ravel(scale)


def _scale(marginal: Any) -> np.ndarray:
    """Half the width of the central 68%: a standard deviation that always exists."""
    return (np.asarray(marginal.ppf(0.84)) - np.asarray(marginal.ppf(0.16))) / 2


def _light_tailed(marginal: Any) -> np.ndarray:
    """Say which entries have tails light enough for the error of a standard deviation to be normal.

    The distance of the 0.1% quantile from the median, in those of the 2.5% quantile, is 1.6 for a Gaussian, 2.2 for an
    exponential, 2.6 for Student's t with 4 degrees of freedom.
    """
    middle = np.asarray(marginal.ppf(0.5))
    near = [np.abs(marginal.ppf(q) - middle) for q in (0.025, 0.975)]
    far = [np.abs(marginal.ppf(q) - middle) for q in (0.001, 0.999)]
    return np.asarray(np.maximum(*far) < MAX_TAIL * np.maximum(*near))


def _distorted(draws: Mapping[str, np.ndarray], posterior: Any, stretch: float, shift: float) -> dict[str, np.ndarray]:
    """Return draws stretched about the exact median and moved by a share of the exact scale."""
    return {
        name: posterior[name].ppf(0.5) * (1 - stretch) + stretch * values + shift * _scale(posterior[name])
        for name, values in draws.items()
    }
