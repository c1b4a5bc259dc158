"""The conjugate families where naive formulas lose their digits, and on data that break optimizers."""

import math

import mpmath
import numpy as np
import pytest
from scipy import special, stats

import bayeszoo as bz
from bayeszoo.inference.engine.density import Density
from bayeszoo.model.fields import in_units
from bayeszoo.results.summary import failures_of
from tests.quick import quick_first

GaussianMean, GaussianPrecision = bz.find("gaussian_mean"), bz.find("gaussian_precision")
GammaPoisson, NormalGamma = bz.find("gamma_poisson"), bz.find("normal_gamma")
DirichletMultinomial, MarkovChain = bz.find("dirichlet_multinomial"), bz.find("markov_chain")
NormalInverseWishart = bz.find("normal_inverse_wishart")

MEASURED = [
    GaussianMean(0.5, 3.0, 2.0),
    GaussianPrecision(1.5, 2.0, 0.25),
    NormalGamma(0.5, 0.3, 1.5, 2.0),
    NormalInverseWishart((0.5, -1.0, 0.25), 0.3, 4.5, ((2.0, 0.3, 0.1), (0.3, 1.0, 0.0), (0.1, 0.0, 3.0))),
]
LABELS = np.array(["a", "b", "c"])
CHAIN = {"next": np.array([1, 2]), "previous": np.array([0, 1]), "context": LABELS, "symbol": LABELS}


@pytest.fixture(autouse=True)
def _digits():
    with mpmath.workdps(60):
        yield


def named(value):
    return getattr(value, "name", None) or (value if isinstance(value, str) else None)


def measurements(model, size=200):
    """Rows that are exact in float64, and are so too after adding 1e9."""
    columns = (3,) if isinstance(model, NormalInverseWishart) else ()
    values = np.round(np.random.default_rng(1).normal(0.3, 1.7, (size, *columns)) * 2**20) / 2**20
    return {"Y": values, "column": LABELS} if columns else {"y": values}


# Numbers far from zero, in other units, and many of them


@pytest.mark.parametrize("model", MEASURED, ids=named)
def test_rows_near_1e9_have_the_evidence_that_they_have_near_zero(model):
    data = measurements(model)
    far = in_units(model, 1.0, 1e9)
    moved = model.inputs.in_units(data, 1.0, 1e9)
    expected = model.log_evidence(model.statistics(data))
    assert far.log_evidence(far.statistics(moved)) == pytest.approx(expected, rel=1e-9)
    first, rest = model.inputs.split(moved, 1)
    second, third = model.inputs.split(rest, 60)
    streamed = far.statistics(first) + far.statistics(second) + far.statistics(third)
    assert far.log_evidence(streamed) == pytest.approx(expected, rel=1e-9)
    less = streamed - far.statistics(first)
    assert far.log_evidence(less) == pytest.approx(far.log_evidence(far.statistics(rest)), rel=1e-9)
    for name, marginal in model.posterior(model.statistics(data)).items():
        there = far.posterior(streamed)[name]
        shift = 1e9 if name == "mu" else 0.0
        assert there.mean() - shift == pytest.approx(marginal.mean(), abs=3e-7, rel=1e-8)  # 1e9 has 1e-7 between floats
        assert there.std() == pytest.approx(marginal.std(), rel=1e-8)


@pytest.mark.parametrize("factor", [1e12, 1e-12])
@pytest.mark.parametrize("model", MEASURED, ids=named)
def test_units_of_1e12(model, factor):
    data = measurements(model)
    other = in_units(model, factor, 0.0)
    moved = model.inputs.in_units(data, factor, 0.0)
    change = -model.inputs.outcome(data).size * math.log(factor)
    expected = model.log_evidence(model.statistics(data)) + change
    assert other.log_evidence(other.statistics(moved)) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("method", ["exact", "map", "laplace", pytest.param("nuts", marks=pytest.mark.slow)])
def test_fits_in_units_of_1e12_are_those_in_units_of_one(method):
    """PyMC's own NUTS reports 0.016 for -2 there."""
    data = measurements(NormalGamma())["y"][:20]
    near, far = (bz.summarize(bz.fit(NormalGamma.weak({"y": y}), y, method, seed=1)) for y in (data, 1e12 * data))
    for statistic, factor in (("mean", 1.0), ("sd", 1.0), ("q975", 1.0)):
        for name, units in (("mu", 1e12), ("lam", 1e-24)):
            expected = near[name][statistic]
            if expected is not None:
                from_draws = method in ("laplace", "nuts")  # other data have other draws
                tolerance = 0.2 * near[name]["sd"] if from_draws else 1e-4 * abs(expected)
                assert far[name][statistic] == pytest.approx(factor * units * expected, abs=units * tolerance)


