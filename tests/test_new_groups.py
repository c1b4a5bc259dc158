"""Prediction of groups of a hierarchy, new ones and those of the fit, against mixtures over brute-force grids."""

import numpy as np
import pytest
from scipy import stats

import bayeszoo as bz
from bayeszoo.model.capabilities.observable import at_rows

LINE = np.linspace(0.001, 0.999, 250)
TRIALS, SUCCESSES = np.array([20, 15, 30, 12]), np.array([2, 5, 3, 6])
RATS = {"group": list("abcd"), "successes": SUCCESSES, "trials": TRIALS}
MEANS = {"group": list("abcd"), "y": np.array([2.0, 9.0, -4.0, 5.0]), "se": np.array([3.0, 2.0, 4.0, 3.0])}
PUMPS = {"group": list("abcd"), "y": np.array([5, 1, 14, 3]), "exposure": np.array([9.0, 6.0, 12.0, 0.5])}
DRAWS = 4000


def weights(log_height):
    """Return the share of each point of a grid in the whole."""
    height = np.exp(log_height - log_height.max())
    return height / height.sum()


def trials_of_a_new_group():
    """Return the weights of a grid over mean and 1 / size, whose prior is of density 1/2 x^(-1/2), and its laws."""
    mean, inverse = (each[..., None] for each in np.meshgrid(LINE, LINE**2))
    size = 1 / inverse
    alpha, beta = mean * size, (1 - mean) * size
    log_height = stats.betabinom(TRIALS, alpha, beta).logpmf(SUCCESSES).sum(-1)  # the prior is flat in LINE
    return weights(log_height), stats.betabinom(25, alpha[..., 0], beta[..., 0])


def estimate_of_a_new_group():
    """Return the same over tau alone, under tau ~ HalfCauchy(5) and mu ~ N(0, 10^2)."""
    tau = 5 * np.tan(LINE * np.pi / 2)[:, None]
    precision = 1 / (tau**2 + MEANS["se"] ** 2)
    variance = 1 / (precision.sum(-1) + 1 / 100)
    centre = variance * (precision * MEANS["y"]).sum(-1)
    covariances = np.eye(4) * (1 / precision)[:, None, :] + 100
    joint = [stats.multivariate_normal(np.zeros(4), each).logpdf(MEANS["y"]) for each in covariances]
    return weights(np.array(joint)), stats.norm(centre, np.sqrt(variance + tau[:, 0] ** 2 + 2.5**2))


def events_of_a_new_group():
    """Return the same over the shape ~ Exponential(1) and the rate ~ Gamma(1, 1)."""
    shape, rate = (each[..., None] for each in np.meshgrid(-np.log1p(-LINE), -np.log1p(-LINE)))
    log_height = stats.nbinom(shape, rate / (rate + PUMPS["exposure"])).logpmf(PUMPS["y"]).sum(-1)
    return weights(log_height), stats.nbinom(shape[..., 0], (rate / (rate + 4))[..., 0])


