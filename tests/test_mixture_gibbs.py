"""Gibbs sampling of mixtures: against enumeration, seeded bugs, NUTS, hard data, and what is asked of a fit."""

from dataclasses import replace
from functools import cache
from unittest import mock

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.compile import density
from bayeszoo.contract.sampler import MAX_Z, largest_quartile_z
from bayeszoo.distributions.conjugate.mixture import MixturePrior
from bayeszoo.distributions.statistics.counts import Counts
from bayeszoo.families.mixtures.gibbs import CollapsedChain, MixtureChain
from bayeszoo.inference.engine.settled import Settled, unvisited
from bayeszoo.inference.methods import gibbs
from bayeszoo.inference.methods.enumeration import Enumeration
from bayeszoo.model.capabilities import exchangeable_axis
from bayeszoo.results.stored import Fit, fits_of
from tests.quick import quick_where
from tests.refusals import raises

GAUSSIAN, DOCUMENTS, LATENT, RATERS = map(
    bz.find, ("gaussian_mixture", "multinomial_mixture", "latent_class", "dawid_skene")
)
WAVES = np.sin(np.arange(40)).reshape(20, 2)
Y = np.array([[-1.6, 0.1], [-1.2, -0.5], [-0.4, 0.9], [0.3, 0.2], [1.1, -1.0], [1.9, 1.4]])
ROWS = {"Y": Y, "column": ["x", "y"]}
WORDS = {"counts": np.array([[2, 1, 0], [1, 0, 0], [0, 1, 2], [0, 0, 3], [1, 1, 1]]), "word": list("abc")}
ANSWERS = {"a": list("nyynyy"), "b": list("pqpqqr"), "c": list("nnyyyn")}
RATINGS = {"item": list("ppqqrrrs"), "rater": list("abababca"), "label": list("nyyynnny")}
CASES = {
    **{kind: (GAUSSIAN(K=2, alpha=1.5, covariance=kind), ROWS) for kind in ("full", "tied", "diagonal")},
    "spherical": (GAUSSIAN(K=3, alpha=0.7, covariance="spherical"), ROWS),
    "documents": (DOCUMENTS(K=2, alpha=0.8, eta=0.6), WORDS),
    "latent classes": (LATENT(K=2, alpha=0.8, eta=0.6), ANSWERS),
    "raters": (RATERS(K=2, alpha=[0.8, 1.5], eta=0.6, stay=2), RATINGS),
}


def case(name):
    model, table = CASES[name]
    return model, bz.read(model, table)


def chain_of(model, data, seed=1):
    return model.gibbs(data, np.random.default_rng(seed))


def sampled(model, data, draws=1000, thin=2):
    """Draws of four chains after a warmup, (4, draws, ...)."""
    chains = []
    for seed in range(4):
        chain, kept = chain_of(model, data, seed), []
        chain.sweep(100)
        for _ in range(draws):
            chain.sweep(thin)
            kept.append(chain.draw())
        chains.append({name: np.array([draw[name] for draw in kept]) for name in kept[0]})
    return {name: np.stack([chain[name] for chain in chains]) for name in chains[0]}


@cache
def enumerated(name):
    """Return exact draws of the posterior."""
    return Enumeration.of(*case(name)).draw((4, 4000), np.random.default_rng(0))


def largest_z(name, **options):
    """The largest error of a quartile against enumeration, of what does not depend on labels, in its own error."""
    model, data = case(name)
    exact, draws = enumerated(name), sampled(model, data, **options)
    quantities = [{**model.invariants(some, data)} for some in (draws, exact)]
    if exchangeable_axis(model) is None:
        quantities = [free | some for free, some in zip(quantities, (draws, exact), strict=True)]
    return largest_quartile_z(*quantities)


@pytest.mark.parametrize("name", quick_where(CASES, ("full", "documents", "raters").__contains__))
def test_draws_are_those_of_enumeration(name):
    assert largest_z(name) < MAX_Z


def mean_of(self, posterior):
    return posterior.typical()


def terms_without_weights(self, params, rows):
    return self.law.log_density(params, rows)


def counted_twice(self):
    return STATS(self) + STATS(self)


def without_the_first_row(self):
    each = np.eye(len(self._prior.weights.alpha))[self._component]
    each[0] = 0
    return self._prior.moments(each, self._rows).stats


def weights_not_counted(self):
    stats = STATS(self)
    return replace(stats, parts=(Counts(0 * stats.parts[0].counts), stats.parts[1]))


STATS = MixtureChain._counted
BUGS = {
    "parameters at their means": (MixtureChain, "_drawn", mean_of),
    "components without weights": (MixturePrior, "log_terms", terms_without_weights),
    "rows counted twice": (MixtureChain, "_counted", counted_twice),
    "a row left out": (MixtureChain, "_counted", without_the_first_row),
    "weights of the prior": (MixtureChain, "_counted", weights_not_counted),
}


