"""Dirichlet process mixtures: against set partitions, Ewens' formula, SciPy, scikit-learn; chains with seeded bugs."""

import itertools
import json
import math

import numpy as np
import pytest
from scipy import special, stats
from sklearn.mixture import BayesianGaussianMixture

import bayeszoo as bz
from bayeszoo.answers.latent.clusters import Clusters
from bayeszoo.distributions.statistics.counts import Counts
from bayeszoo.families.mixtures.dirichlet_process import SplitMergeChain, sticks_for, truncation_error
from bayeszoo.families.mixtures.sticks import Sticks
from bayeszoo.fit import default_method
from bayeszoo.inference.methods.enumeration import Enumeration, enumerate_posterior, number_of_partitions, partitions
from bayeszoo.model.density import log_density
from bayeszoo.report.families.profile import of_clusters
from bayeszoo.results.stored import Fit
from tests.blocks import candidate_gap, divergence_error, expectation_error, stationary_gap
from tests.refusals import raises

DP, ONE, GAUSSIAN = map(bz.find, ("dp_mixture", "normal_inverse_wishart", "gaussian_mixture"))
Y = np.array([[-1.6, 0.1], [-1.2, -0.5], [-0.9, 0.4], [2.3, 1.2], [2.6, 2.0], [3.0, 1.4]])
ROWS = {"x": Y[:, 0], "y": Y[:, 1]}
FIELDS = {"m0": (0.2, 0.4), "kappa0": 0.5, "nu0": 4.5, "Psi0": ((0.8, 0.1), (0.1, 0.6))}
PATH = {"x": [0.0, 0.3, 5.0, 5.2, 9.0]}


def set_partitions(rows):
    """Every partition of a list, by the recursion on its last entry."""
    if not rows:
        yield []
        return
    for rest in set_partitions(rows[:-1]):
        for i, own in enumerate(rest):
            yield [*rest[:i], [*own, rows[-1]], *rest[i + 1 :]]
        yield [*rest, [rows[-1]]]


def log_ewens(sizes, alpha):
    """Probability of a partition under the Chinese restaurant process."""
    blocks = sum(math.log(alpha) + special.gammaln(size) for size in sizes)
    return blocks - special.gammaln(alpha + sum(sizes)) + special.gammaln(alpha)


def log_evidence_of_cluster(rows):
    """Log density of rows in one cluster: the product of SciPy's Student t of each row given those before."""
    m, kappa, nu, psi = (np.array(FIELDS[name], dtype=float) for name in ("m0", "kappa0", "nu0", "Psi0"))
    total = 0.0
    for y in rows:
        df = nu - len(y) + 1
        total += stats.multivariate_t(m, psi * (kappa + 1) / (kappa * df), df=df).logpdf(y)
        psi = psi + kappa / (kappa + 1) * np.outer(y - m, y - m)
        m, kappa, nu = (kappa * m + y) / (kappa + 1), kappa + 1, nu + 1
    return total


def test_exact_answers_are_sums_over_set_partitions_of_the_whole_process():
    """With 60 sticks what the process leaves is nothing: Ewens' weights and SciPy's densities."""
    alpha, each = 1.3, list(set_partitions(list(range(6))))
    assert len(each) == 203
    logs = np.array(
        [
            log_ewens([len(own) for own in blocks], alpha) + sum(log_evidence_of_cluster(Y[own]) for own in blocks)
            for blocks in each
        ]
    )
    exact = enumerate_posterior(DP(K=60, alpha=alpha, **FIELDS), ROWS)
    assert exact.log_evidence == pytest.approx(special.logsumexp(logs), abs=1e-10)
    p = special.softmax(logs)
    number = np.bincount([len(blocks) for blocks in each], p, minlength=7)
    np.testing.assert_allclose(exact.number_of_components[:7], number, atol=1e-10)
    together = sum(mass for blocks, mass in zip(each, p, strict=True) if any({0, 3} <= {*own} for own in blocks))
    assert exact.coclustering[0, 3] == pytest.approx(together, abs=1e-10)


