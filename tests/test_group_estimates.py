"""Estimates, shrinkage and ranks of groups against formulas given tau, integrated over it by a brute-force grid."""

import itertools

import numpy as np
import pytest
from scipy import stats

import bayeszoo as bz
from bayeszoo.answers import group_estimates as module
from tests.refusals import raises

Y, SE = np.array([6.0, 2.0, -3.0]), np.array([3.0, 1.5, 4.0])
ABC = {"group": list("abc"), "y": Y, "se": SE}
TAU = 5 * np.tan(np.linspace(0.0005, 0.9995, 1000) * np.pi / 2)
"""Quantiles of tau ~ HalfCauchy(5); mu ~ N(1, 10^2)."""
DRAWS, CHAINS = 20_000, 4


def given_tau(tau):
    """Return log p(y given tau), and mean and covariance of theta given y and tau: all is jointly Gaussian."""
    prior = tau**2 * np.eye(3) + 100.0
    of_y = prior + np.diag(SE**2)
    gain = np.linalg.solve(of_y, prior).T
    return stats.multivariate_normal(np.ones(3), of_y).logpdf(Y), 1 + gain @ (Y - 1), prior - gain @ prior


@pytest.fixture(scope="module")
def oracle():
    log_height, means, covariances = map(np.array, zip(*map(given_tau, TAU), strict=True))
    height = np.exp(log_height - log_height.max())
    return height / height.sum(), means, covariances


def fitted(name="normal_means", table=ABC, method="exact", draws=DRAWS, **fields):
    M = bz.find(name)
    return bz.fit(
        M(**fields),
        bz.read(M, table),
        method,
        seed=1,
        **({"draws": draws, "chains": CHAINS} if method == "exact" else {}),
    )


@pytest.fixture(scope="module")
def tree():
    return fitted(m0=1, s0=10, t0=5)


@pytest.fixture(scope="module")
def frame(tree):
    return bz.group_estimates(tree)


def chances_of_orders(means, covariances, share):
    """Return the probability of each order of the groups, from the highest: of two differences that are positive."""
    chances = {}
    for order in itertools.permutations(range(3)):
        a, b, c = order
        steps = np.eye(3)[[a, b]] - np.eye(3)[[b, c]]
        each = [
            stats.multivariate_normal(-steps @ mean, steps @ own @ steps.T).cdf([0, 0])
            for mean, own in zip(means, covariances, strict=True)
        ]
        chances[order] = float(share @ each)
    return chances


def test_means_and_sds_are_those_given_tau_integrated_over_it(frame, oracle):
    share, means, covariances = oracle
    mean = share @ means
    variance = share @ (np.diagonal(covariances, axis1=1, axis2=2) + (means - mean) ** 2)
    np.testing.assert_allclose(frame["mean"], mean, rtol=2e-4)
    np.testing.assert_allclose(frame["sd"], np.sqrt(variance), rtol=1e-3)
    assert frame["mcse_mean"].isna().all()


def test_shrinkage_is_the_mean_weight_of_the_population(frame, oracle):
    share = oracle[0]
    weight = share @ (SE**2 / (SE**2 + TAU[:, None] ** 2))
    assert np.all(np.abs(frame["shrinkage"] - weight) < 4.5 * frame["mcse_shrinkage"] + 1e-4)
    assert np.abs(frame["shrinkage"].iloc[0] - weight[1]) > 20 * frame["mcse_shrinkage"].iloc[0]


def test_raw_and_pooled_estimates_are_those_of_least_squares(frame):
    np.testing.assert_array_equal(frame["raw"], Y)
    np.testing.assert_allclose(frame["pooled"], np.sum(Y / SE**2) / np.sum(1 / SE**2), rtol=1e-12)
    assert list(frame.index) == list("abc")


def ranks_of(chances):
    """Return mean ranks, and probabilities of the first and the last, of the chances of all orders."""
    ranks, first, last = np.zeros(3), np.zeros(3), np.zeros(3)
    for order, chance in chances.items():
        ranks[list(order)] += chance * np.arange(1, 4)
        first[order[0]] += chance
        last[order[-1]] += chance
    return {"rank": ranks, "p_highest": first, "p_lowest": last}