COLLAPSED = "components without weights", "latent classes"
"""A bug of a step that the collapsed chain of latent classes does not have."""
SEEDED = [(bug, name) for bug in BUGS for name in ("full", "documents", "latent classes", "raters")]
SEEDED.remove(COLLAPSED)


@pytest.mark.parametrize("seeded", quick_where(SEEDED, lambda case: case[1] == "documents"), ids=" of ".join)
def test_bugs_of_the_chain_are_seen_by_enumeration(monkeypatch, seeded):
    bug, name = seeded
    model, data = case(name)
    exact = enumerated(name)
    with monkeypatch.context() as patch:
        patch.setattr(*BUGS[bug])
        draws = sampled(model, data)
    quantities = [{**model.invariants(some, data), "weights": np.sort(some["weights"])} for some in (draws, exact)]
    assert largest_quartile_z(*quantities) > MAX_Z


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_features_counted_wrong_are_seen_by_enumeration(monkeypatch, factor):
    model, data = case("latent classes")
    exact = Enumeration.of(model, data).draw((4, 4000), np.random.default_rng(0))
    right = CollapsedChain._by_table
    monkeypatch.setattr(CollapsedChain, "_by_table", lambda self, values: factor * right(self, values))
    draws = sampled(model, data)
    assert largest_quartile_z(*({**model.invariants(some, data)} for some in (draws, exact))) > MAX_Z


@pytest.mark.parametrize("name", CASES)
def test_the_log_density_is_that_of_rows_and_parameters_less_that_of_the_parameters_given_components(name):
    model, data = case(name)
    chain = chain_of(model, data)
    for _ in range(5):
        chain.sweep(1)
        params = chain.draw()
        joint = model.log_rows(params, data).sum() + model.log_prior(params, data)
        given = model.posterior_given(chain._component, data).logpdf(params)
        assert chain.log_joint == pytest.approx(joint - given, rel=1e-9, abs=1e-9)


# modes


def clumps(*centres):
    rows = np.add.outer(centres, [-0.1, 0.0, 0.1]).reshape(-1, 1)
    return bz.read(GAUSSIAN, {"Y": rows, "column": ["y"]})


def test_chains_that_do_not_travel_between_modes_do_not_pass():
    """Three clumps for two components: the middle one goes to either side."""
    model, short = GAUSSIAN(K=2, kappa0=0.05, Psi0=0.05), {"extend": False, "groups": (), "draws": 400}
    tree = bz.fit(model, clumps(-5, 0, 5), "gibbs", seed=1, **short)
    assert tree.attrs["status"] == "failed"


@pytest.mark.parametrize(("middle", "height", "count"), [(-6, 0, 1), (-6, -30, 0), (6, 0, 0)])
def test_draws_that_have_not_been_where_others_settled_are_seen(middle, height, count):
    noise = np.random.default_rng(2).normal(size=(4, 400, 1))
    latest, other = Settled(6 + noise, np.zeros((4, 400))), Settled(middle + noise[:1], np.full((1, 400), height))
    (check,) = unvisited(latest, [other], 1.0)
    assert (check.value, check.passed) == (count, count == 0)


@pytest.mark.slow  # two fits of the galaxies; a quick one: `test_chains_that_do_not_travel_between_modes_do_not_pass`
def test_chains_go_on_from_the_best_of_those_that_looked_for_modes(monkeypatch):
    """Of the galaxies two modes hold a chain, one with e**-10 of the other's mass."""
    data = bz.example(GAUSSIAN, "galaxies")
    model, highest = GAUSSIAN.weak_with(data, {"K": 3}), gibbs._highest
    with monkeypatch.context() as patch:
        patch.setattr(gibbs, "_highest", lambda settled: highest(settled)[::-1])
        tree = bz.fit(model, data, "gibbs", seed=1, extend=False, draws=400, groups=())
    assert Fit(tree).status == "failed"
    right = Fit(bz.fit(model, data, "gibbs", seed=1, groups=()))
    assert right.status == "ok"
    assert np.sort(right.draws()["weights"].mean((0, 1))) == pytest.approx([0.05, 0.1, 0.85], abs=0.02)


EXAMPLES = ("gaussian_mixture", "multinomial_mixture", "latent_class", "dawid_skene")


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_fits_of_the_examples_pass_and_agree_with_nuts(name):
    kind = bz.find(name)
    data = bz.example(kind)
    model = kind.weak(data)
    fits = [Fit(bz.fit(model, data, method, seed=1, groups=())) for method in ("gibbs", "nuts")]
    assert [fit.status for fit in fits] == ["ok", "ok"]
    assert largest_quartile_z(*(model.invariants(fit.draws(), data) for fit in fits)) < MAX_Z


# hard data


