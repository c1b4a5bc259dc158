"""The groups that ArviZ's functions look for: leave-one-out scores against our own, and every function on a fit."""

import warnings

import arviz as az
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats

import bayeszoo as bz
from bayeszoo.answers.checks.leave_out import NoScore, psis
from bayeszoo.fit import default_method
from bayeszoo.model.capabilities import Observable
from bayeszoo.results import arviz_groups
from bayeszoo.results.stored import Fit
from tests.refusals import raises

matplotlib.use("agg")
INDEPENDENT = [name for name in bz.names() if issubclass(bz.find(name), Observable)]
"""Models whose rows are independent given the parameters."""
RNG = np.random.default_rng(5)
SINGLE = {
    "beta_bernoulli": {"y": RNG.integers(0, 2, 60)},
    "dirichlet_multinomial": {"y": list("abcabba" * 9)},
    "logistic_regression": {"y": RNG.integers(0, 2, 60), "x": RNG.standard_normal(60)},
    "logistic_intercepts": {
        "y": [0, 1, 0, 0, 1, 1, 0, 1, 1, 0, 1, 1],
        "x": [0.1, 1.2, -0.3, 0.4, 0.9, 1.5, -1.0, 0.2, 1.1, -0.7, 0.0, 0.8],
        "group": list("aaabbbcccddd"),
    },
}
"""Single observations, where the first data set of a model has several in a row."""
FUNCTIONS = {
    "plot_ppc_dist": lambda tree: az.plot_ppc_dist(tree, num_samples=5),
    "plot_ppc_pit": az.plot_ppc_pit,
    "plot_loo_pit": az.plot_loo_pit,
    "plot_prior_posterior": lambda tree: az.plot_prior_posterior(tree, var_names=_first(tree)),
    "psense_summary": lambda tree: az.psense_summary(tree, var_names=_first(tree)),
}


def _first(tree):
    return [next(iter(tree["posterior"].data_vars))]


def weak(name, data=None):
    M = bz.find(name)
    data = bz.read(M, data) if data is not None else bz.example(M)
    return M.weak(data), data


