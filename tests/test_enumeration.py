"""The sum over all assignments: against integrals, loops and independent identities."""

import itertools
import math
from unittest.mock import Mock

import numpy as np
import pytest
from scipy import stats
from scipy.special import binom, logsumexp

import bayeszoo as bz
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.gate import passed
from bayeszoo.inference.methods import enumeration
from bayeszoo.inference.methods.enumeration import Enumeration, enumerate_posterior, most_rows, run
from bayeszoo.inference.problem import Problem
from tests.quick import zoo_with
from tests.refusals import raises

latent_models = zoo_with("latent_models")
WORDS = np.array([[1, 0], [1, 1], [0, 2], [1, 0], [0, 1]])  # of two, in five documents
COIN = np.array([[1, 0], [1, 0], [0, 1], [1, 0], [0, 1]])  # documents of one word


def unigrams(alpha=1.0, a=1.0, b=1.0):
    return bz.find("multinomial_mixture")(2, alpha, (a, b))


def poisson(*fields):
    return bz.find("toy_poisson_mixture")(*fields)


def documents(values):
    return {"counts": np.asarray(values), "word": np.array(["yes", "no"])}


def counts(*values):
    return {"y": np.array(values, dtype=np.int64)}


class Quadrature:
    """Two topics of two words, integrated by Gauss and Legendre: exact, as the integrand is a polynomial."""

    def __init__(self, model, values):
        x, weight = np.polynomial.legendre.leggauss(12)
        self.w, *self.p = (axis.ravel() for axis in np.meshgrid(*[(x + 1) / 2] * 3, indexing="ij"))
        weights = np.prod(np.meshgrid(*[weight / 2] * 3, indexing="ij"), axis=0).ravel()
        prior = stats.beta.pdf(self.w, model.alpha, model.alpha) * stats.beta.pdf(self.p, *model.eta).prod(axis=0)
        self.joint = weights * prior * np.prod([self.row(y) for y in values], axis=0)
        self.evidence = self.joint.sum()

    def component(self, k, y):
        return (self.w if k == 0 else 1 - self.w) * self.p[k] ** y[0] * (1 - self.p[k]) ** y[1]

    def row(self, y):
        return self.component(0, y) + self.component(1, y)

    def mean(self, function):
        return np.sum(self.joint * function) / self.evidence

    def same(self, y, z):
        both = sum(self.component(k, y) * self.component(k, z) for k in range(2))
        return self.mean(both / (self.row(y) * self.row(z)))


@pytest.mark.parametrize("fields", [(1, 1, 1), (2, 1, 3)])
def test_evidence_coclustering_and_prediction_are_integrals_over_the_parameters(fields):
    model = unigrams(*fields)
    for values in (COIN, WORDS[:4]):
        exact, found = Quadrature(model, values), Enumeration.of(model, documents(values))
        assert found.log_evidence == pytest.approx(math.log(exact.evidence), abs=1e-12)
        for i, j in itertools.combinations(range(len(values)), 2):
            assert found.coclustering[i, j] == pytest.approx(exact.same(values[i], values[j]), abs=1e-12)
        new = np.array([[1, 0], [0, 1], [2, 0], [1, 2]])
        expected = [math.log(exact.mean(exact.row(y))) for y in new]
        assert found.log_predictive(documents(new)) == pytest.approx(expected, abs=1e-12)


def test_a_wrong_density_of_an_assignment_is_seen_by_the_integral():
    class Flat(type(unigrams())):
        """Weights integrated as if all assignments were equally probable."""

        def log_joint(self, assignments, data):
            n = (assignments == 0).sum(axis=1)
            urn = stats.betabinom.logpmf(n, len(COIN), self.alpha, self.alpha) - np.log(binom(len(COIN), n))
            return super().log_joint(assignments, data) - urn - len(COIN) * math.log(self.K)

    exact = math.log(Quadrature(unigrams(), COIN).evidence)
    assert abs(Enumeration.of(Flat(2, 1, (1, 1)), documents(COIN)).log_evidence - exact) > 0.1


def loop(model, y):
    """Log p(y, z) of every z: an urn for the labels, negative binomials for the counts, one row after the other."""
    log_p = {}
    for z in itertools.product(range(model.K), repeat=len(y)):
        log_p[z], n, events = 0.0, [0] * model.K, [0] * model.K
        for label, count in zip(z, y, strict=True):
            rate = model.b + n[label]
            log_p[z] += math.log((model.alpha + n[label]) / (model.K * model.alpha + sum(n)))
            log_p[z] += stats.nbinom.logpmf(count, model.a + events[label], rate / (rate + 1))
            n[label], events[label] = n[label] + 1, events[label] + count
    return log_p


