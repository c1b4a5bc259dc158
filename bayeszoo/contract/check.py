"""The contract: every check of a model, as a scorecard. The tests, the command line and users call the same function.

Identities need no sampling and see a prior off by one part in a million; the sampler is then checked against the
exact answer, because no identity sees a sampler.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from bayeszoo.data.inputs import Inputs, Measured, Regression, Series
from bayeszoo.foundation.gate import Check, at_most
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.model import capabilities as can
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import CAPABILITIES, Enumerable, is_exact, is_integrated, simulates

if TYPE_CHECKING:
    from bayeszoo.contract.case import Case


class Identity(NamedTuple):
    """A deterministic check, the capabilities it needs, and a condition on the model's inputs."""

    function: str
    needs: tuple[str, ...] = ("ClosedForm",)
    when: Callable[[Inputs], bool] = lambda inputs: True
    data_free: bool = False
    """Whether it draws its own data, so that one case is enough."""
    closed: bool = True
    """Whether it needs the closed form, which some data may not have."""
    lacks: tuple[str, ...] = ()
    """Capabilities of models that are checked by other identities instead."""


OBSERVABLE, ESTIMATES = ("ClosedForm", "Observable"), ("ClosedForm", "PointEstimates")
EXACT = ("Exact",)
LATENT, MIXTURE = ("Hidden",), ("EM", "Variational", "Enumerable")
AUGMENTED = ("LogConcave", "Variational")


_HAS = {
    **CAPABILITIES,
    "Exact": is_exact,
    "Hidden": lambda model: issubclass(model, can.EM) and not issubclass(model, can.LogConcave | can.Conditional),
}
SIMULATED = {"simulator", "simulation_based", "simulated_prior", "simulated_rows"}  # they draw data from the prior
COUNTED = {"normalization", "likelihood_sums_to_one"}  # they enumerate all possible data sets
PLAIN = ("ClosedForm", "Hidden")  # a model with neither is compared with its declaration and its simulator alone


def _countable(inputs: Inputs) -> bool:
    return type(inputs).possible is not Inputs.possible and inputs.possible() is not None


def _plain(function: str, *needs: str, when: Callable[[Inputs], bool] = lambda inputs: True) -> Identity:
    return Identity(function, needs, when, closed=False, lacks=PLAIN)