def test_prior_number_of_clusters_is_ewens():
    """4,140 partitions of 8 rows; E[K] = sum alpha / (alpha + i): 2.717857 at alpha = 1."""
    sticks, every = Sticks.of(1.0, 80), partitions(8, 80)
    assert len(every) == number_of_partitions(8, 80) == 4140
    logs = [sticks.labels(tuple(sorted(np.bincount(own), reverse=True))).log_probability for own in every]
    assert np.exp(special.logsumexp(logs)) == pytest.approx(1.0, abs=1e-12)
    mean = np.sum(np.exp(logs) * (every.max(axis=1) + 1))
    assert mean == pytest.approx(sum(1 / (1 + i) for i in range(8)), abs=1e-10)


def test_hundreds_of_sticks_have_the_partitions_of_as_many_as_rows():
    """A large alpha takes 500 sticks."""
    assert len(partitions(6, 500)) == number_of_partitions(6, 500) == 203
    logs = [
        log_ewens([len(own) for own in blocks], 50.0) + sum(log_evidence_of_cluster(Y[own]) for own in blocks)
        for blocks in set_partitions(list(range(6)))
    ]
    exact = enumerate_posterior(DP(K=500, alpha=50.0, **FIELDS), ROWS).log_evidence
    assert exact == pytest.approx(special.logsumexp(logs), abs=truncation_error(50.0, 500, 6))


def test_labels_of_few_sticks_are_summed_over():
    sticks = Sticks.of(1.7, 4)
    for sizes in ((3, 2), (4, 1, 1), (2, 2, 1, 1), (1, 1, 1, 1, 1)):
        logs = [
            sticks.log_evidence(Counts(np.bincount(places, sizes, minlength=4)))
            for places in itertools.permutations(range(4), len(sizes))
        ]
        assert sticks.labels(sizes).log_probability == pytest.approx(special.logsumexp(logs or [-np.inf]), abs=1e-12)


def test_the_truncation_error_holds():
    """The largest distance of the laws of the data is that of the laws of the partition, which sums tell."""
    alpha, rows = 1.4, 6
    every = [tuple(sorted(np.bincount(own), reverse=True)) for own in partitions(rows, rows)]
    whole = np.exp([log_ewens(sizes, alpha) for sizes in every])
    for K in (2, 5, 9, 20):
        held = np.exp([Sticks.of(alpha, K).labels(sizes).log_probability for sizes in every])
        assert np.abs(whole - held).sum() <= truncation_error(alpha, K, rows)
    assert (
        truncation_error(alpha, sticks_for(alpha, 500), 500)
        < 1e-3
        <= truncation_error(alpha, sticks_for(alpha, 500) - 1, 500)
    )


def test_without_concentration_all_rows_are_one_normal():
    names = {"m0": "mu0", "kappa0": "kappa0", "nu0": "nu0", "Psi0": "Psi0"}
    one = ONE(**{names[name]: value for name, value in FIELDS.items()})
    whole = one.log_evidence(one.statistics(bz.read(ONE, ROWS)))
    model = DP(K=3, alpha=1e-9, **FIELDS)
    assert Enumeration.of(model, bz.read(DP, ROWS)).log_evidence == pytest.approx(whole, abs=1e-6)


def test_a_finite_mixture_of_many_components_is_near():
    """Dirichlet(alpha / K) of K components has the process for its limit; its error falls as 1 / K."""
    alpha, data = 1.2, bz.read(GAUSSIAN, {"x": Y[:4, 0], "y": Y[:4, 1]})
    exact = Enumeration.of(DP(K=60, alpha=alpha, **FIELDS), data).log_evidence
    errors = [Enumeration.of(GAUSSIAN(K=K, alpha=alpha / K, **FIELDS), data).log_evidence - exact for K in (8, 16)]
    assert 0.3 < errors[1] / errors[0] < 0.6


def test_sticks_are_a_conjugate_block():
    """The identities of all blocks, of one process."""
    rng = np.random.default_rng(3)
    block, rows = Sticks(("p",), "x", rng.uniform(0.7, 3, 4), rng.uniform(0.7, 3, 3)), {"x": rng.integers(0, 4, 12)}
    sums = block.statistics(rows, np.ones(12))
    assert candidate_gap(block, rows, rng) < 1e-9
    assert divergence_error(block, rows, rng) < 4.5
    assert expectation_error(block.updated(sums), rows, rng) < 5.5
    later = Sticks(("p",), "x", np.array([5.0, 3.0, 4.0, 6.0]), np.array([9.0, 7.0, 6.0]))
    assert stationary_gap(later, later.mode(), later.logpdf) < 1e-9
    draws, posterior = later.rvs((20_000,), rng)["p"], later.posterior()
    np.testing.assert_allclose(draws.mean(axis=0), posterior["p"].mean(), atol=0.004)
    np.testing.assert_allclose(draws.std(axis=0), posterior["p"].std(), atol=0.003)
    np.testing.assert_allclose(np.cov(draws.T), posterior.covariance(), atol=2e-4)
    with raises(bz.NumericalError, "no_maximum"):
        Sticks.of(1.0, 4).mode()


