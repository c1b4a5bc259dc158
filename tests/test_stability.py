"""The conjugate families where naive formulas lose their digits, and on data that break optimizers."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import special, stats

import bayeszoo as bz
from bayeszoo.compile.density import Density
from bayeszoo.model.fields import in_units
from bayeszoo.results.summary import failures_of
from tests.reading import by_name

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


def measurements(model, size=200):
    """Rows that are exact in float64, and are so too after adding 1e9."""
    columns = (3,) if isinstance(model, NormalInverseWishart) else ()
    values = np.round(np.random.default_rng(1).normal(0.3, 1.7, (size, *columns)) * 2**20) / 2**20
    return {"Y": values, "column": LABELS} if columns else {"y": values}


# Numbers far from zero, in other units, and many of them


@pytest.mark.parametrize(("factor", "shift"), [(1.0, 1e9), (1e12, 0.0), (1e-12, 0.0)])
@pytest.mark.parametrize("model", MEASURED, ids=str)
def test_evidence_and_marginals_of_rows_near_1e9_and_in_units_of_1e12_are_those_near_zero(model, factor, shift):
    data = measurements(model)
    other, moved = in_units(model, factor, shift), model.inputs.in_units(data, factor, shift)
    change = -model.inputs.outcome(data).size * math.log(factor)
    expected = model.log_evidence(model.statistics(data)) + change
    (first, rest), pooled = model.inputs.split(moved, 60), other.statistics(moved)
    streamed = other.statistics(first) + other.statistics(rest)
    less = streamed - other.statistics(first)
    rel = 1e-9 if shift else 1e-11
    assert [other.log_evidence(known) for known in (pooled, streamed)] == pytest.approx([expected] * 2, rel=rel)
    assert other.log_evidence(less) == pytest.approx(other.log_evidence(other.statistics(rest)), rel=rel)
    if shift:
        for name, marginal in model.posterior(model.statistics(data)).items():
            there, offset = other.posterior(streamed)[name], shift if name == "mu" else 0.0
            # 1e9 has 1e-7 between floats
            assert there.mean() - offset == pytest.approx(marginal.mean(), abs=3e-7, rel=1e-8)
            assert there.std() == pytest.approx(marginal.std(), rel=1e-8)


@pytest.mark.parametrize("method", ["exact", "map", "laplace", pytest.param("nuts", marks=pytest.mark.slow)])
def test_fits_in_units_of_1e12_are_those_in_units_of_one(method):
    """PyMC's own NUTS reports 0.016 for -2 there."""
    data = measurements(NormalGamma())["y"][:20]
    near, far = (bz.summarize(bz.fit(NormalGamma.weak({"y": y}), y, method, seed=1)) for y in (data, 1e12 * data))
    for name, units in (("mu", 1e12), ("lam", 1e-24)):
        for statistic in ("mean", "sd", "q975"):
            if (expected := near[name][statistic]) is not None:
                from_draws = method in ("laplace", "nuts")  # other data have other draws
                tolerance = 0.2 * near[name]["sd"] if from_draws else 1e-4 * abs(expected)
                assert far[name][statistic] == pytest.approx(units * expected, abs=units * tolerance)


# Oracles in rational arithmetic


def far(offset, sd=1.0):
    return offset + sd * np.random.default_rng(4).normal(size=7)


def exactly(y):
    """Return the number of rows, their mean and their scatter, computed without rounding."""
    values = [Fraction(one) for one in y.tolist()]
    mean = sum(values) / len(values)
    return len(values), mean, sum((value - mean) ** 2 for value in values)


def evidence_of_precision(model, n, mean, scatter):
    squares = float(scatter + n * (mean - Fraction(model.mu)) ** 2)
    powers = model.a * math.log(model.b) - (model.a + n / 2) * math.log(model.b + squares / 2)
    return math.lgamma(model.a + n / 2) - math.lgamma(model.a) + powers - n / 2 * math.log(2 * math.pi)


def evidence_of_mean(model, n, mean, scatter):
    shift, spread = float(mean - Fraction(model.m0)), model.sigma**2 + n * model.s0**2
    determinant = (n - 1) * math.log(model.sigma**2) + math.log(spread)
    return -(n * math.log(2 * math.pi) + determinant + float(scatter) / model.sigma**2 + n * shift**2 / spread) / 2


def evidence_of_normal_gamma(model, n, mean, scatter):
    shift, kappa, alpha = float(mean - Fraction(model.mu0)), model.kappa0 + n, model.alpha0 + n / 2
    rate = model.beta0 + float(scatter) / 2 + model.kappa0 * n * shift**2 / (2 * kappa)
    powers = model.alpha0 * math.log(model.beta0) - alpha * math.log(rate) + math.log(model.kappa0 / kappa) / 2
    return math.lgamma(alpha) - math.lgamma(model.alpha0) + powers - n / 2 * math.log(2 * math.pi)


