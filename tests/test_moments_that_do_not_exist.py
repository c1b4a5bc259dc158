"""Moments of new rows that the model says do not exist, whatever the tails of the draws look like."""

import numpy as np
import pytest
from scipy import stats

import bayeszoo as bz
from bayeszoo.distributions.conjugate.multivariate import MultivariateNormal
from bayeszoo.distributions.conjugate.normal import Normal
from bayeszoo.distributions.structures import Matrices, Scalar, Structure
from bayeszoo.foundation.tails import Moments, existing
from bayeszoo.results import summary

HMM, MIXTURE = bz.find("hmm_gaussian"), bz.find("gaussian_mixture")
ROWS = {"y": [0.1, 0.2, 5.0, 0.3]}


def finite(value):
    return bool(np.all(np.isfinite(value)))


@pytest.mark.parametrize("a", [0.3, 0.5, 0.8, 1.0, 1.3])
def test_the_limit_is_where_scipys_student_t_loses_its_moments(a):
    values = (np.asarray(value) for value in (0.0, 1.0, a, 1.0))
    block = Normal(("mean", "variance"), "y", *values)
    law = stats.t(*block.predictive(1).args)
    assert (block.moments_below > 1, block.moments_below > 2) == (finite(law.mean()), finite(law.std()))


@pytest.mark.parametrize("structure", [Matrices(2), Structure(2), Scalar(2)], ids=["full", "diagonal", "spherical"])
@pytest.mark.parametrize("nu", [1.4, 2.0, 3.2])
def test_so_it_is_of_vectors(structure, nu):
    """A column of a new row is Student t with as many degrees of freedom as its mean."""
    psi = np.ones(structure.shape) if len(structure.shape) < 2 else np.eye(2)
    block = MultivariateNormal(("m", "S"), "Y", np.zeros(2), np.asarray(1.0), np.asarray(nu), psi, structure)
    mean = block.marginals()["m"]
    assert (block.moments_below > 1, block.moments_below > 2) == (finite(mean.mean()), finite(mean.std()))


@pytest.mark.parametrize("seed", [1, 3])
@pytest.mark.parametrize(("a0", "shown"), [(0.8, ["mean"]), (0.4, []), (2.0, ["mean", "sd"])])
def test_a_state_that_may_have_no_row_keeps_the_tails_of_its_prior(a0, shown, seed):
    tree = bz.fit(HMM(K=2, a0=a0), ROWS, "enumerate", seed=seed, groups=())
    row = bz.forecast(tree).iloc[0]
    assert [name for name in ("mean", "sd") if np.isfinite(row.get(name, np.nan))] == shown
    if a0 < 1:
        assert not np.isfinite(row.get("mcse_mean", np.nan))


def test_a_point_estimate_has_the_moments_of_its_states():
    tree = bz.fit(HMM(K=2, a0=0.8), ROWS, "map", seed=1, groups=())
    row = bz.forecast(tree).iloc[0]
    assert np.isfinite(row["sd"])


def test_a_component_that_may_have_no_row_likewise():
    data = {"Y": np.array([0.1, 0.2, 5.0, 0.3])[:, None], "column": ["y"]}
    tree = bz.fit(MIXTURE(K=2, nu0=1.5, Psi0=1.0, m0=0.0, kappa0=1.0), data, "enumerate", seed=1, groups=())
    frame = bz.predict(tree)
    assert frame["sd"].isna().all()
    assert frame["withheld"].str.contains("sd").all()


def test_of_one_component_the_rows_count():
    few, one = {"y": np.array([0.3])}, HMM(K=1, a0=0.8)
    assert HMM(K=2, a0=0.8).moments_below({**few, "sequence": np.zeros(1, int)}) == pytest.approx(1.6)
    assert one.moments_below({**few, "sequence": np.zeros(1, int)}) == pytest.approx(2.6)
    assert bz.find("normal_gamma")(alpha0=0.3).moments_below(few) == pytest.approx(1.6)
    assert bz.find("gamma_poisson")().moments_below({"y": np.array([2])}) == np.inf


def test_what_is_withheld_for_other_reasons_stays_said():
    some = np.array([1.0, np.nan])
    known = Moments(some, some, some, some, np.array(["", "mean: heavy"], dtype=object))
    told = existing(known, 2.0)
    assert np.isnan(told.sd).all()
    assert told.mean[0] == 1.0
    assert told.withheld[0].startswith("sd, mcse_mean, mcse_sd: ")
    assert "; mean: " in told.withheld[1]
    assert existing(known, 2.5) is known


@pytest.mark.parametrize(("medians", "is_of_moments"), [([np.nan, np.nan], True), ([np.nan, 1.0], False), ([], False)])
def test_a_quantity_is_exact_in_moments_alone_where_no_entry_has_a_median(medians, is_of_moments):
    assert summary._is_of_moments({"median": np.array(medians)}) is is_of_moments
