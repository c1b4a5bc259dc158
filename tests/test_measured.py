"""Approximations are measured against the posterior, in the units of what is printed."""

import numpy as np
import pytest
import scipy

import bayeszoo as bz
from bayeszoo.errors import NumericalError, Untrustworthy
from bayeszoo.inference import reference
from bayeszoo.inference.problem import Problem
from bayeszoo.model.outer.integration import integrate
from bayeszoo.results import measured
from bayeszoo.results.gaps import gaps, statistics_of
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import errors
from tests.refusals import raises

ROWS = [0.0, 0.1, 0.2, 0.3, 0.5, 1.0, 3.0, 9.0, 20.0]
STUDENT, COIN, LOGISTIC, LINE = (
    bz.find(name) for name in ("student_t", "beta_bernoulli", "logistic_regression", "linear_regression")
)


def exact_student(nu=4.0):
    """Mean and sd of the parameters of student_t with its textbook prior, by a dense grid of SciPy's densities."""
    log_lam, mu = np.meshgrid(np.linspace(-8, 5, 700), np.linspace(-30, 40, 3001), indexing="ij")
    lam = np.exp(log_lam)
    log_p = scipy.stats.gamma.logpdf(lam, 1) + log_lam + scipy.stats.norm.logpdf(mu, 0, lam**-0.5)
    log_p += sum(scipy.stats.t.logpdf(y, nu, mu, lam**-0.5) for y in ROWS)
    weights = np.exp(log_p - log_p.max()) / np.exp(log_p - log_p.max()).sum()
    values = {"mu": mu, "lam": lam, "sigma": lam**-0.5}
    means = {name: (weights * value).sum() for name, value in values.items()}
    return {name: (m, np.sqrt((weights * (values[name] - m) ** 2).sum())) for name, m in means.items()}


def of_normal(centre, scale):
    q = scipy.stats.norm(centre, scale)
    return np.array([centre, scale, *q.ppf([0.025, 0.5, 0.975])])


@pytest.mark.parametrize(("centre", "scale"), [(0.0, 1.2), (0.6, 1.0), (0.3, 2.5), (0.0, 0.9)])
def test_gaps_of_an_approximation_are_those_of_two_gaussians(centre, scale):
    draws = scipy.stats.norm(centre, scale).rvs((4, 10_000), random_state=1)
    seen = gaps(draws, of_normal(0.0, 1.0))
    assert (float(seen.mean), float(seen.sd)) == pytest.approx((centre, scale), abs=0.04)
    assert float(seen.quantile) == pytest.approx(abs(centre) + 1.96 * abs(scale - 1), abs=0.1)
    assert bool(seen.are_shown) == (centre < 0.5 and scale < 2)


def test_where_the_posterior_has_no_sd_medians_and_widths_are_compared():
    quantiles = scipy.stats.cauchy.ppf([0.025, 0.5, 0.975])
    draws = scipy.stats.cauchy.rvs(size=(4, 10_000), random_state=1)
    for moments in ((np.nan, np.nan), (0.0, np.inf)):
        seen = gaps(draws, np.array([*moments, *quantiles]))
        assert abs(float(seen.mean)) < 0.02
        assert float(seen.sd) == pytest.approx(1, abs=0.1)
    assert np.isnan(statistics_of(draws)[:2]).all()


def test_a_constant_has_no_gap_and_each_entry_is_judged_by_itself():
    rng = np.random.default_rng(1)
    draws = np.stack([np.ones((4, 1000)), rng.normal(0, 3, (4, 1000)), rng.normal(0, 1, (4, 1000))], axis=-1)
    posterior = np.stack([np.array([1.0, 0.0, 1.0, 1.0, 1.0]), of_normal(0, 1), of_normal(0, 1)], axis=-1)
    assert gaps(draws, posterior).are_shown.tolist() == [True, False, True]


@pytest.mark.parametrize("prior", [0.5, 3.0])
def test_reference_draws_about_a_mode_are_those_of_quadrature(prior):
    """Of a log-concave posterior; no PyMC is compiled."""
    data = bz.read(LOGISTIC, bz.example(LOGISTIC))
    model = LOGISTIC(tau=prior, s0=prior)
    draws = reference._weighted(Problem(model, data, np.random.default_rng(1))).draws["w"]
    exact = integrate(model, data).posterior["w"]
    flat = draws.reshape(-1, draws.shape[-1])
    assert np.abs(flat.mean(axis=0) - exact.mean()) / exact.std() == pytest.approx(0, abs=0.05)
    assert flat.std(axis=0) / exact.std() == pytest.approx(1, abs=0.05)
    narrow = 0.9 * (flat - flat.mean(axis=0))  # what the comparison must see
    assert not np.allclose(narrow.std(axis=0) / exact.std(), 1, atol=0.05)