CHAINS = {
    "full": FIELDS | {"covariance": "full"},
    "diagonal": {"kappa0": 0.5, "nu0": 3.5, "Psi0": 0.8, "covariance": "diagonal"},
    "spherical": {"kappa0": 0.5, "nu0": 3.5, "Psi0": 0.8, "covariance": "spherical"},
}


def largest_error(chain, exact, sweeps=4000, every=2):
    """The largest error of a probability of co-clustering or of the number of clusters, in errors of batches."""
    seen = []
    chain.sweep(50)
    for _ in range(sweeps):
        chain.sweep(every)
        z = chain._component
        number = np.eye(8)[len(set(z.tolist()))]
        seen.append(np.concatenate([(z[:, None] == z)[np.triu_indices(len(z), 1)], number[1:5]]))
    batches = np.reshape(seen, (40, -1, len(seen[0]))).mean(axis=1)
    rows = len(exact.coclustering)
    expected = np.concatenate([exact.coclustering[np.triu_indices(rows, 1)], exact.number_of_components[1:5]])
    error = np.maximum(batches.std(axis=0, ddof=1) / math.sqrt(40), 2e-4)
    return np.max(np.abs(batches.mean(axis=0) - expected) / error)


def chain_of(kind, alpha=1.3):
    model = DP(K=5, alpha=alpha, **CHAINS[kind])
    data = bz.read(DP, ROWS)
    return model.gibbs(data, np.random.default_rng(2)), Enumeration.of(model, data)


@pytest.mark.slow  # the sampler is compiled once for each form of its arrays
@pytest.mark.parametrize("kind", CHAINS)
def test_chains_are_those_of_the_sum_over_partitions(kind):
    assert largest_error(*chain_of(kind)) < 5


def with_bug(bug):
    """Return a chain with a bug, in the prior of the clusters or of the sticks."""
    chain, exact = chain_of("full")
    if bug == "kappa off by one":
        chain._state[6][0] += 1.0
    elif bug == "degrees of freedom of the row before":
        chain._state[6][1:] = np.roll(chain._state[6][1:], 1, axis=1)
    elif bug == "sticks of another alpha":
        chain._prior.weights.rest[:] = 2.6
    elif bug == "clusters about another place":
        chain._prior_of_cluster[0][:] += 1.0
    return chain, exact


@pytest.mark.slow  # as above
@pytest.mark.parametrize(
    "bug",
    [
        "kappa off by one",
        "degrees of freedom of the row before",
        "sticks of another alpha",
        "clusters about another place",
    ],
)
def test_bugs_of_the_chain_are_seen(bug):
    assert largest_error(*with_bug(bug)) > 6


@pytest.mark.slow  # 400 pairs of a draw from the prior and a few sweeps of a compiled sampler
def test_the_chain_leaves_the_prior_as_it_is():
    """Geweke 2004, Gandy and Scott 2020: clusters drawn from the prior, rows given them, then sweeps: the same law."""
    rng, model, number = np.random.default_rng(0), DP(K=6, alpha=1.0, **FIELDS), []
    for _ in range(400):
        weights = model.prior(bz.read(DP, ROWS)).weights.rvs((), rng)["weights"]
        z = rng.choice(6, 8, p=weights)
        each = model.component_law(bz.read(DP, ROWS)).rvs((), rng)
        rows = np.array([rng.multivariate_normal(each["means"][k], each["covariances"][k]) for k in z])
        chain = model.gibbs(bz.read(DP, {"x": rows[:, 0], "y": rows[:, 1]}), rng)
        chain._component[:] = z
        chain.sweep(3)
        number.append((len({*z.tolist()}), len({*chain._component.tolist()})))
    before, after = np.transpose(number)
    assert stats.ks_2samp(before, after).pvalue > 1e-4
    assert abs(np.mean(before - after)) < 4.5 * np.std(before - after) / 20


