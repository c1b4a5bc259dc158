"""Models as Stan programs: Stan's own log densities, kept in stan_densities.json, are those of the PyMC models."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from pymc.model.transform.conditioning import remove_value_transforms

import bayeszoo as bz
from bayeszoo.data.read import example, read
from bayeszoo.tools.references.posteriors import _known
from bayeszoo.tools.references.stan_program import stan_data, stan_program

STAN = json.loads((Path(__file__).parent / "stan_densities.json").read_text())
"""What Stan computed, by ``python -m benchmarks.stan densities``: program, two points and the log densities there."""


def reference(name):
    """Return model and data of a reference, without its answer."""
    kind, data_set, few = dict(_known())[name]
    rows = example(kind, data_set)
    if few:
        excerpt = read(kind, kind.weak(rows).excerpt(rows))
        rows = read(kind, kind.weak(excerpt).shortened(excerpt, few))
    return kind.weak(rows), rows


FAST = {"poll1988-dirichlet_multinomial", "iris_setosa-normal_inverse_wishart", "diabetes-linear_regression"}


@pytest.mark.parametrize("name", [n if n in FAST else pytest.param(n, marks=pytest.mark.slow) for n in STAN])
def test_density_is_stan_s_with_every_constant(name):
    model, data = reference(name)
    declared = model.declare(data)
    declared.rvs_to_initial_values.update(dict.fromkeys(declared.free_RVs))  # which cannot be copied
    declared = remove_value_transforms(declared)
    density = declared.compile_fn(declared.logp(), mode="FAST_COMPILE")  # no loop is compiled: PyTensor interprets it
    heights = [float(density({key: np.asarray(x) for key, x in point.items()})) for point in STAN[name]["points"]]
    np.testing.assert_allclose(heights, STAN[name]["log_densities"], rtol=1e-9, atol=1e-9)


def test_programs_are_those_that_stan_has_run():
    kinds = [bz.find(name) for name in bz.names()]
    digests = {kind.name: hashlib.sha256(text.encode()).hexdigest() for kind in kinds if (text := stan_program(kind))}
    assert len(digests) >= 26
    assert {name.partition("-")[2]: entry["program"] for name, entry in STAN.items()} == digests


def test_data_block_is_filled_with_data_fields_and_lengths():
    model, data = reference("ethanol_8-mixture_of_regressions")
    assert stan_program(type(model)) is None
    model, data = reference("galaxies_8-gaussian_mixture")
    filled = stan_data(stan_program(type(model)), model, data)
    assert (filled["N"], filled["D"], filled["K"]) == (8, 1, 2)
    assert filled["m0"] == pytest.approx([np.mean(data["Y"])])
    assert np.shape(filled["Y"]) == (8, 1)