def score_of(tree):
    """Return ArviZ's leave-one-out score and ours of the same draws, in nats."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a large k-hat, which both have
        theirs = az.loo(tree)
    arguments = Fit(tree).model, Fit(tree).data, Fit(tree).draws()
    if theirs.warning:  # ours refuses
        with raises(NoScore, "pareto_shape"):
            psis(*arguments)
        return theirs, float(theirs.elpd)
    ours = psis(*arguments)
    return theirs, ours.mean * ours.total


def test_the_declared_log_prior_of_all_draws_is_computed_at_once(monkeypatch):
    """One by one, as PyMC does it, draws cost more than to sample them. Nothing is compiled."""
    monkeypatch.setattr("pymc.stats.compute_log_prior", lambda *_, **__: pytest.fail("draw by draw"))
    model, data = bz.find("normal_means")(), {"y": [2.0, 7.0, -1.0], "se": [1.0, 2.0, 1.5]}
    tree = bz.fit(model, data, "exact", seed=1, groups=[])
    draws = {name: values.to_numpy() for name, values in tree["posterior"].data_vars.items()}
    found = bz.extend(tree, ["log_prior"])["log_prior"]["log_prior"].to_numpy()
    expected = (
        stats.norm(model.m0, model.s0).logpdf(draws["mu"])
        + stats.halfcauchy(0, model.t0).logpdf(draws["tau"])
        + stats.norm(draws["mu"][..., None], draws["tau"][..., None]).logpdf(draws["theta"]).sum(-1)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["gaussian_mean", "normal_inverse_wishart", "dirichlet_multinomial", "gamma_poisson"])
def test_leave_one_out_is_that_of_arviz(name):
    tree = bz.fit(*weak(name, SINGLE.get(name)), method="exact", seed=1)
    theirs, ours = score_of(tree)
    assert theirs.elpd == pytest.approx(ours, abs=1e-6)


def test_log_likelihood_and_prior_are_those_of_scipy():
    y = np.array([0.5, 1.0, -2.0])
    model = bz.find("gaussian_mean")(m0=1, s0=2, sigma=3)
    tree = bz.extend(bz.fit(model, y, "exact", seed=1), ["log_prior"])
    mu = tree["posterior"]["mu"].to_numpy()
    np.testing.assert_allclose(tree["log_likelihood"]["y"], stats.norm(mu[..., None], 3).logpdf(y), rtol=1e-12)
    np.testing.assert_allclose(tree["log_prior"]["log_prior"], stats.norm(1, 2).logpdf(mu), rtol=1e-12)
    prior = tree["prior"]["mu"].to_numpy().ravel()
    assert stats.kstest(prior, stats.norm(1, 2).cdf).pvalue > 1e-4
    replicated = tree["prior_predictive"]["y"].to_numpy()
    assert stats.kstest(replicated[0, :, 0], stats.norm(1, np.hypot(2, 3)).cdf).pvalue > 1e-4
    assert tree["posterior_predictive"]["y"].dims == ("chain", "draw", "row")


def test_the_groups_leave_the_draws_as_they_are_and_come_out_the_same_later():
    model, data = weak("gamma_poisson")
    asked, later = (bz.fit(model, data, "exact", seed=1, groups=names) for names in (None, []))
    assert not set(arviz_groups.GROUPS) & set(later.children)
    assert asked["posterior"].identical(later["posterior"])
    assert bz.extend(later)["posterior_predictive"].identical(asked["posterior_predictive"])


def test_large_groups_are_left_out_with_a_note(monkeypatch):
    monkeypatch.setattr(arviz_groups, "MOST_UNASKED", 100_000)
    tree = bz.fit(*weak("gaussian_mean"), "exact", seed=1)
    assert "log_likelihood" not in tree.children
    assert "prior" in tree.children
    assert "left out, as they would hold more than 100000 numbers: log_likelihood" in Fit(tree).notes[-1]
    assert "log_likelihood" in bz.extend(tree, ["log_likelihood"]).children


@pytest.mark.parametrize(
    ("name", "method", "wanted", "why"),
    [
        ("gaussian_mean", "exact", ["waic"], ("unknown_name", "'waic'")),
        ("gaussian_mean", "exact", "prior", ("unknown_name", "'prior'")),
        ("gaussian_mean", "map", ["log_likelihood"], ("no_draws", "posterior")),
    ],
)
def test_what_cannot_be_added_is_refused(name, method, wanted, why):
    tree = bz.fit(*weak(name), method=method, seed=1, groups=[])
    with raises(bz.InputError, *why):
        bz.extend(tree, wanted)


def test_two_models_are_compared_by_arviz():
    data = bz.example(bz.find("gaussian_mean"))
    trees = {name: bz.fit(weak(name)[0], data["y"], "exact", seed=1) for name in ("gaussian_mean", "normal_gamma")}
    table = az.compare(trees, round_to="none")
    difference = table["elpd"].iloc[0] - table["elpd"].iloc[1]
    ours = {name: score_of(tree)[1] for name, tree in trees.items()}
    assert difference == pytest.approx(abs(ours["gaussian_mean"] - ours["normal_gamma"]), abs=1e-6)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_of_arviz_take_a_fit(function):
    tree = bz.extend(bz.fit(*weak("gaussian_mean"), method="exact", seed=1, draws=100))
    FUNCTIONS[function](tree)
    plt.close("all")


def refused_by_arviz(tree):
    """Name the functions that cannot take a fit: ArviZ has PITs of single numbers, and dims component and group."""
    outcome = next(iter(tree["observed_data"].data_vars.values()))
    several = {"plot_ppc_pit", "plot_loo_pit"} if outcome.ndim > 1 else set()
    flat = np.ptp(tree["log_prior"]["log_prior"].to_numpy()) < 1e-9  # a flat prior has no sensitivity
    clashes = "component" in tree["posterior"][_first(tree)[0]].dims
    is_large = tree["posterior"][_first(tree)[0]][0, 0].size > 40  # ArviZ draws at most forty pictures together
    by_group = {"plot_prior_posterior"} if "group" in tree["posterior"].dims or is_large else set()
    return several | by_group | ({"psense_summary"} if flat or clashes else set())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Variables .* look (binary|discrete):UserWarning")  # ArviZ names other pictures too
@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto:UserWarning")
@pytest.mark.parametrize("name", INDEPENDENT)
def test_every_model_with_independent_rows(name):
    model, data = weak(name, SINGLE.get(name))
    if data.rows > 500:  # a draw of each row is large; their order may be that of their values
        data = model.inputs.reordered(data, np.linspace(0, data.rows - 1, 200).astype(int))
    tree = bz.extend(bz.fit(model, data, method=default_method(type(model)), seed=1))
    theirs, ours = score_of(tree)
    assert theirs.elpd == pytest.approx(ours, abs=1e-6)
    for function in FUNCTIONS.keys() - refused_by_arviz(tree):
        FUNCTIONS[function](tree)
        plt.close("all")


def test_a_likelihood_that_fails_costs_a_fit_its_group_and_not_its_draws(monkeypatch):
    model, data = weak("gaussian_mean")
    monkeypatch.setattr(type(model), "likelihood", lambda *_: 1 / 0)
    tree = bz.fit(model, data, method="exact", seed=1)
    assert tree.attrs["status"] == "ok"
    assert "log_likelihood" not in tree.children
    assert "log_likelihood is left out: gaussian_mean raised ZeroDivisionError: division by zero" in Fit(tree).notes
    with pytest.raises(ZeroDivisionError):
        bz.extend(tree, ["log_likelihood"])