def test_one_component_is_the_closed_form():
    data = bz.read(GAUSSIAN, ROWS)
    model = GAUSSIAN(K=1)
    fit = Fit(bz.fit(model, data, "gibbs", seed=1, groups=(), draws=500, tune=100, thin=1))
    exact = model.posterior_given(np.zeros(len(Y), dtype=int), data)
    drawn = fit.draws()
    reference = exact.rvs((4, 5000), np.random.default_rng(0))
    assert fit.status == "ok"
    assert largest_quartile_z({"means": drawn["means"]}, {"means": reference["means"]}) < MAX_Z


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("alpha", [1e-3, 1e3])
def test_numbers_stay_finite_under_a_prior_of_empty_components_and_a_strong_one(name, alpha):
    key = {"gaussian_mixture": "full", "multinomial_mixture": "documents", "latent_class": "latent classes"}
    model, data = case(key.get(name, "raters"))
    model = model.replaced(K=min(2, model.K) if name == "dawid_skene" else 4, alpha=alpha)
    chain = chain_of(model, data)
    for _ in range(50):
        chain.sweep(1)
        assert np.isfinite(chain.log_joint)
        assert all(np.isfinite(np.log(values)).all() for values in chain.draw().values() if values.min() >= 0)


def test_rows_far_from_zero_and_equal_rows():
    """The draws move with the rows."""
    model, rounded = GAUSSIAN(K=2), 2.0**-7 * np.round(Y * 2**7)
    chains = [
        chain_of(model.replaced(m0=zero), bz.read(GAUSSIAN, {**ROWS, "Y": zero + rounded}), 5) for zero in (0.0, 1e9)
    ]
    for chain in chains:
        chain.sweep(20)
    here, there = (chain.draw()["means"] for chain in chains)
    np.testing.assert_allclose(there - 1e9, here, atol=1e-5)
    equal = bz.read(GAUSSIAN, {**ROWS, "Y": np.ones((8, 2))})
    tree = bz.fit(GAUSSIAN.weak(equal), equal, "gibbs", seed=1, draws=100, tune=50, extend=False, groups=())
    assert np.isfinite(tree["sample_stats"]["lp"]).all()


def test_more_components_than_rows_are_refused():
    with raises(bz.InputError, "too_few_rows"):
        bz.fit(GAUSSIAN(K=7), ROWS, "gibbs", seed=1)


# what is asked of a fit


APART = {
    "gaussian_mixture": dict(zip("xy", (np.repeat([[-5.0, 0.0], [5.0, 0.0]], 10, 0) + WAVES).T, strict=True)),
    "multinomial_mixture": {"a": [9] * 8 + [0] * 8, "b": [1] * 8 + [2] * 8, "c": [0] * 8 + [9] * 8},
    "latent_class": {
        name: [answer if i % 9 != j else "n" for i, answer in enumerate("n" * 20 + "y" * 20)]
        for j, name in enumerate("abcde")
    },
    "dawid_skene": {"item": np.repeat(np.arange(12), 3), "rater": list("abc" * 12), "label": list("n" * 18 + "y" * 18)},
}
SHORT = {"seed": 1, "draws": 400, "tune": 100, "thin": 1}


QUICK = ("multinomial_mixture", "dawid_skene")


@pytest.mark.parametrize("name", quick_where(EXAMPLES, QUICK.__contains__))
def test_a_fit_is_asked_as_one_by_nuts(name, tmp_path):
    tree = bz.fit(bz.find(name)(K=2), APART[name], "gibbs", **SHORT)
    assert tree.attrs["status"] in ("ok", "caution")
    size = Fit(tree).model.inputs.size(Fit(tree).data)
    assert len(bz.assign(tree)) == size
    assert "log_likelihood" in tree.children or name == "dawid_skene"
    if name == "dawid_skene":
        with raises(bz.InputError, "no_row_law"):
            bz.predict(tree, seed=1)
    else:
        assert np.isfinite(bz.compare([tree])["loo_score"]).all()
        assert len(bz.predict(tree, seed=1))
    with raises(bz.InputError, "not_one_number"):
        bz.residuals(tree)
    with mock.patch.object(density, "Density", side_effect=AssertionError("a density is compiled")):
        page = bz.report(tree, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Gibbs" in page


@pytest.mark.parametrize("name", quick_where(EXAMPLES, QUICK[:1].__contains__))
def test_groups_of_rows_are_fitted_one_by_one(name):
    table = {key: [*values, *values] for key, values in APART[name].items()}
    table["site"] = np.repeat(["here", "there"], len(table[next(iter(table))]) // 2)
    tree = bz.fit_by(bz.find(name)(K=2), table, by="site", method="gibbs", groups=(), **SHORT)
    assert [fit.status for fit in fits_of(tree).values()] == ["ok", "ok"]


def test_the_same_seed_gives_the_same_fit():
    model, data = case("documents")
    fits = [bz.fit(model, data, "gibbs", seed=1, draws=100, tune=50, extend=False, groups=()) for _ in range(2)]
    np.testing.assert_array_equal(*(fit["posterior"]["topics"] for fit in fits))