IDENTITIES = (
    Identity("independent_density", OBSERVABLE, closed=False),
    Identity("candidate_identity"),
    Identity("compressed_density", closed=False),
    Identity("chain_rule", ("Predictive",)),
    Identity("normalization", EXACT, when=_countable, data_free=True),
    Identity("gradient", closed=False, lacks=("PointMasses",)),
    Identity("jacobian", closed=False, lacks=("PointMasses",)),
    Identity("row_order", EXACT, when=lambda inputs: not isinstance(inputs, Series)),
    Identity("label_order", when=lambda inputs: bool(inputs.coords)),
    Identity("units", EXACT, when=lambda inputs: isinstance(inputs, Measured)),
    Identity("feature_units", when=lambda inputs: isinstance(inputs, Regression)),
    Identity("weak_defaults", (), closed=False),
    Identity("weak_units", (), when=lambda inputs: isinstance(inputs, Measured), closed=False),
    Identity("names_of_axes", closed=False),
    Identity("predictive_shape", ("Predictive",)),
    Identity("likelihood_shape", OBSERVABLE),
    Identity("derived_quantities", ("ClosedForm", "Derived")),
    Identity("batches"),
    Identity("no_data", closed=False),
    Identity("simulator", data_free=True, closed=False),
    Identity("prior_sampler", data_free=True, closed=False),
    Identity("map_is_the_maximum", ESTIMATES, closed=False),
    Identity("mle_is_the_maximum", ESTIMATES, closed=False),
    Identity("free_parameters", ESTIMATES, closed=False),
    Identity("conditional_candidate", ("Conditional",), closed=False),
    Identity("marginalized_density", ("Conditional",), closed=False),
    Identity("quadrature", ("Conditional", "Exact"), closed=False),
    Identity("concave_density", ("LogConcave",), closed=False),
    Identity("concave_derivatives", ("LogConcave",), closed=False),
    Identity("certified_mode", ("LogConcave",), closed=False),
    Identity("integrated_evidence", ("LogConcave", "Exact"), lacks=("Conditional",)),
    Identity("bound_of_augmented", (*AUGMENTED, "Exact")),
    Identity("bound_of_known_weights", AUGMENTED, closed=False),
    Identity("bound_is_stationary", AUGMENTED, closed=False),
    Identity("em_objective", ("EM",), closed=False),
    Identity("em_map_is_stationary", ("EM",), closed=False),
    Identity("em_mle_is_stationary", ("EM",), closed=False),
    Identity("parts_add_up", ("EM", "Additive"), closed=False),
    Identity("compiled_density", (*LATENT, "Compiled"), closed=False),
    Identity("compiled_gradient", (*LATENT, "Compiled"), closed=False),
    Identity("statistics_density", (*LATENT, "Sufficient"), closed=False),
    Identity("statistics_gradient", (*LATENT, "Sufficient"), closed=False),
    Identity("likelihood_of_rows", (*LATENT, "Observable"), closed=False),
    Identity("labels_mean_nothing", (*LATENT, "Symmetric"), closed=False),
    Identity("bound", MIXTURE, closed=False),
    Identity("one_component", MIXTURE, closed=False),
    Identity("enumerated_candidate", MIXTURE, closed=False),
    Identity("enumerated_row_order", MIXTURE, when=lambda inputs: not isinstance(inputs, Series), closed=False),
    Identity("enumerated_units", MIXTURE, when=lambda inputs: isinstance(inputs, Measured), closed=False),
    Identity("simulation_based", MIXTURE, data_free=True, closed=False),
    Identity("decoded_states", ("Sequential", "Enumerable"), closed=False),
    Identity("laplace_evidence", (), closed=False, lacks=("PointMasses",)),
    Identity("simulated_prior", (), data_free=True, closed=False, lacks=("ClosedForm", "Enumerable")),
    Identity("simulated_rows", (), data_free=True, closed=False, lacks=("ClosedForm", "Enumerable")),
    _plain("declared_likelihood", "Observable"),
    _plain("likelihood_sums_to_one", "Observable", when=_countable),
    _plain("likelihood_shape", "Observable"),
    _plain("gradient"),
    _plain("names_of_axes"),
    _plain("derived_quantities", "Derived"),
    _plain("compiled_density", "Compiled"),
    _plain("compiled_gradient", "Compiled"),
    _plain("statistics_density", "Sufficient"),
    _plain("assignments", "Latent"),
    _plain("labels_mean_nothing", "Symmetric"),
)


def check(
    model: Model | type[Model],
    data: object = None,
    *,
    seed: int = 0,
    sampler: bool = True,
    reporter: Reporter | None = None,
) -> list[Check]:
    """Run every check that applies to a model.

    Parameters
    ----------
    model : Model or its class
        A class is checked with its fields moved off their defaults: a = b = 1 would hide that the two are swapped.
    data : Data or anything that `read` takes, optional
        By default 20 simulated rows, in each form of a table, and every real data set that comes with the model; the
        sampler is checked on one of these.
    seed : int
        Seed of the points, the simulated data and the chains.
    sampler : bool
        Whether to run NUTS, and Gibbs sampling, and compare them with the exact answer.
    reporter : Reporter, optional
        Takes progress.

    Returns
    -------
    list of Check
        Name, whether it passed, the figure found and its limit. A check that raises has not passed.
    """
    from bayeszoo.contract import latent  # imports PyTensor, as the next two do
    from bayeszoo.contract.case import cases_of
    from bayeszoo.contract.sampler import point_mass_checks, sampler_checks

    say = (reporter or Reporter()).say
    cases = cases_of(model, data, seed)
    instance: Model = cases[0].model
    checks = _or_failed("source", lambda: source_checks(instance, cases[0]))
    closed = any(case.is_closed for case in cases) or (isinstance(model, type) and not is_integrated(model))
    identities = applicable(type(instance), closed)
    if instance.possible(cases[0].data) is None:
        identities = (identity for identity in identities if identity.function not in COUNTED)
    for identity in identities:
        say(f"{instance.name}: {identity.function}")
        checks += _or_failed(identity.function, lambda: [_worst(identity, cases)])  # noqa: B023
    if sampler and is_exact(type(instance)):
        name = "Gibbs" if isinstance(instance, can.PointMasses) else "NUTS"
        say(f"{instance.name}: {name} against the exact answer")
        compare = point_mass_checks if isinstance(instance, can.PointMasses) else sampler_checks
        checks += _or_failed(name, lambda: compare(model, data, seed))
    if sampler and isinstance(instance, Enumerable):
        say(f"{instance.name}: samplers against enumeration")
        checks += _or_failed("NUTS and Gibbs", lambda: latent.sampler_checks(model, data, seed))
    return checks