def test_vb_is_below_the_evidence_and_near_scikit_learn():
    """Blei and Jordan's bound; scikit-learn's leaves constants out, so its means and weights are compared."""
    rng = np.random.default_rng(4)
    rows = np.concatenate([rng.normal(-4, 0.6, 30), rng.normal(3, 0.8, 20)])[:, None]
    data = bz.read(DP, {"x": rows[:, 0]})
    model = DP(K=6, alpha=1.0, m0=(0.0,), kappa0=0.1, nu0=3.0, Psi0=((2.0,),))
    best = max(
        (climbed(model, data, seed) for seed in range(5)),
        key=lambda q: model.vb_e_step(q, data).value - model.divergence(q),
    )
    peer = BayesianGaussianMixture(
        n_components=6,
        weight_concentration_prior_type="dirichlet_process",
        weight_concentration_prior=1.0,
        mean_prior=[0.0],
        mean_precision_prior=0.1,
        degrees_of_freedom_prior=3.0,
        covariance_prior=[[2.0]],
        max_iter=2000,
        tol=1e-10,
        n_init=5,
        random_state=1,
    ).fit(rows)
    ours = best.q.weights.typical()["weights"]
    np.testing.assert_allclose(ours[:2], peer.weights_[:2], atol=0.02)
    np.testing.assert_allclose(best.q.law.m[:2, 0], peer.means_[:2, 0], atol=0.02)


def climbed(model, data, seed):
    q = model.vb_start(data, np.random.default_rng(seed))
    for _ in range(200):
        q = model.vb_m_step(model.vb_e_step(q, data).stats)
    return q


def test_no_label_is_shown():
    tree = bz.fit(DP(K=4, alpha=0.8, kappa0=0.05, Psi0=0.5), PATH, "enumerate", seed=1)
    assert all(each["mean"] is None for each in bz.summarize(tree).values())
    with raises(bz.Untrustworthy, "withheld"):
        bz.assign(tree)
    answer = bz.clusters(tree)
    exact = enumerate_posterior(DP(K=4, alpha=0.8, kappa0=0.05, Psi0=0.5), PATH)
    np.testing.assert_allclose(answer.together, exact.coclustering, atol=0.04)
    number = answer.number["probability"]
    np.testing.assert_allclose(number, exact.number_of_components[number.index], atol=0.04)
    alone = answer.rows["alone"]
    assert alone.index[alone.argmax()] == 5
    assert len({*answer.groups[:2]}) == len({*answer.groups[2:4]}) == 1


def test_clusters_are_counted_without_labels():
    drawn = np.array([[[0, 0, 2, 1], [3, 3, 3, 1], [1, 1, 0, 0], [5, 5, 2, 0]]])
    answer = Clusters(bz.read(DP, {"x": [1.0, 2.0, 3.0, 4.0]}), drawn)
    assert answer.counts.tolist() == [[3, 2, 2, 3]]
    assert answer.number["probability"].tolist() == [0.5, 0.5]
    assert answer.together[0].tolist() == [1.0, 1.0, 0.25, 0.0]
    assert answer.rows["alone"].tolist() == [0.0, 0.0, 0.5, 0.75]
    assert answer.groups.tolist() == [1, 1, 2, 3]
    counts, groups, *_ = of_clusters(answer)
    assert [row[0] for row in counts.rows] == ["2", "3"]
    assert [row[:2] for row in groups.rows] == [[1, 2], [2, 1], [3, 1]]
    assert [row[3] for row in groups.rows] == ["1.5", "3", "4"]  # the means of the rows


def test_the_density_of_a_row_is_that_of_the_exact_predictive():
    model = DP(K=4, alpha=0.8, kappa0=0.5, Psi0=0.5)
    tree = bz.fit(model, PATH, "enumerate", seed=1)
    known = bz.row_density(tree, {"x": [0.1, 5.1]})
    exact = np.exp(enumerate_posterior(model, PATH).log_predictive({"x": [0.1, 5.1]}))
    assert np.all(np.abs(known["density"] - exact) < 5 * known["mcse"])
    assert np.all(known["q025"] < known["q975"])