def test_ranks_are_those_of_all_orders_enumerated(tree, frame, oracle):
    share, means, covariances = oracle
    kept = share > 1e-4
    expected = ranks_of(chances_of_orders(means[kept], covariances[kept], share[kept] / share[kept].sum()))
    for name, values in expected.items():
        assert np.all(np.abs(frame[name] - values) < 4.5 * frame[f"mcse_{name}"] + 1e-3), name
    ends = frame["p_highest"] + frame["p_lowest"]  # the intervals of a rank that is anything but sure
    assert (frame["rank_q025"] == np.where(frame["p_highest"] > 0.025, 1, 2)).all()
    assert (frame["rank_q975"] == np.where(frame["p_lowest"] > 0.025, 3, 2)).all()
    assert (ends <= 1).all()


def test_ranks_of_draws_that_were_not_joint_would_be_seen(tree, frame):
    broken = tree.copy(deep=True)
    rng = np.random.default_rng(1)
    broken["posterior"]["theta"].values[:] = rng.permuted(tree["posterior"]["theta"].values, axis=1)
    assert np.any(np.abs(bz.group_estimates(broken)["p_highest"] - frame["p_highest"]) > 7 * frame["mcse_p_highest"])


@pytest.mark.parametrize(
    ("name", "table", "outer"),
    [
        ("normal_means", ABC, {"mu": 1.0, "tau": 2.0}),
        (
            "beta_binomial",
            {"successes": [0, 3, 9], "trials": [4, 8, 10], "group": list("abc")},
            {"mean": 0.3, "size": 7.0},
        ),
        ("gamma_poisson_groups", {"y": [0, 3, 9], "exposure": [0.5, 3, 2]}, {"shape": 2.0, "rate": 3.0}),
    ],
)
def test_the_mean_of_a_group_is_between_its_raw_estimate_and_the_population_mean(name, table, outer):
    model, M = bz.find(name)(), bz.find(name)
    data = bz.read(M, table)
    (theta,) = model.posterior_given(outer, data).values()
    (population,) = model.posterior_given(outer, M.inputs.uninformed(data["group"])).values()
    weight, (raw, _) = model.shrinkage(outer, data), M.inputs.raw(data)
    np.testing.assert_allclose(theta.mean(), weight * population.mean() + (1 - weight) * raw, rtol=1e-12)


def test_a_group_without_trials_is_the_population():
    table = {"group": list("abc"), "successes": [3, 5, 0], "trials": [9, 8, 0]}
    row = bz.group_estimates(fitted("beta_binomial", table, draws=500)).loc["c"]
    assert np.isnan(row["raw"])
    assert row["shrinkage"] == 1
    assert row["pooled"] == pytest.approx(8 / 17)


def test_groups_that_are_alike_share_ranks():
    values = np.array([[[2.0, 5.0, 5.0, 1.0]]])
    assert module.scipy.stats.rankdata(-values, axis=-1).tolist() == [[[3, 1.5, 1.5, 4]]]


def test_a_point_estimate_has_neither_spread_nor_ranks():
    table = {"group": list("abcd"), "y": [1, 9, 30, 2], "exposure": [5.0, 3.0, 6.0, 2.0]}
    tree = fitted("gamma_poisson_groups", table, "map", b1=1)
    frame = bz.group_estimates(tree)
    assert frame[["sd", "q025", "rank", "p_highest", "mcse_shrinkage"]].isna().all(axis=None)
    posterior = tree["posterior"].to_dataset()
    shape, rate = (float(posterior[name].squeeze()) for name in ("shape", "rate"))
    np.testing.assert_allclose(frame["mean"], (shape + np.array(table["y"])) / (rate + np.array(table["exposure"])))
    np.testing.assert_allclose(frame["shrinkage"], rate / (rate + np.array(table["exposure"])))


def test_events_that_all_draws_agree_on_have_an_error():
    table = {"group": list("ab"), "y": [1, 90], "exposure": [100.0, 1.0]}
    frame = bz.group_estimates(fitted("gamma_poisson_groups", table, draws=500))
    assert frame["p_highest"].tolist() == [0, 1]
    assert frame["mcse_p_highest"].tolist() == [1 / 500 / CHAINS] * 2