CASES = {
    "beta_binomial": ({}, RATS, {"trials": [25, 25]}, trials_of_a_new_group, 4),
    "normal_means": ({"m0": 0, "s0": 10, "t0": 5}, MEANS, {"se": [2.5, 2.5]}, estimate_of_a_new_group, 3.0),
    "gamma_poisson_groups": ({"a0": 1, "b1": 1, "b2": 1}, PUMPS, {"exposure": [4, 4]}, events_of_a_new_group, 2),
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    fields, table, beside, oracle, observed = CASES[request.param]
    M = bz.find(request.param)
    tree = bz.fit(M(**fields), bz.read(M, table), "exact", seed=1, draws=DRAWS)
    new = {"group": ["c", "new"], **beside, M.inputs.name: [observed, observed]}
    return tree, new, *oracle(), observed


@pytest.fixture(scope="module")
def predicted(case):
    """By draws, as of a fit by a sampler that has the exact ones."""
    tree = case[0].copy(deep=True)
    tree.attrs |= {"kind": "sampled", "method": "nuts"}
    return bz.predict(tree, case[1]), *case[2:]


def misses(frame, share, law, observed):
    """Return by how many Monte Carlo errors each figure of the new group, the second row, misses the mixture's."""
    row = frame.iloc[1]
    mean, sd, score = of_mixture(share, law, observed)
    return {
        "mean": (row["mean"] - mean) / row["mcse_mean"],
        **({} if np.isnan(row["mcse_sd"]) else {"sd": (row["sd"] - sd) / row["mcse_sd"]}),
        "score": (row["log_score"] - score) / row["mcse_log_score"],
        **{
            name: (np.sum(share * law.cdf(row[name])) - level) * np.sqrt(DRAWS / level / (1 - level))
            for name, level in (("q025", 0.025), ("q975", 0.975))
            if not hasattr(law.dist, "pmf")
        },
    }


def of_mixture(share, law, observed):
    """Return mean, sd and log score of the new group by the brute-force grid."""
    mean = np.sum(share * law.mean())
    height = (law.pmf if hasattr(law.dist, "pmf") else law.pdf)(observed)
    sd = np.sqrt(np.sum(share * (law.var() + (law.mean() - mean) ** 2)))
    return mean, sd, np.log(np.sum(share * height))


def below(share, law, x):
    """Return the probability of at most x; that of SciPy's beta-binomial distribution takes seconds."""
    if not hasattr(law.dist, "pmf"):
        return np.sum(share * law.cdf(x))
    return sum(np.sum(share * law.pmf(k)) for k in range(int(x) + 1))


def test_an_exact_fit_predicts_a_new_group_by_its_quadrature(case):
    tree, new, share, law, observed = case
    frame = bz.predict(tree, new)
    mean, sd, score = of_mixture(share, law, observed)
    row, is_count = frame.iloc[1], hasattr(law.dist, "pmf")
    assert (row["mean"], row["log_score"]) == pytest.approx((mean, score), rel=1e-3)
    assert np.isnan([row["mcse_mean"], row["mcse_sd"]]).all()
    assert row["mcse_log_score"] == 0
    if tree.attrs["model"] == "gamma_poisson_groups":  # E 1 / rate^2 is infinite where the shape is below a quarter
        assert np.isnan(row["sd"])
        assert row["withheld"].startswith("sd: ")
    else:
        assert row["sd"] == pytest.approx(sd, rel=1e-3)
    for name, level in (("q025", 0.025), ("median", 0.5), ("q975", 0.975)):
        assert below(share, law, row[name]) > level - 1e-3
        assert below(share, law, row[name] - (1 if is_count else 1e-2)) < level + 1e-3
    assert bz.predict(tree, new, seed=2).equals(frame)  # nothing is drawn


def test_a_group_of_the_fit_is_predicted_by_its_own_posterior(case):
    """Of its parameter's marginal mean and sd, which are exact, follow those of a new row of it."""
    tree, new, *_ = case
    (name,) = bz.find(tree.attrs["model"]).dims
    mean, sd = (float(tree["exact"][name].sel(statistic=key, group="c")) for key in ("mean", "sd"))
    expected = {
        "beta_binomial": (25 * mean, 25 * mean * (1 - mean) + 25 * 24 * sd**2),
        "normal_means": (mean, sd**2 + 2.5**2),
        "gamma_poisson_groups": (4 * mean, 4 * mean + 16 * sd**2),
    }[tree.attrs["model"]]
    row = bz.predict(tree, new).iloc[0]
    assert (row["mean"], row["sd"] ** 2) == pytest.approx(expected, rel=1e-6)


def test_a_new_group_is_predicted_by_the_population(predicted):
    assert max(abs(miss) for miss in misses(*predicted).values()) < 4.5
    assert predicted[0].attrs["new_groups"] == ["new"]
    assert ("mcse_sd" in str(predicted[0].get("withheld"))) == np.isnan(predicted[0]["mcse_sd"].iloc[1])


def test_quantiles_are_those_of_the_mixture(predicted):
    frame, share, law, _ = predicted
    for name, level in (("q025", 0.025), ("median", 0.5), ("q975", 0.975)):
        slack = 4.5 * np.sqrt(level * (1 - level) / DRAWS)
        assert below(share, law, frame[name].iloc[1]) > level - slack
        assert below(share, law, frame[name].iloc[1] - 1) < level + slack


def test_a_new_group_with_the_parameter_of_an_old_one_would_be_seen(predicted):
    frame, *oracle = predicted
    old = frame.iloc[[0, 0]]
    assert max(abs(miss) for miss in misses(old, *oracle).values()) > 10


def test_the_parameters_of_groups_of_the_fit_stay_beside_new_ones(case, request):
    name = request.node.callspec.params["case"]
    fields, table, beside, *_ = CASES[name]
    M = bz.find(name)
    tree = bz.fit(M(**fields), bz.read(M, table), "exact", seed=1)
    alone = bz.predict(tree, {"group": ["c"], **{key: values[:1] for key, values in beside.items()}})
    both = bz.predict(tree, {"group": ["new", "c"], **beside})
    assert both["mean"].iloc[1] == pytest.approx(alone["mean"].iloc[0], rel=1e-12)
    assert "new_groups" not in alone.attrs


def test_a_point_estimate_predicts_groups_given_its_outer_parameters():
    """Of a new group that is the population's law, of an old one its posterior given these: each new row about it."""
    M = bz.find("normal_means")
    tree = bz.fit(M(s0=10, t0=5), bz.read(M, MEANS), "map", seed=1)
    mu, tau, theta = (tree["posterior"][name].to_numpy().ravel() for name in ("mu", "tau", "theta"))
    frame = bz.predict(tree, {"group": ["a", "new"], "se": [1.0, 2.0]})
    assert frame["mean"].tolist() == pytest.approx([theta[0], mu[0]], rel=1e-9)
    own = 1 / np.sqrt(tau[0] ** -2 + MEANS["se"][0] ** -2)
    assert frame["sd"].tolist() == pytest.approx([np.hypot(own, 1), np.hypot(tau[0], 2)], rel=1e-9)


def test_moments_that_draws_do_not_tell_are_withheld():
    M = bz.find("normal_means")
    tree = bz.fit(M(s0=10, t0=5), bz.read(M, {"y": [3.0], "se": [2.0], "group": ["a"]}), "exact", seed=1)
    row = bz.predict(tree, {"group": ["new"], "se": [1.0]}).iloc[0]  # the tails of tau fall off as tau^-3
    assert np.isnan([row["sd"], row["mcse_mean"]]).all()
    assert row["q025"] < -10 < 10 < row["q975"]


def test_groups_of_which_nothing_was_observed_have_the_law_of_the_population():
    rng = np.random.default_rng(1)
    for name, outer, law in (
        ("normal_means", {"mu": 3.0, "tau": 2.0}, stats.norm(3, 2)),
        ("beta_binomial", {"mean": 0.2, "size": 10.0}, stats.beta(2, 8)),
        ("gamma_poisson_groups", {"shape": 2.0, "rate": 4.0}, stats.gamma(2, scale=1 / 4)),
    ):
        model = bz.find(name)()
        (inner,) = model.dims
        params = {key: np.full((1, 5000), value) for key, value in outer.items()} | {inner: np.zeros((1, 5000, 1))}
        fitted, rows = {"group": np.array(["a"])}, {"group": np.array(["b"])}
        drawn = at_rows(model, params, fitted, rows, rng)[inner]
        assert stats.kstest(drawn.ravel(), law.cdf).pvalue > 1e-4
        assert stats.kstest(drawn.ravel() * 1.1, law.cdf).pvalue < 1e-4


def test_new_rows_are_read_by_the_columns_of_the_fit():
    """A column of numbers that the fit did not use is no outcome, and no name or exposure is lost."""
    model = bz.find("gamma_poisson_groups")()
    table = {"pump": list("abcd"), "failures": PUMPS["y"], "hours": PUMPS["exposure"]}
    tree = bz.fit(model, bz.read(model, table, group="pump", column="failures", exposure="hours"), "exact", seed=1)
    by_name = bz.predict(tree, {"age": [7, 9], "hours": [1.0, 2.0], "pump": ["a", "a"]}, seed=1)
    asked = bz.predict(tree, {"hours": [3.0], "pump": ["a"]}, group="pump", exposure="hours", seed=1)
    assert by_name["observed"].isna().all()
    assert by_name["mean"].sum() == pytest.approx(float(asked["mean"].iloc[0]), rel=1e-9)