@pytest.mark.parametrize("chunk", [2**18, 1, 37])
def test_every_quantity_is_that_of_a_loop_over_assignments(chunk, monkeypatch):
    monkeypatch.setattr(enumeration, "_CELLS", chunk)
    model, y = poisson(3, 0.7, 2.0, 0.5), (0, 5, 1, 9)
    exact = loop(model, y)
    log_evidence = logsumexp(list(exact.values()))
    p = {z: math.exp(value - log_evidence) for z, value in exact.items()}
    found = Enumeration.of(model, counts(*y))
    assert found.log_evidence == pytest.approx(log_evidence, rel=1e-13)
    assert found.assignments().tolist() == [list(z) for z in exact]
    assert found.probabilities == pytest.approx(list(p.values()), rel=1e-11)
    same = [[sum(v for z, v in p.items() if z[i] == z[j]) for j in range(4)] for i in range(4)]
    assert found.coclustering == pytest.approx(np.array(same), abs=1e-13)
    occupied = [sum(v for z, v in p.items() if len(set(z)) == m) for m in range(4)]
    assert found.number_of_components == pytest.approx(np.array(occupied), abs=1e-13)
    assert found.component_probabilities == pytest.approx(np.full((4, 3), 1 / 3), abs=1e-13)
    reporter = Mock()
    Enumeration.of(model, counts(*y), reporter)
    assert reporter.progress.call_args.args == ("assignments", 81, 81)


def test_one_component_is_the_conjugate_family_of_any_number_of_rows():
    y = np.random.default_rng(1).poisson(3.0, 5000)
    family = bz.find("gamma_poisson")(2.0, 0.5)
    tree = bz.fit(family, y, "exact", seed=1)
    found = enumerate_posterior(poisson(1, 1.0, 2.0, 0.5), y)
    assert found.log_evidence == pytest.approx(tree["exact"].attrs["log_evidence"], rel=1e-11)
    assert found.assignments().shape == (1, 5000)
    score = bz.predict(tree, [4, 0])["log_score"].to_numpy()
    assert found.log_predictive([4, 0]) == pytest.approx(score, abs=1e-8)


@pytest.mark.parametrize("K", [1, 3])
def test_no_rows_have_evidence_one_and_the_prior(K):
    model, none = poisson(K, 1.0, 4.0, 2.0), counts()
    found = Enumeration.of(model, none)
    assert found.log_evidence == pytest.approx(0, abs=1e-13)
    assert found.number_of_components.tolist() == [1.0] + [0.0] * K
    assert found.coclustering.shape == (0, 0)
    assert passed(found.checks())
    rates = found.draw((2000,), np.random.default_rng(0))["rates"]
    assert stats.kstest(rates[:, -1], stats.gamma(4, scale=0.5).cdf).pvalue > 1e-3


def largest_z(draws, exact):
    drawn = label_free(draws["weights"][..., 0], np.moveaxis(draws["topics"][..., 0], -1, 0))
    pairs = zip(drawn, label_free(exact.w, exact.p), strict=True)
    return max(abs(mine.mean() - exact.mean(law)) / (mine.std() / math.sqrt(mine.size)) for mine, law in pairs)


def label_free(w, p):
    """Return what the weights and the probabilities of the components say whatever their order, and a weight."""
    return w**2 + (1 - w) ** 2, w * p[0] + (1 - w) * p[1], w * p[0] ** 2 + (1 - w) * p[1] ** 2, w


def test_draws_are_those_of_the_posterior():
    model = unigrams(2, 1, 3)
    data = bz.read(model, documents(COIN))
    exact = Quadrature(model, COIN)
    outcome = run(Problem(model, data, np.random.default_rng(3)), draws=5000, chains=4)
    assert {name: values.shape[2:] for name, values in outcome.draws.items()} == {"weights": (2,), "topics": (2, 2)}
    assert largest_z(outcome.draws, exact) < 4
    assert passed(outcome.checks)
    assert outcome.facts == {"log_evidence": pytest.approx(math.log(exact.evidence), abs=1e-12), "assignments": 32}
    again = run(Problem(model, data, np.random.default_rng(3)), draws=5000, chains=4)
    assert (again.draws["topics"] == outcome.draws["topics"]).all()
    chains = np.std(outcome.draws["weights"][..., 0], axis=1) / math.sqrt(5000)
    assert (np.abs(outcome.draws["weights"][..., 0].mean(axis=1) - 0.5) < 4 * chains).all()  # no chain has one label