def normal_differences(oracle, group, against):
    """Return mean and sd of a difference of two groups given each tau, with the weights of tau."""
    share, means, covariances = oracle
    step = np.eye(3)["abc".index(group)] - np.eye(3)["abc".index(against)]
    return share, stats.norm(means @ step, np.sqrt(step @ covariances @ step))


def misses_of(row, share, law):
    """Return by how many Monte Carlo errors the figures of a contrast miss those of the mixture."""
    draws = DRAWS * CHAINS
    return {
        "p_greater": (row["p_greater"] - share @ law.sf(0)) / row["p_greater_mcse"],
        **{
            key: (share @ law.cdf(row[f"difference_{key}"]) - level) / np.sqrt(level * (1 - level) / draws)
            for key, level in (("q025", 0.025), ("q975", 0.975))
        },
    }


def test_contrasts_are_of_the_joint_distribution(tree, oracle):
    compared = bz.contrasts(tree)
    assert compared[["group", "against"]].values.tolist() == [["b", "a"], ["c", "a"], ["c", "b"]]
    assert compared.attrs["notes"] == []
    for _, row in compared.iterrows():
        share, law = normal_differences(oracle, row["group"], row["against"])
        assert row["difference"] == pytest.approx(share @ law.mean(), rel=1e-3)
        assert row["difference_mcse"] == 0
        assert max(map(abs, misses_of(row, share, law).values())) < 4.5
        assert np.isnan(row["ratio"])  # of what may be negative


def test_contrasts_of_independent_draws_would_be_seen(tree, oracle):
    broken = tree.copy(deep=True)
    rng = np.random.default_rng(1)
    broken["posterior"]["theta"].values[:] = rng.permuted(tree["posterior"]["theta"].values, axis=1)
    row = bz.contrasts(broken).iloc[0]
    assert max(map(abs, misses_of(row, *normal_differences(oracle, row["group"], row["against"])).values())) > 10


def test_many_groups_are_compared_with_the_one_of_which_most_is_known():
    table = {"group": list("abcdef"), "successes": [1, 5, 3, 2, 4, 6], "trials": [9, 8, 30, 5, 7, 9]}
    tree = fitted("beta_binomial", table)
    compared = bz.contrasts(tree)
    assert compared["against"].tolist() == ["c"] * 5
    (note,) = compared.attrs["notes"]
    assert note == "each of the 6 groups is compared with c, the most precise (trials 30)"
    draws = tree["posterior"]["theta"].to_numpy()
    np.testing.assert_allclose(compared["ratio"].iloc[0], np.median(draws[..., 0] / draws[..., 2]))
    other = bz.contrasts(tree, against="f")
    assert other["against"].tolist() == ["f"] * 5
    assert other.attrs["notes"] == []
    with raises(bz.InputError, "unknown_name", "'x'", "b", "c", "f"):
        bz.contrasts(tree, against="x")


def test_contrasts_of_a_point_estimate_are_differences_only():
    table = {"group": list("ab"), "y": [1, 9], "exposure": [5.0, 3.0]}
    tree = fitted("gamma_poisson_groups", table, "map", b1=1)
    row, (a, b) = bz.contrasts(tree).iloc[0], tree["posterior"]["lam"].to_numpy()[0, 0]
    assert row["difference"] == pytest.approx(b - a)
    assert row["ratio"] == pytest.approx(b / a)
    assert row.drop(["quantity", "group", "against", "difference", "ratio"]).isna().all()


def test_other_models_are_refused():
    M = bz.find("gaussian_mean")
    tree = bz.fit(M(), {"y": [1.0, 2.0]}, "exact", seed=1)
    with raises(bz.InputError, "no_groups", "gaussian_mean"):
        bz.group_estimates(tree)


@pytest.mark.slow
def test_draws_of_nuts_agree_with_the_closed_forms(frame):
    sampled = bz.group_estimates(fitted(method="nuts", m0=1, s0=10, t0=5))
    assert np.all(np.abs(sampled["mean"] - frame["mean"]) < 5 * sampled["mcse_mean"])
    for name in ("shrinkage", "rank", "p_highest", "p_lowest"):
        error = np.hypot(sampled[f"mcse_{name}"], frame[f"mcse_{name}"])
        assert np.all(np.abs(sampled[name] - frame[name]) < 5 * error), name