def exact_sums(y):
    """Return count, sum and sum of squares with 64 bits of mantissa, by another route than ours."""
    y = y.astype(np.longdouble)
    return len(y), mpmath.mpf(str(y.sum())), mpmath.mpf(str(np.square(y).sum()))


@pytest.mark.slow
def test_ten_million_measurements():
    y = np.random.default_rng(0).normal(3.0, 2.0, 10_000_000)
    n, total, squares = exact_sums(y)
    m0, s0, sigma = (mpmath.mpf(v) for v in (1.0, 5.0, 2.0))
    spread = sigma**2 + n * s0**2
    about = squares - 2 * m0 * total + n * m0**2
    quadratic = (about - s0**2 * (total - n * m0) ** 2 / spread) / sigma**2
    known = -(n * mpmath.log(2 * mpmath.pi * sigma**2) + mpmath.log(spread / sigma**2) + quadratic) / 2
    model = GaussianMean(1.0, 5.0, 2.0)
    assert model.log_evidence(model.statistics({"y": y})) == pytest.approx(float(known), rel=1e-12)
    a, b, mu, kappa = (mpmath.mpf(v) for v in (1.5, 2.0, 1.0, 0.1))
    later_a, later_b = a + mpmath.mpf(n) / 2, b + about / 2 - (total - n * mu) ** 2 / (2 * (kappa + n))
    both = mpmath.loggamma(later_a) - mpmath.loggamma(a) + a * mpmath.log(b) - later_a * mpmath.log(later_b)
    both += mpmath.log(kappa / (kappa + n)) / 2 - mpmath.mpf(n) / 2 * mpmath.log(2 * mpmath.pi)
    model = NormalGamma(1.0, 0.1, 1.5, 2.0)
    assert model.log_evidence(model.statistics({"y": y})) == pytest.approx(float(both), rel=1e-12)


@pytest.mark.slow
def test_ten_million_counts_and_steps():
    y = np.random.default_rng(0).integers(0, 3, 10_000_000)
    counts = np.bincount(y).tolist()
    model = DirichletMultinomial((0.5, 1.0, 4.0))
    found = model.log_evidence(model.statistics({"y": y, "category": LABELS}))
    assert found == pytest.approx(float(log_dirichlet(model.alpha, counts)), rel=1e-12)
    steps = {"next": y[1:], "previous": y[:-1], "context": LABELS, "symbol": LABELS}
    pairs = np.bincount(3 * y[:-1] + y[1:], minlength=9).reshape(3, 3).tolist()
    rows = [log_dirichlet([0.5] * 3, row) for row in pairs]
    found = MarkovChain(0.5).log_evidence(MarkovChain(0.5).statistics(steps))
    assert found == pytest.approx(float(sum(rows)), rel=1e-12)
    events = GammaPoisson(2.0, 3.0)
    base = -counts[2] * mpmath.log(2)  # 0! = 1! = 1, 2! = 2
    total = counts[1] + 2 * counts[2]
    expected = mpmath.loggamma(2 + total) - mpmath.loggamma(2) + 2 * mpmath.log(3) + base
    expected -= (2 + total) * mpmath.log(3 + 10_000_000)
    assert events.log_evidence(events.statistics({"y": y})) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.slow
def test_three_million_rows_of_several_numbers_in_batches():
    rows = np.random.default_rng(0).normal(size=(3_000_000, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]]) + 1e6
    model = NormalInverseWishart((1e6, 1e6), 0.3, 4.0, ((1.0, 0.2), (0.2, 2.0)))
    whole = model.statistics({"Y": rows, "column": LABELS[:2]})
    batches = [model.statistics({"Y": part, "column": LABELS[:2]}) for part in np.array_split(rows, 7)]
    streamed = sum(batches[1:], batches[0])
    assert model.log_evidence(streamed) == pytest.approx(model.log_evidence(whole), rel=1e-12)
    assert whole.scatter == pytest.approx(np.cov(rows.T, bias=True) * len(rows), rel=1e-9)
    by_batch, before = [], model
    for stats_of_batch in batches:
        by_batch.append(before.log_evidence(stats_of_batch))
        before = before.updated(stats_of_batch)
    assert math.fsum(by_batch) == pytest.approx(model.log_evidence(whole), rel=1e-9)


# Counts