def _worst(identity: Identity, cases: list[Case]) -> Check:
    """Run an identity on every case; return the first check that failed, else the one with the largest figure."""
    suited = [case for case in cases if not identity.closed or case.is_closed]
    checks = [run_identity(identity, case) for case in (suited[:1] if identity.data_free else suited)]
    failed = [check for check in checks if not check.passed]
    return failed[0] if failed else max(checks, key=lambda check: check.value or 0.0)


def applicable(model: type[Model], closed: bool | None = None) -> Iterator[Identity]:
    """Yield the identities that apply to a model; those that need a closed form only if it has one.

    By default it has one, unless its outer parameters are vectors of many entries in every model of the class.
    """
    if closed is None:
        closed = not can.has_vectors(model) or can.has_few_outer(model)
    for identity in IDENTITIES:
        capable = all(_HAS[name](model) for name in identity.needs)
        replaced = any(_HAS[name](model) for name in identity.lacks)
        simulated = identity.function not in SIMULATED or simulates(model)
        if capable and not replaced and simulated and (closed or not identity.closed) and identity.when(model.inputs):
            yield identity


class Lacking(NamedTuple):
    """A step or base that a model lacks: its name, its use, and the checks that need it."""

    name: str
    gives: str
    checks: str


_OFFERS: tuple[tuple[str, type[Model] | None, str, str], ...] = (
    ("weak", None, "priors scaled to the data", ""),
    ("simulate", None, "`bayeszoo simulate`", "whether data drawn from the prior follow the declared density"),
    ("Observable", can.Observable, "predictions, residuals, leave-one-out scores", "the density of a row by SciPy"),
    ("Sufficient", can.Sufficient, "a cost that does not grow with the rows", ""),
    ("ClosedForm", can.ClosedForm, "the exact posterior and evidence", "NUTS against an exact answer"),
    ("EM", can.EM, "MAP and MLE by EM", ""),
)


def lacking(model: type[Model]) -> list[Lacking]:
    """List the optional steps and bases that a model lacks, with the checks that need them."""
    missing = []
    for name, base, gives, checks in _OFFERS:
        steps = [] if base is None else sorted(base.__abstractmethods__ - Model.__abstractmethods__)
        part = f"step {name}" if base is None else f"base {name} ({', '.join(steps)})"
        if not (can.has_step(name)(model) if base is None else issubclass(model, base)):
            by_enumeration = base is can.ClosedForm and (issubclass(model, Enumerable) or is_exact(model))
            missing.append(Lacking(part, gives, "" if by_enumeration else checks))
    return missing


def _or_failed(name: str, run: Callable[[], list[Check]]) -> list[Check]:
    """Run checks; if they raise, return a failed check."""
    try:
        return run()
    except Exception as error:  # a model under test may raise anything, and the scorecard reports it
        return [Check(name, False, None, f"computed, but it raised {type(error).__name__}: {error}")]


def run_identity(identity: Identity, case: Case) -> Check:
    """Run one identity."""
    from bayeszoo.contract import answered, concave, conditional, declared, identities, latent

    functions = vars(identities) | vars(latent) | vars(declared) | vars(conditional) | vars(concave) | vars(answered)
    return cast(Check, functions[identity.function](case))


def source_checks(model: Model, case: Case) -> list[Check]:
    """Check the source for keywords that PyMC ignores, and numbers that PyTensor reads as less than float64."""
    from bayeszoo.contract import source

    text = Path(inspect.getfile(type(model))).read_text(encoding="utf-8")
    mistakes = {
        "unknown PyMC keywords": source.unknown_keywords(text),
        "literal numbers in PyMC": source.literal_numbers(text),
        "variables below float64": source.narrow_variables(model.declare(case.data)),
    }
    named = {f"{name}: {', '.join(places)}" if places else name: len(places) for name, places in mistakes.items()}
    return [at_most(name, count, 0) for name, count in named.items()]
