"""Streaming: batch after batch is all at once, and old batches are forgotten at the rate that was asked for."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from bayeszoo.models.beta_bernoulli import BetaBernoulli
from bayeszoo.models.gaussian_mean import GaussianMean
from bayeszoo.models.normal_gamma import NormalGamma

import bayeszoo as bz
from bayeszoo.contract.case import cases_of
from bayeszoo.distributions.statistics.base import Stats
from bayeszoo.model.base import fields_of
from tests.reading import Opaque
from tests.refusals import raises

RNG = np.random.default_rng(0)
TOSSES, SPEEDS = RNG.binomial(1, 0.3, 40), RNG.normal(1e6, 80, 40)
MODELS = [(BetaBernoulli(2, 3), TOSSES), (GaussianMean(1e6, 50, 80), SPEEDS), (NormalGamma(1e6, 0.1, 2, 5000), SPEEDS)]


def last(models):
    return list(models)[-1]


def fields(model):
    return pytest.approx(list(fields_of(model).values()), rel=1e-10)


@pytest.mark.parametrize(("model", "y"), MODELS, ids=lambda value: getattr(value, "name", ""))
def test_without_forgetting_the_batches_do_not_matter(model, y):
    whole, batches = fields(bz.update(model, y)), [[value] for value in np.random.default_rng(1).permutation(y)]
    for given in ([y], [[value] for value in y], np.array_split(y, 7), batches):
        assert list(fields_of(last(bz.stream(model, given))).values()) == whole
    assert list(fields_of(model).values()) != whole


def test_every_model_on_the_way_is_the_posterior_so_far():
    streamed = list(bz.stream(BetaBernoulli(2, 3), np.array_split(TOSSES, 4)))
    assert streamed == [bz.update(BetaBernoulli(2, 3), TOSSES[:end]) for end in (10, 20, 30, 40)]


def test_forgotten_tosses_count_less():
    batches, forget = np.array_split(TOSSES, 5), 0.7
    weights = forget ** np.arange(4, -1, -1.0)
    found = last(bz.stream(BetaBernoulli(2, 3), batches, forget))
    assert found.a == pytest.approx(2 + sum(w * batch.sum() for w, batch in zip(weights, batches, strict=True)))
    assert found.b == pytest.approx(3 + sum(w * (1 - batch).sum() for w, batch in zip(weights, batches, strict=True)))
    zeros = last(bz.stream(BetaBernoulli(7, 3), [[0]] * 500, forget=0.9))
    assert (zeros.a, zeros.b) == (7, pytest.approx(3 + 1 / (1 - 0.9)))  # the prior does not fade; a geometric series


def test_forgotten_measurements_count_in_the_scatter_too():
    batches, forget = np.array_split(SPEEDS, 5), 0.7
    weights = np.repeat(forget ** np.arange(4, -1, -1.0), 8)
    found = last(bz.stream(NormalGamma(1e6, 0.1, 2, 5000), batches, forget=forget))
    mean = np.average(SPEEDS, weights=weights)
    squares = np.sum(weights * (SPEEDS - mean) ** 2) + 0.1 * weights.sum() / (0.1 + weights.sum()) * (mean - 1e6) ** 2
    assert found.alpha0 == pytest.approx(2 + weights.sum() / 2)
    assert found.beta0 == pytest.approx(5000 + squares / 2)
    assert found.mu0 == pytest.approx(np.average([mean, 1e6], weights=[weights.sum(), 0.1]), rel=1e-12)


def test_batches_may_be_files_arrays_and_data(written):
    path = written("day,won\nMo,yes\nTu,no\n", "first.csv")
    options = {"column": "won", "positive": "yes"}
    batches = [path, {"won": ["no", "yes"]}, bz.read(BetaBernoulli, {"won": ["yes"]}, **options)]
    assert last(bz.stream(BetaBernoulli(), batches, **options)) == BetaBernoulli(4, 3)


def test_batches_are_taken_one_at_a_time():
    batches = iter([[1], [0], [1]])
    models = bz.stream(BetaBernoulli(), batches)
    assert next(models) == BetaBernoulli(2, 1)
    assert next(batches) == [0]  # which nobody has taken yet
    assert next(models) == BetaBernoulli(3, 1)


def test_labels_keep_their_places():
    polls = bz.find("dirichlet_multinomial")()
    whole = last(bz.stream(polls, [["b", "c"], ["a", "b"]], categories=["a", "b", "c"]))
    assert whole.alpha == (2, 3, 2)
    models = bz.stream(polls, [["b", "c"], ["a", "b"]])
    next(models)
    once = bz.update(polls, ["b", "c", "c"])
    assert once.labels == {"category": ("b", "c")}
    refusal = ("labels_differ", "category", "'b'", "'c'")
    for use in (lambda _: next(models), lambda rows: bz.update(once, rows), lambda rows: bz.fit(once, rows, "exact")):
        with raises(bz.InputError, *refusal):
            use(["a", "b"])
    assert bz.update(once, ["c", "b"]).alpha == (3, 4)
    assert once == type(once)(alpha=[2, 3])  # labels are no part of the prior


def test_columns_keep_their_places():
    prior = bz.find("normal_inverse_wishart")()
    once = bz.update(prior, {"height": [1.0, 2.0, 4.0], "weight": [10.0, 30.0, 20.0]})
    swapped = {"weight": [11.0, 12.0], "height": [3.0, 2.0]}
    with raises(bz.InputError, "labels_differ", "'height'", "'weight'"):
        bz.update(once, swapped)
    named = bz.update(once, swapped, columns=["height", "weight"])
    assert named.mu0 == bz.update(once, {"height": [3.0, 2.0], "weight": [11.0, 12.0]}).mu0


def test_rates_of_forgetting_models_and_batches_that_are_refused():
    for forget in (0, -0.1, 1.0001, float("nan"), float("inf"), "0.5", None):
        with raises(bz.InputError, "wrong_type", "0", "1"):
            bz.stream(BetaBernoulli(), [[1]], forget=forget)
    for batches in ("coins.csv", {"y": [1, 0]}, bz.read(BetaBernoulli, [1, 0])):
        with raises(bz.InputError, "not_batches"):
            bz.stream(BetaBernoulli(), batches)
    for call in (bz.update, bz.stream):
        with raises(bz.InputError, "no_closed_form"):
            call(Opaque(), [[1.0]])
    models = bz.stream(BetaBernoulli(), [[1], [2]])
    next(models)  # a bad batch is refused when its turn comes
    with pytest.raises(bz.InputError):
        next(models)


def test_statistics_that_cannot_be_weighted_are_found_out():
    @dataclass(frozen=True)
    class Mean(Stats):  # inherits a `discounted` that scales the mean as well
        n: float = 0.0
        mean: float = 0.0

        def __add__(self, other):
            n = self.n + other.n
            return Mean(n, (self.n * self.mean + other.n * other.mean) / n)

    class Careless(GaussianMean):
        def statistics(self, data):
            return Mean(len(data["y"]), float(np.mean(data["y"])))

        def updated(self, stats):
            return replace(self, m0=stats.mean, s0=1 / stats.n)

    message = ("bad_model_step", "2")
    with raises(bz.NumericalError, *message):
        next(bz.stream(Careless(), [[1.0, 2.0]], forget=0.5))


def test_examples_with_other_labels_are_no_cases_of_an_updated_model():
    Coin = bz.find("beta_bernoulli")
    updated = bz.update(Coin(a=1, b=1), bz.read(Coin, {"won": ["yes", "no"]}, positive="yes"))
    assert {case.data.source for case in cases_of(Coin(a=1, b=1))} >= {"paris_births.csv"}
    assert "paris_births.csv" not in {case.data.source for case in cases_of(updated)}