def test_draws_by_a_wrong_rule_are_seen():
    model = unigrams(2, 1, 3)

    class EveryAssignmentAlike(Enumeration):
        @property
        def probabilities(self):
            return np.full(len(self.log_joint), 1 / len(self.log_joint))

    class RowsInAnotherOrder(type(model)):
        def posterior_given(self, assignment, data):
            return super().posterior_given(assignment[::-1], data)

    exact, other = Quadrature(model, COIN), RowsInAnotherOrder(2, 2, (1, 3))
    for wrong in (EveryAssignmentAlike.of(model, documents(COIN)), Enumeration.of(other, documents(COIN))):
        assert largest_z(wrong.draw((4, 5000), np.random.default_rng(3)), exact) > 6


# What cannot be enumerated, and what is broken


def test_too_many_rows_are_refused_before_any_work(monkeypatch):
    assert [most_rows(K) for K in (2, 3, 10, 2_000_000, 2_000_001)] == [20, 13, 6, 1, 0]
    model = poisson(2, 1.0, 1.0, 1.0)
    monkeypatch.setattr(type(model), "log_joint", None)
    message = ("too_large", "21", "assignments", "2000000")
    with raises(InputError, *message):
        enumerate_posterior(model, np.arange(21))
    with raises(InputError, "too_large", "20"):
        run(Problem(model, bz.read(model, np.arange(100)), np.random.default_rng(0)))
    monkeypatch.undo()
    monkeypatch.setattr(enumeration, "MOST", 16)  # one row too many to predict
    with raises(InputError, "too_large", "5"):
        enumerate_posterior(poisson(), [1, 2, 3, 4]).log_predictive([1])


def test_other_models_and_rows_without_outcome_are_refused():
    with raises(InputError, "not_enumerable", "gamma_poisson"):
        enumerate_posterior(bz.find("gamma_poisson")(), [1, 2])
    with raises(InputError, "not_a_model"):
        enumerate_posterior(bz.find("gamma_poisson"), [1, 2])
    found = enumerate_posterior(poisson(), {"y": [1, 2], "exposure": [1.0, 2.0]})
    with raises(InputError, "missing_outcome"):
        found.log_predictive({"exposure": [1.0]})
    with raises(InputError, "missing_column", "'yes'"):
        enumerate_posterior(unigrams(), documents(WORDS)).log_predictive({"a": [1], "b": [0]})


def test_impossible_assignments_count_nothing_and_undefined_ones_are_an_error():
    class Odd(type(poisson())):
        """The first row is of the first component; what else, the test says."""

        _other = -np.inf

        def log_joint(self, assignments, data):
            return np.where(assignments[:, 0] == 0, super().log_joint(assignments, data), self._other)

    model = Odd(2, 1.0, 1.0, 1.0)
    found = Enumeration.of(model, counts(1, 4, 2))
    half = Enumeration.of(poisson(2, 1.0, 1.0, 1.0), counts(1, 4, 2))
    assert found.log_evidence == pytest.approx(half.log_evidence - math.log(2), rel=1e-13)
    assert not passed(found.checks())  # as it says that its components are exchangeable
    assert [check.name for check in found.checks() if not check.passed] == ["label_asymmetry"]
    assert (found.draw((500,), np.random.default_rng(0))["weights"][:, 0]).mean() > 0.5
    for value in (np.nan, np.inf):
        Odd._other = value
        with raises(NumericalError, "not_finite", "log_joint"):
            Enumeration.of(model, counts(1, 4, 2))
    Odd.log_joint = lambda self, assignments, data: np.full(len(assignments), -np.inf)
    with raises(NumericalError, "impossible_data", "0"):
        Enumeration.of(model, counts(1, 4, 2))


def test_probabilities_that_do_not_add_up_fail_the_gate():
    class Twice(Enumeration):
        """One assignment is counted twice."""

        @property
        def probabilities(self):
            p = np.exp(self.log_joint - self.log_evidence)
            return np.append(p[:-1], 2 * p[-1])

    failed = [check.name for check in Twice.of(poisson(), counts(1, 4)).checks() if not check.passed]
    assert "probability_sum" in failed
