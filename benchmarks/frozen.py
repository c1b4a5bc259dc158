"""Numbers of all examples that a change of the core must not move: `python -m benchmarks.frozen write | compare`.

Of each model's first example: evidence, MAP, MLE, posterior moments and predictive scores of exact fits; the first
steps of EM and of variational Bayes from one start; the evidence of some assignments. Written to 17 digits.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from bayeszoo.data.read import example
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.fit import fit
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import (
    EM,
    ClosedForm,
    Enumerable,
    PointEstimates,
    Predictive,
    Variational,
    is_integrated,
)
from bayeszoo.model.find import builtin_names, find

FILE = Path(__file__).with_suffix(".json")
CLOSE = 1e-10
"""Largest difference relative to max(1, |number|): of what is computed in closed form, or by a few steps."""
STEPS = 8
VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    "gaussian_mixture": ({}, *({"covariance": kind, "K": 3} for kind in ("diagonal", "spherical", "tied"))),
    "hmm_gaussian": ({}, {"means": (1100.0, 850.0)}, {"variances": (2e4, 1.5e4)}, {"K": 3, "sticky": 2.0}),
    "hmm_poisson": ({}, {"rates": (15.0, 26.0)}),
}
"""Fields of a model of which there are several cases."""


def numbers(prefix: str, values: Any) -> Iterator[tuple[str, list[float]]]:
    """Flatten named arrays, or one: few entries, and the sums of many."""
    for name, value in values.items() if isinstance(values, dict) else [("", values)]:
        flat = np.ravel(np.asarray(value, dtype=np.float64))
        some = flat if len(flat) <= 8 else np.array([*flat[:4], flat.sum(), np.square(flat).sum()])
        yield f"{prefix}{'.' if name else ''}{name}", [float(v) for v in some]


def closed(model: Any, data: Any) -> Iterator[tuple[str, list[float]]]:
    """Yield what a model in closed form says of its data."""
    stats = model.statistics(data)
    posterior = model.posterior(stats)
    yield from numbers("log_evidence", model.log_evidence(stats))
    yield from numbers("log_evidence_counts", model.log_evidence_counts(stats))
    yield from numbers("mean", {name: law.mean() for name, law in posterior.items()})
    yield from numbers("sd", {name: law.std() for name, law in posterior.items()})
    draws = posterior.rvs(4, np.random.default_rng(1))
    yield from numbers("density_at_mean", posterior.logpdf({name: law.mean() for name, law in posterior.items()}))
    yield from numbers("draws", draws)
    if isinstance(model, PointEstimates):
        for step in ("map", "mle"):
            yield from attempted(step, lambda step=step: getattr(model, step)(stats))
    if isinstance(model, Predictive):
        law = model.predictive(stats, data)
        yield from numbers("predictive", {"mean": law.mean(), "sd": law.std()})


def attempted(prefix: str, compute: Callable[[], Any]) -> Iterator[tuple[str, list[float]]]:
    """Yield numbers, or none where they are refused."""
    try:
        yield from numbers(prefix, compute())
    except (InputError, NumericalError):
        yield f"{prefix}.refused", [1.0]


def climbs(model: Any, data: Any) -> Iterator[tuple[str, list[float]]]:
    """Yield heights and parameters of the first steps from one start."""
    if isinstance(model, EM):
        for flat in (False, True):
            params = model.start(data, np.random.default_rng(1))
            for step in range(STEPS):
                try:
                    expected = model.e_step(params, data)
                    params = model.m_step(expected.stats, flat)
                except (InputError, NumericalError):
                    break
                prior = 0.0 if flat else model.log_prior(params, data)
                yield from numbers(f"em.{flat}.{step}", {"value": expected.value, "prior": prior})
            yield from numbers(f"em.{flat}", dict(params))
    if isinstance(model, Variational):
        q = model.vb_start(data, np.random.default_rng(2))
        for step in range(STEPS):
            expected = model.vb_e_step(q, data)
            yield from numbers(f"vb.{step}", expected.value - model.divergence(q))
            q = model.vb_m_step(expected.stats)
        posterior = model.vb_posterior(q)
        yield from numbers("vb.mean", {name: law.mean() for name, law in posterior.items()})
        draws = posterior.rvs(3, np.random.default_rng(3))
        yield from numbers("vb.draws", draws)
        yield from numbers("vb.log_density", model.vb_log_density(q, draws))


def assigned(model: Any, data: Any) -> Iterator[tuple[str, list[float]]]:
    """Yield the evidence of some assignments."""
    few = model.shortened(data, 12)
    assignments = np.random.default_rng(4).integers(0, model.K, (5, model.latents(few)))
    yield from numbers("log_joint", model.log_joint(assignments, few))
    posterior = model.posterior_given(assignments[0], few)
    yield from numbers("given.mean", {name: law.mean() for name, law in posterior.items()})


def fitted(model: Model, data: Any, method: str) -> Iterator[tuple[str, list[float]]]:
    """Yield what a fit of all steps ends with."""
    options = {"draws": 50} if method == "exact" else {}
    tree = fit(model, data, method, seed=1, groups=(), **options)
    facts = {name: value for name, value in json.loads(tree.attrs["facts"]).items() if isinstance(value, float)}
    yield from numbers(f"fit.{method}", facts)
    if "exact" in tree.children:
        yield from numbers(f"fit.{method}", {name: values.values for name, values in tree["exact"].data_vars.items()})


def of_model(kind: type[Model]) -> dict[str, list[float]]:
    """Return the numbers of a model and its first example, up to where the model refuses them."""
    data = example(kind)
    each: dict[str, list[float]] = {}
    for case, fields in enumerate(VARIANTS.get(kind.name, ({},))):
        model = kind.weak_given(data.arrays, fields)
        parts = [closed(model, data.arrays)] if isinstance(model, ClosedForm) else []
        parts += [climbs(model, data.arrays)]
        parts += [fitted(model, data, method) for method in ("exact", "mle", "map") if is_integrated(kind)]
        parts += [assigned(model, data.arrays)] if isinstance(model, Enumerable) else []
        for part in parts:
            with suppress(InputError, NumericalError):
                each.update((f"{key}/{case}" if case else key, values) for key, values in part)
    return each


def main(action: str, *names: str) -> int:
    """Write the file, or compare with it and name what has moved; of some models, or of all."""
    now = {name: of_model(find(name)) for name in names or builtin_names()}
    if action == "write":
        FILE.write_text(json.dumps({**(json.loads(FILE.read_text()) if names else {}), **now}, indent=0))
        return 0
    before, moved = json.loads(FILE.read_text()), []
    for name, own in ((name, before[name]) for name in now):
        for key, values in own.items():
            new = now[name].get(key)
            close = new is not None and np.allclose(new, values, rtol=CLOSE, atol=CLOSE, equal_nan=True)
            moved += [] if close else [f"{name} {key}: {values} {new}"]
    print("\n".join(moved) or f"none of {sum(map(len, before.values()))} numbers has moved")
    return int(bool(moved))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