@pytest.mark.parametrize("route", ["_weighted", pytest.param("_sampled", marks=pytest.mark.slow)])
def test_reference_draws_of_a_heavy_tailed_posterior_are_those_of_a_grid(route):
    """Compiles the density of student_t, which all routes of the reference need."""
    model = STUDENT(nu=4)
    known = getattr(reference, route)(Problem(model, bz.read(model, ROWS), np.random.default_rng(1)))
    draws = {**known.draws, **model.derived(known.draws)}
    for name, (mean, sd) in exact_student().items():
        assert (float(draws[name].mean()) - mean) / sd == pytest.approx(0, abs=0.1)
        assert float(draws[name].std()) / sd == pytest.approx(1, abs=0.1)


def test_variational_bayes_whose_own_draws_do_not_see_how_narrow_it_is():
    """Compiles the same density: weights of q's own draws said that its sds are .57 of the posterior's."""
    tree = bz.fit(STUDENT(nu=4), ROWS, "vb", seed=1)
    true = exact_student()
    facts = Fit(tree).facts
    assert tree.attrs["status"] == "caution"
    assert facts["withheld"] == facts["parameters_withheld"] == ["lam"]
    assert facts["sd_ratio_least"] == pytest.approx(float(tree["posterior"]["lam"].std()) / true["lam"][1], rel=0.1)
    summary = bz.summarize(tree)
    assert np.isnan(summary["lam"]["sd"])
    assert "too far" in summary["lam"]["withheld"]["sd"]
    assert np.isfinite(summary["mu"]["sd"])
    with raises(Untrustworthy, "withheld", "lam"):
        bz.predict(tree, 1)


@pytest.mark.parametrize(("heads", "status"), [(500, "ok"), (3, "caution")])
def test_what_is_printed_is_judged_by_the_closed_form(heads, status):
    """Laplace compiles the smallest density there is: near a Gaussian posterior it is ok, of a skewed one it is not."""
    model, rows = COIN(a=1, b=1), np.repeat([1, 0], [heads, heads // 3])
    tree = bz.fit(model, rows, "laplace", seed=1)
    exact = scipy.stats.beta(1 + heads, 1 + heads // 3)
    theta = tree["posterior"]["theta"].to_numpy()
    facts = Fit(tree).facts
    assert tree.attrs["status"] == status
    assert facts["measured_against"] == "the exact posterior"
    seen = errors(Fit(tree), "theta", bz.summarize(tree)["theta"])
    assert float(seen["error_sd"]) == pytest.approx((theta.mean() - exact.mean()) / exact.std(), rel=1e-6)
    assert float(seen["sd_ratio"]) == pytest.approx(theta.std(ddof=1) / exact.std(), rel=1e-6)
    assert facts["mean_gap"] >= abs(seen["error_sd"])


def test_what_cannot_be_measured_is_not_ok(monkeypatch):
    def fails(problem):
        raise NumericalError("of this test")

    for route in ("_exact", "_weighted", "_sampled"):
        monkeypatch.setattr(reference, route, fails)
    tree = bz.fit(COIN(a=1, b=1), np.repeat([1, 0], [500, 400]), "laplace", seed=1)
    assert tree.attrs["status"] == "caution"
    assert Fit(tree).checks["distance_to_posterior"]["caveat"] == "not measured: of this test"


def test_predictions_are_judged_too():
    """Two weights of correlation -.5: sds of mean field are within 14%, those of what rows are expected to be are not.

    No PyMC: draws of the best mean field by its closed form, reference draws by quadrature.
    """
    x = np.linspace(0, 1.2, 200)
    data = bz.read(LINE, {"y": 2 * x + np.sin(7 * np.arange(200)), "x": x})
    model = LINE.weak_with(data, {"center": 0})
    posterior = model.posterior(model.statistics(data))
    exact = posterior.rvs((4, 2500), np.random.default_rng(1))
    flat = exact["w"].reshape(-1, 2)
    conditional = 1 / np.sqrt(np.diag(np.linalg.inv(np.cov(flat.T))))
    rng = np.random.default_rng(2)
    narrow = {**exact, "w": flat.mean(axis=0) + rng.standard_normal((4, 2500, 2)) * conditional}
    problem = Problem(model, data, rng)
    seen = gaps(measured._fitted(problem, narrow)["fitted"], statistics_of(measured._fitted(problem, exact)["fitted"]))
    design = np.column_stack([np.ones(200), x])
    sd = np.sqrt(np.einsum("ni,ij,nj->n", design, np.cov(flat.T), design))
    ratio = np.sqrt(design**2 @ conditional**2) / sd
    rows = np.unique(np.linspace(0, 199, 20).round().astype(int))
    assert seen.sd == pytest.approx(ratio[rows], rel=0.05)