def log_dirichlet(alpha, counts):
    """Log B(alpha + counts) - log B(alpha) with 60 digits."""
    alpha = [mpmath.mpf(a) for a in alpha]
    each = [mpmath.loggamma(a + n) - mpmath.loggamma(a) for a, n in zip(alpha, counts, strict=True)]
    return mpmath.fsum(each) - mpmath.loggamma(sum(alpha) + sum(counts)) + mpmath.loggamma(sum(alpha))


@pytest.mark.parametrize("alpha", [1e-3, 1e-12, 1e12])
@pytest.mark.parametrize("counts", [[0, 0, 1], [5, 0, 3], [10**12, 3, 0], [10**12, 10**12, 10**12]])
def test_evidence_of_weak_and_strong_priors_and_huge_counts(alpha, counts):
    expected = log_dirichlet([alpha] * 3, counts)
    model, data = DirichletMultinomial(alpha), {"counts": np.array([counts]), "category": LABELS}
    found = model.statistics(data)
    assert model.log_evidence(found) == pytest.approx(float(expected), rel=1e-9, abs=1e-11)
    orders = mpmath.loggamma(sum(counts) + 1) - sum(mpmath.loggamma(n + 1) for n in counts)
    in_any_order = model.log_evidence_counts(found)
    assert np.isnan(in_any_order) or in_any_order == pytest.approx(float(expected + orders), rel=1e-8, abs=1e-9)
    rows = type(MarkovChain(1.0).statistics({k: np.array([0, 1]) for k in ("next", "previous", "context", "symbol")}))
    table = np.array([counts, counts[::-1], [0, 0, 0]], dtype=float)
    by_row = 2 * expected
    assert MarkovChain(alpha).log_evidence(rows(table)) == pytest.approx(float(by_row), rel=1e-9, abs=1e-11)


@pytest.mark.parametrize(("y", "exposure"), [(10**12, 1.0), (3, 1e-12), (0, 1e12), (10**12, 1e12), (7, 1e100)])
@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.01, 1e-3), (1e12, 1e12)])
def test_evidence_of_huge_counts_and_exposures(y, exposure, a, b):
    model, data = GammaPoisson(a, b), {"y": np.array([y]), "exposure": np.array([exposure])}
    e, a, b = (mpmath.mpf(v) for v in (exposure, a, b))
    mass = mpmath.loggamma(a + y) - mpmath.loggamma(a) - mpmath.loggamma(y + 1)
    mass += a * mpmath.log(b / (b + e)) + y * mpmath.log(e / (b + e))
    found = model.log_evidence(model.statistics(data))
    predicted = model.predictive(model.statistics({"y": np.array([], int)}), data).logpmf(data["y"])[0]
    assert predicted == pytest.approx(float(mass), rel=1e-9, abs=1e-9)
    lost = 16 * np.finfo(float).eps * max(1.0, float(special.xlogy(y, y)), y * abs(math.log(exposure)))
    assert found == pytest.approx(float(mass), rel=1e-9, abs=max(1e-9, lost))


# Awkward data: every method says ok and gives numbers, or refuses


def vectors(rows):
    return {"Y": np.array(rows, dtype=float), "column": LABELS[: len(rows[0])]}


AWKWARD = {
    "one measurement": (GaussianMean, {"y": [3.5]}),
    "equal measurements far off": (GaussianMean, {"y": [1e9] * 5}),
    "no error at all": (GaussianPrecision(1.0, 1.0, 7.0), {"y": [7.0] * 4}),
    "one of unknown mean and precision": (NormalGamma, {"y": [3.5]}),
    "equal of unknown mean and precision": (NormalGamma, {"y": [1e9] * 5}),
    "one vector": (NormalInverseWishart, vectors([[1.0, 2.0]])),
    "a constant column": (NormalInverseWishart, vectors([[1.0, 2.0], [2.0, 2.0], [4.0, 2.0]])),
    "fewer rows than columns": (NormalInverseWishart, vectors([[1.0, 2.0, 3.0], [2.0, 2.5, 1.0]])),
    "columns alike": (NormalInverseWishart, vectors([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]])),
    "columns of 1e9 and 1e-9": (NormalInverseWishart, vectors([[1e9, 1e-9], [1e9 + 2, 3e-9], [1e9 + 3, -1e-9]])),
    "no events": (GammaPoisson, {"y": [0, 0, 0]}),
    "no events under a prior without a mode": (GammaPoisson(0.1, 1.0), {"y": [0, 0, 0]}),
    "events in no time": (GammaPoisson, {"y": [3, 4], "exposure": [1e-12, 1e-12]}),
    "a trillion events": (GammaPoisson, {"y": [10**12], "exposure": [1e-3]}),
    "one category seen, weakly": (DirichletMultinomial(1e-3), {"y": np.array([0, 0]), "category": LABELS}),
    "a trillion of one category": (DirichletMultinomial, {"counts": np.array([[10**12, 1, 0]]), "category": LABELS}),
    "a context nothing follows": (MarkovChain, CHAIN),
}