CLOCK = far(9192631770.0, 1e-3)
FAR_OFF = {
    "precision, 1e15": (GaussianPrecision(mu=1e15), 1e15 + np.array([1.0, 2.0, -1.0]), evidence_of_precision),
    "precision, clock": (GaussianPrecision(b=1e-6, mu=9192631770.0), CLOCK, evidence_of_precision),
    "mean, 1e11 sd": (GaussianMean(m0=1e11), far(1e11), evidence_of_mean),
    "mean, clock": (GaussianMean(m0=9192631770.0, s0=1.0, sigma=1e-3), CLOCK, evidence_of_mean),
    "normal-gamma, 1e11 sd": (NormalGamma(mu0=1e11), far(1e11), evidence_of_normal_gamma),
    "normal-gamma, 1e6": (NormalGamma(), far(1e6), evidence_of_normal_gamma),
    "normal-gamma, weak, 1e6": (NormalGamma.weak({"y": far(1e6)}), far(1e6), evidence_of_normal_gamma),
}


@by_name(("model", "y", "oracle"), FAR_OFF)
def test_closed_forms_keep_their_digits_far_from_zero(model, y, oracle):
    more = {"y": y[:1] + 3 * np.std(y)}
    pooled = model.statistics({"y": y[:1]}) + model.statistics({"y": y[1:]})
    less = model.statistics({"y": np.append(y, more["y"])}) - model.statistics(more)
    for known in (model.statistics({"y": y}), pooled, less):
        assert model.log_evidence(known) == pytest.approx(oracle(model, *exactly(y)), rel=1e-13, abs=1e-12)


@pytest.mark.slow
def test_ten_million_measurements():
    y = np.random.default_rng(0).normal(3.0, 2.0, 10_000_000)
    total, squares = (Fraction(float(part.sum())) for part in (y.astype(np.longdouble), y.astype(np.longdouble) ** 2))
    sums = len(y), total / len(y), squares - total**2 / len(y)
    models = {GaussianMean(1.0, 5.0, 2.0): evidence_of_mean, NormalGamma(1.0, 0.1, 1.5, 2.0): evidence_of_normal_gamma}
    for model, oracle in models.items():
        assert model.log_evidence(model.statistics({"y": y})) == pytest.approx(oracle(model, *sums), rel=1e-12)


# Counts


@pytest.mark.parametrize(("y", "exposure"), [(10**12, 1.0), (3, 1e-12), (0, 1e12), (10**12, 1e12), (7, 1e100)])
@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.01, 1e-3), (1e12, 1e12)])
@mpmath.workdps(60)
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
        assert method != "exact"
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


FAR = ["no error at all", "equal of unknown mean and precision", "events in no time", "one category seen, weakly"]
FAR_OUT = [(which, size, size) for size in (30.0, 200.0) for which in (*FAR, "a context nothing follows")]
FAR_OUT += [("a constant column", 30.0, 10.0)]  # farther out Sigma has no inverse in float64


@pytest.mark.parametrize(
    ("which", "alone", "together"),
    [pytest.param(*case, marks=[pytest.mark.slow] * (case[0] != FAR[0])) for case in FAR_OUT],
)
def test_the_sampled_density_has_a_gradient_far_out(which, alone, together):
    made, data = awkward(which)
    density = Density(made.compressed(made.statistics(data)))
    each = alone * np.eye(density.size)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (20, density.size))
    for far_out in (*each, *-each, *together * signs):
        value, slope = density.joint(density.start + far_out)
        assert math.isfinite(value)
        assert np.isfinite(slope).all()


def awkward(which):
    model, data = AWKWARD[which]
    data = bz.read(model, data)
    return (model.weak(data) if isinstance(model, type) else model), data


def test_the_t_of_one_row_is_scipys_whatever_its_size():
    """A predictive that is a thousand scales off is small, not nothing."""
    model = NormalInverseWishart((0.0, 0.0), 1.0, 4.0, ((1.0, 0.0), (0.0, 1.0)))
    for place in (1e3, 1e9, 1e100):
        row = {"Y": np.array([[place, 0.0]]), "column": LABELS[:2]}
        expected = stats.multivariate_t([0.0, 0.0], np.eye(2) * 2 / 3, df=3).logpdf(row["Y"][0])
        assert model.log_evidence(model.statistics(row)) == pytest.approx(expected, rel=1e-12)
