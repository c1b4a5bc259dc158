"""One law for all columns of a kind, next to other laws; indices by codes; quantities that add up over classes."""

import numpy as np
import pytest
from scipy import sparse, stats

from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.distributions.conjugate.columns import Columns, SparseColumns
from bayeszoo.distributions.conjugate.law import Known
from bayeszoo.distributions.conjugate.mixture import MixturePrior
from bayeszoo.distributions.conjugate.negative_binomial import NegativeBinomial
from bayeszoo.distributions.conjugate.normal import Normal
from bayeszoo.distributions.conjugate.poisson import Poisson
from bayeszoo.distributions.conjugate.product import Features, Several
from bayeszoo.distributions.conjugate.tables import Tables
from bayeszoo.errors import InputError
from tests.refusals import raises

RNG = np.random.default_rng(11)
N, K, C = 15, 3, 2
PLACES = (0, 3), (1, 2, 4)


def part(low=0.5, high=2.0, shape=(K, C)):
    return RNG.uniform(low, high, shape)


NUMBERS = Columns(Normal(("mean", "variance"), "reals", part(), part(), part(1.0, 3.0), part()))
EVENTS = Columns(Poisson(("rate",), "counts", part(), part()))
LEVELS = Tables(("p",), "levels", part(shape=(K, 5)), PLACES)
LAWS = {"numbers": NUMBERS, "events": EVENTS, "levels": LEVELS, "all": Features((LEVELS, EVENTS, NUMBERS))}


@pytest.fixture(scope="module")
def rows():
    data = {"reals": RNG.normal(size=(N, C)), "counts": RNG.poisson(3.0, (N, C)) * 1.0}
    data["levels"] = np.column_stack([RNG.choice(own, N) for own in PLACES])
    data["reals"][2, 0], data["counts"][3, 1], data["levels"][4, 0] = np.nan, np.nan, -1
    return data


def draws(law, size=(4,)):
    return {name: value for block in law.blocks for name, value in block.rvs(size, RNG).items()}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_candidate_identity_with_cells_missing(law, rows):
    """Log evidence is log prior and likelihood less the log density of the posterior, at any parameters."""
    weights = np.ones((N, K))
    sums, params = law.statistics(rows, weights), draws(law)
    later = law.updated(sums)
    prior, posterior = (sum(block.logpdf(params) for block in each.blocks) for each in (law, later))
    likelihood = law.log_density(params, rows).sum(axis=(-1, -2))
    np.testing.assert_allclose(prior + likelihood - posterior, law.log_evidence(sums).sum(), rtol=1e-10)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_codes_are_weights_of_0_and_1(law, rows):
    codes = RNG.integers(-1, K, N)
    by_codes = law.statistics_by(codes, rows)
    by_weights = law.statistics(rows, (codes[:, None] == np.arange(K)) * 1.0)
    np.testing.assert_allclose(law.log_evidence(by_codes), law.log_evidence(by_weights), rtol=1e-12)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_predictive_is_the_evidence_of_a_row_and_the_mean_of_its_density(law, rows):
    each = law.log_predictive(rows)
    for i in range(N):
        row = {name: values[[i]] for name, values in rows.items()}
        np.testing.assert_allclose(each[i], law.log_evidence(law.statistics(row, np.ones((1, K)))), atol=1e-12)
    density = np.exp(law.log_density(draws(law, (20_000,)), rows))
    gap = np.abs(density.mean(axis=0) - np.exp(each)) / (density.std(axis=0) / np.sqrt(len(density)) + 1e-12)
    assert np.quantile(gap, 0.9) < 4


def test_densities_are_scipys(rows):
    params = draws(LAWS["all"], ())
    codes = rows["levels"]
    expected = np.where(codes[:, :, None] >= 0, np.log(params["p"].T[codes]), 0.0).sum(axis=1)
    mass = stats.poisson(params["rate"]).logpmf(np.nan_to_num(rows["counts"])[:, None])
    expected += np.where(np.isnan(rows["counts"])[:, None], 0.0, mass).sum(axis=-1)
    normal = stats.norm(params["mean"], np.sqrt(params["variance"])).logpdf(rows["reals"][:, None])
    expected += np.nan_to_num(normal).sum(axis=-1)
    np.testing.assert_allclose(LAWS["all"].log_density(params, rows), expected, rtol=1e-10)


def test_expected_density_is_that_of_draws(rows):
    law = LAWS["all"].updated(LAWS["all"].statistics(rows, np.ones((N, K))))
    density = law.log_density(draws(law, (4000,)), rows)
    gap = np.abs(density.mean(axis=0) - law.expected_log_density(rows)) / (density.std(axis=0) / np.sqrt(4000))
    assert np.max(gap) < 5


def test_classes_and_rows_are_the_chain_of_predictives(rows):
    """The evidence of classes and rows is the product of each row's terms given the rows before."""
    codes = RNG.integers(0, K, N)
    prior = MixturePrior((Categorical(("shares",), "class", np.full(K, 0.7)), LAWS["all"]))

    def sums(index):
        some = {name: values[index] for name, values in rows.items()}
        shares, law = prior.laws
        own = shares.statistics({"class": codes[index]}, np.ones(len(codes[index])))
        return Several((own, law.statistics_by(codes[index], some)))

    terms = [
        prior.updated(sums(slice(i))).log_predictive_terms({n: v[[i]] for n, v in rows.items()})[0, codes[i]]
        for i in range(N)
    ]
    assert np.sum(terms) == pytest.approx(prior.log_evidence(sums(slice(N))), rel=1e-11)