def awkward_fits():
    """Yield each case with each method; approximations, which compile a density, are slow but for the least model."""
    for which in AWKWARD:
        for method in ("exact", "mle", "map", "laplace", "advi"):
            is_slow = method in ("laplace", "advi") and which != "one measurement"
            yield pytest.param(which, method, marks=[pytest.mark.slow] * is_slow)


@pytest.mark.parametrize(("which", "method"), list(awkward_fits()))
def test_awkward_data_give_numbers_or_a_reason(which, method):
    made, data = awkward(which)
    tree = fit_or_reason(made, data, method)
    if isinstance(tree, str):
        reasons = "no mode", "no joint mode", "no maximum-likelihood", "no Laplace approximation", "is not finite"
        assert any(reason in tree for reason in reasons)
        assert method != "exact"
    elif tree.attrs["status"] != "ok":
        assert any("must be" in line for line in failures_of(tree))
    else:
        for name, marginal in made.posterior(made.statistics(data)).items():
            draws = tree["posterior"][name].to_numpy()
            assert not np.isnan(draws).any()
            if method in ("exact", "laplace", "advi"):  # where the posterior is
                middle = np.median(draws, axis=(0, 1))
                assert np.all(marginal.ppf(1e-6) <= np.maximum(middle, np.finfo(np.float64).tiny))  # where SciPy stops
                assert np.all(middle <= marginal.ppf(1 - 1e-6))


def fit_or_reason(model, data, method):
    """Return the fit, or why there is none."""
    try:
        return bz.fit(model, data, method, seed=1)
    except bz.NumericalError as error:
        return str(error)


@pytest.mark.parametrize("which", AWKWARD)
def test_awkward_data_have_their_exact_answer(which):
    model, data = AWKWARD[which]
    rows = bz.read(model, data)
    made = model.weak(rows) if isinstance(model, type) else model
    assert bz.fit(made, rows, "exact", seed=1).attrs["status"] == "ok"


FAR = ["no error at all", "equal of unknown mean and precision", "events in no time", "one category seen, weakly"]


@pytest.mark.parametrize("size", [30.0, 200.0])
@pytest.mark.parametrize("which", quick_first([*FAR, "a context nothing follows"]))
def test_the_sampled_density_has_a_gradient_far_out(which, size):
    density = sampled_density(which)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (10, density.size))
    for direction in [*np.eye(density.size), *-np.eye(density.size), *signs]:
        assert_finite(density, density.start + size * direction)


@pytest.mark.slow
def test_the_sampled_density_of_a_covariance_has_a_gradient_far_out():
    """Each coordinate by itself, and all together until Sigma has no inverse in float64."""
    density = sampled_density("a constant column")
    for direction in [*np.eye(density.size), *-np.eye(density.size)]:
        assert_finite(density, density.start + 30 * direction)
    for direction in np.random.default_rng(0).choice([-1.0, 1.0], (20, density.size)):
        assert_finite(density, density.start + 10 * direction)


def awkward(which):
    model, data = AWKWARD[which]
    data = bz.read(model, data)
    return (model.weak(data) if isinstance(model, type) else model), data


def sampled_density(which):
    made, data = awkward(which)
    return Density(made.compressed(made.statistics(data)))


def assert_finite(density, x):
    value, slope = density.joint(x)
    assert math.isfinite(value)
    assert np.isfinite(slope).all()


def test_the_t_of_one_row_is_scipys_whatever_its_size():
    """A predictive that is a thousand scales off is small, not nothing."""
    model = NormalInverseWishart((0.0, 0.0), 1.0, 4.0, ((1.0, 0.0), (0.0, 1.0)))
    for place in (1e3, 1e9, 1e100):
        row = {"Y": np.array([[place, 0.0]]), "column": LABELS[:2]}
        expected = stats.multivariate_t([0.0, 0.0], np.eye(2) * 2 / 3, df=3).logpdf(row["Y"][0])
        assert model.log_evidence(model.statistics(row)) == pytest.approx(expected, rel=1e-12)