def test_a_density_that_few_draws_carry_is_withheld():
    """Far from the rows the density is that of a new cluster, a Student t, of which the draws hold hardly any."""
    model = DP(K=4, alpha=0.8, kappa0=0.5, Psi0=0.5)
    tree, places = bz.fit(model, PATH, "enumerate", seed=1), {"x": [0.1, 200.0]}
    N, freedom = len(PATH["x"]), float(model.nu0)
    scale = math.sqrt(0.5 * (1 + 1 / 0.5) / freedom)
    least = 0.8 / (N + 0.8) * stats.t(freedom, loc=float(np.ravel(model.m0)[0]), scale=scale).pdf(200.0)
    law = model.law(Fit(tree).draws(), Fit(tree).like, bz.read(model, places))
    values = np.exp(log_density(law, np.array(places["x"])[:, None]))
    assert values.mean(axis=(0, 1))[1] < least / 10  # the average of the draws, by many of its errors
    known = bz.row_density(tree, places)
    assert known["density"].isna().tolist() == [False, True]
    assert known.loc[2, ["mcse"]].isna().all()
    assert known["withheld"].str.startswith("density").tolist() == [False, True]


def test_estimates_by_a_maximum_are_refused():
    for method in ("map", "mle"):
        with raises(bz.NumericalError, "no_maximum" if method == "map" else "not_converged"):
            bz.fit(DP(K=4), PATH, method, seed=1)


def test_laplace_sees_one_order_of_the_sticks_and_is_refused():
    with raises(bz.NumericalError, "unvisited_mode"):
        bz.fit(DP(K=4), PATH, "laplace", seed=1)


def test_gibbs_is_the_usual_method():
    assert default_method(DP) == "gibbs"
    (row,) = bz.select({"clusters": DP(K=4, kappa0=0.5, Psi0=0.5)}, PATH, seed=1).to_dict("records")
    assert row["loo_from"] == "withheld: no closed form: a fit by gibbs (FILE.nc) gives a score"
    assert default_method(GAUSSIAN) == "nuts"


def test_bad_fields_and_data_are_refused():
    with raises(bz.InputError, "unknown_method"):
        DP(covariance="tied")
    with raises(bz.InputError, "too_large"):
        bz.fit(DP(K=20), {"x": np.arange(12.0)}, "enumerate")
    with raises(bz.InputError, "out_of_range"):
        DP(alpha=0)
    with raises(bz.InputError, "not_sampled"):
        bz.clusters(bz.fit(GAUSSIAN(Psi0=0.1), PATH, "map", seed=1))


def test_more_sticks_than_rows_and_one_stick():
    few = DP(K=30, alpha=1.0, kappa0=0.5, Psi0=0.5)
    data = bz.read(DP, {"x": [0.0, 1.0]})
    chain = few.gibbs(data, np.random.default_rng(0))
    assert isinstance(chain, SplitMergeChain)
    one = Enumeration.of(DP(K=1, **FIELDS), bz.read(DP, ROWS)).log_evidence
    assert one == pytest.approx(log_evidence_of_cluster(Y), abs=1e-10)


def test_the_fit_says_what_its_sticks_cost(run, written):
    table = written("age\n1\n2\n9\n10.5\n9.2\n")
    code, out, err = run("fit", "dp_mixture", table, "--method", "enumerate", "--seed", 1, "-o", table.parent / "f.nc")
    assert code == 0
    assert "sticks" in err
    assert out.index("clusters") < out.index("withheld")
    code, out, _ = run("clusters", table.parent / "f.nc", "--json")
    document = json.loads(out)
    assert code == 0
    assert sum(each["probability"] for each in document["number_of_clusters"]) == pytest.approx(1)
    assert {"group", "alike", "alone"} <= document["rows"][0].keys()
    places = table.parent / "places.csv"
    places.write_text("age\n5\n")
    code, out, _ = run("clusters", table.parent / "f.nc", places)
    assert code == 0
    assert "density" in out


def test_weights_are_declared_as_pymc_does():
    """A graph of three weights is compiled, without optimization."""
    import pymc as pm

    weights = Sticks.of(1.3, 4).rvs((3,), np.random.default_rng(0))["weights"]
    expected = pm.logp(pm.StickBreakingWeights.dist(np.float64(1.3), 3), weights).eval(mode="FAST_COMPILE")
    np.testing.assert_allclose(Sticks.of(1.3, 4).logpdf({"weights": weights}), expected, rtol=1e-6)