def test_maximum_of_the_likelihood_is_of_each_column(rows):
    codes = np.arange(N) % K
    law = LAWS["all"]
    at = law.mle(law.statistics_by(codes, rows))
    for k in range(K):
        own = {name: values[codes == k] for name, values in rows.items()}
        np.testing.assert_allclose(at["mean"][k], np.nanmean(own["reals"], axis=0), rtol=1e-12)
        np.testing.assert_allclose(at["variance"][k], np.nanvar(own["reals"], axis=0), rtol=1e-11)
        np.testing.assert_allclose(at["rate"][k], np.nanmean(own["counts"], axis=0), rtol=1e-12)
        for j, places in enumerate(PLACES):
            seen = own["levels"][own["levels"][:, j] >= 0, j]
            np.testing.assert_allclose(at["p"][k, list(places)], [np.mean(seen == v) for v in places], atol=1e-12)


def test_a_known_law_has_no_prior_in_features(rows):
    params = draws(NUMBERS, ())
    both = Features((LEVELS, Known(NUMBERS, params)))
    assert both.names == ("p",)
    assert both.mle(both.statistics(rows, np.ones((N, K)))).keys() == {"p"}


def test_predictive_densities_are_scipys(rows):
    """A number is Student t, a count negative binomial, a level one trial: each by itself."""
    block = NUMBERS.block
    scale = np.sqrt(block.b / block.a * (1 + 1 / block.kappa))
    student = stats.t(2 * block.a, block.m, scale).logpdf(rows["reals"][:, None])
    np.testing.assert_allclose(NUMBERS.log_predictive(rows), np.nansum(student, axis=-1), rtol=1e-10)
    gamma, counts = EVENTS.block, rows["counts"][:, None]
    mass = stats.nbinom(gamma.a, gamma.b / (1 + gamma.b)).logpmf(np.nan_to_num(counts))
    expected = np.where(np.isnan(counts), 0.0, mass).sum(axis=-1)
    np.testing.assert_allclose(EVENTS.log_predictive(rows), expected, rtol=1e-10)


SPARSE = {
    "poisson": Poisson(("rate",), "counts", part(), part(), "length"),
    "negative binomial": NegativeBinomial(("chance",), "counts", part(), part(), size=0.7, exposure="length"),
}


@pytest.mark.parametrize("block", SPARSE.values(), ids=SPARSE)
def test_sparse_columns_are_each_column_with_its_zeros(block):
    law, counts = SparseColumns(block), RNG.poisson(0.6, (N, C)) * 1.0
    counts[:, 0] = 0
    counts[:, 1] += 1
    rows = {"counts": sparse.csr_array(counts), "length": RNG.choice([0.5, 1.0, 2.5], N)}
    columns = [{"counts": counts[:, c], "length": rows["length"]} for c in range(C)]
    weights, params = RNG.uniform(0.2, 2.0, (N, K)), block.rvs((4,), RNG)
    sums = law.statistics(rows, weights)
    each = [block[:, c].statistics(own, weights) for c, own in enumerate(columns)]
    evidence = sum(block[:, c].log_evidence(own) for c, own in enumerate(each))
    np.testing.assert_allclose(law.log_evidence(sums), evidence, rtol=1e-11)
    at = [{name: values[..., c] for name, values in params.items()} for c in range(C)]
    density = sum(block[:, c].log_density(at[c], own) for c, own in enumerate(columns))
    np.testing.assert_allclose(law.log_density(params, rows), density, rtol=1e-11)
    for step in ("log_predictive", "expected_log_density"):
        expected = sum(getattr(block[:, c], step)(own) for c, own in enumerate(columns))
        np.testing.assert_allclose(getattr(law, step)(rows), expected, rtol=1e-11)


@pytest.mark.parametrize("block", SPARSE.values(), ids=SPARSE)
def test_counts_without_exposure_are_refused(block):
    rows = {"counts": sparse.csr_array(np.ones((2, C))), "length": np.array([1.0, 0.0])}
    with raises(InputError, "events_without_exposure"):
        SparseColumns(block).statistics(rows, np.ones((2, K)))


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_rows_of_many_places_are_taken_place_by_place(monkeypatch, law, rows):
    codes = RNG.integers(-1, K, N)
    together = law.statistics_by(codes, rows)
    for module in ("law", "columns"):
        monkeypatch.setattr(f"bayeszoo.distributions.conjugate.{module}.AT_ONCE", 1)
    apart = law.statistics_by(codes, rows)
    np.testing.assert_allclose(law.log_evidence(apart), law.log_evidence(together), rtol=1e-12)
    both = law.log_evidence(apart + together), law.log_evidence(together + together)
    np.testing.assert_allclose(*both, rtol=1e-12)
