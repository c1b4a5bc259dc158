"""The concentration of a Dirichlet process as a parameter: against sums over all partitions and quadrature."""

import numpy as np
import pytest
from scipy import special, stats

import bayeszoo as bz
from bayeszoo.distributions.scale import Scale
from bayeszoo.results.figures import facts
from bayeszoo.results.stored import Fit
from tests.refusals import raises

BASE = bz.find("dp_mixture")(K=8, alpha=1.0, m0=0.5, kappa0=0.2, nu0=3.0, Psi0=0.3)
OVER = bz.over(BASE, {"alpha": "Gamma(2, 2)"})
ROWS = bz.read(BASE, {"a": [-1.0, -0.8, 0.1, 1.9, 2.2, 2.4]})
ALPHA = np.exp(np.linspace(np.log(1e-3), np.log(60), 61))


def moments(log_likelihood):
    """Return mean and sd of alpha ~ Gamma(2, rate 2) by quadrature over its log."""
    mass = np.exp(log_likelihood - np.max(log_likelihood)) * stats.gamma(2, scale=0.5).pdf(ALPHA) * ALPHA
    mean = mass @ ALPHA / mass.sum()
    return mean, np.sqrt(mass @ (ALPHA - mean) ** 2 / mass.sum())


@pytest.fixture(scope="module")
def chain():
    return OVER.gibbs(ROWS, np.random.default_rng(1))


def drawn(chain):
    """Draw alpha again and again given clusters of 3, 1 and 2 rows on the sticks 1, 3 and 4."""
    chain._component, values = np.array([0, 0, 0, 2, 3, 3]), []
    for _ in range(4000):
        chain._draw_alpha()
        values.append(chain._alpha)
    return np.array(values)


def of_clusters():
    """Return the exact moments: the breaks are Beta(1, alpha), and a row passes each that it does not end at."""
    ends, passed = np.array([3, 0, 1, 2, 0, 0, 0]), np.array([3, 3, 2, 0, 0, 0, 0])
    terms = special.betaln(1 + ends, ALPHA[:, None] + passed) - special.betaln(1, ALPHA[:, None])
    return moments(terms.sum(axis=1))


def test_alpha_given_the_clusters_is_drawn_from_its_density(chain):
    values, (mean, sd) = drawn(chain), of_clusters()
    error = sd / np.sqrt(len(values) / 5)  # slices depend on each other a little
    assert abs(values.mean() - mean) < 4.5 * error
    assert abs(values.std() / sd - 1) < 0.12


def test_a_forgotten_jacobian_is_seen(chain, monkeypatch):
    monkeypatch.setattr(Scale, "log_slope", lambda self, place: 0.0)
    values, (mean, sd) = drawn(chain), of_clusters()
    assert abs(values.mean() - mean) > 10 * sd / np.sqrt(len(values) / 5)


def test_other_fields_and_densities_are_refused():
    with raises(bz.InputError, "unknown_field"):
        bz.over(BASE, {"kappa0": "Gamma(2, 2)"})
    with raises(bz.InputError, "out_of_range"):
        bz.over(BASE, {"alpha": "Normal(0, 1)"})
    with raises(bz.InputError, "no_density"):
        OVER.declare(ROWS)


@pytest.mark.slow  # long chains, against sums over all partitions at each of the places of a quadrature
def test_gibbs_is_as_the_sum_over_partitions_and_a_quadrature():
    at = [BASE.replaced(alpha=float(alpha)) for alpha in ALPHA]
    fits = [bz.fit(model, ROWS, "enumerate", seed=1, draws=100, chains=1, groups=[]) for model in at]
    mean, sd = moments(np.array([facts(fit)["log_evidence"] for fit in fits]))
    fit = bz.fit(OVER, ROWS, "gibbs", seed=1, draws=500)
    assert fit.attrs["status"] == "ok"
    row = bz.summarize(fit)["alpha"]
    assert abs(row["mean"] - mean) < 4.5 * row["mcse_mean"]
    assert abs(row["sd"] - sd) < 4.5 * row["mcse_sd"]


@pytest.mark.slow  # samples
def test_answers_and_files_are_those_of_the_process(tmp_path):
    fit = bz.fit(OVER, ROWS, "gibbs", seed=1, draws=400, thin=5)
    bz.save(fit, tmp_path / "over.nc")
    again = bz.load(tmp_path / "over.nc")
    assert str(Fit(again).model) == str(OVER)
    assert (bz.row_density(again)["density"] > 0).all()
    assert bz.clusters(again).drawn.shape[-1] == 6
    assert bz.predict(again, rows=1)["median"].notna().all()
