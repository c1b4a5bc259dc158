"""A level that moves in time: filter, smoother, draws and gradient, against dense Gaussians, mpmath and statsmodels."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import mpmath
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats

from bayeszoo.families.state_space import levels as module
from bayeszoo.families.state_space.em import Squares, or_still
from bayeszoo.families.state_space.levels import Levels
from bayeszoo.likelihoods.loops import kalman
from bayeszoo.likelihoods.ops.kalman import level_log_likelihood

M0, S0 = 5.0, 3.0
SEQUENCE = np.repeat([0, 1], [7, 5])
PLACE = np.concatenate([np.arange(7), np.arange(5)])
AT = {"q": np.array([0.7, 1e-3]), "r": np.array([1.2, 0.4])}


@pytest.fixture(params=["NumPy", "numba"], autouse=True)
def either_loops(request, monkeypatch):
    """Take short series by both."""
    monkeypatch.setattr(module, "SHORT", 1000 if request.param == "NumPy" else 0)


@pytest.fixture(scope="module")
def data():
    y = M0 + np.cumsum(np.random.default_rng(2).normal(size=12))
    y[[0, 3, 11]] = np.nan
    return {"y": y, "sequence": SEQUENCE}


def at_point(p):
    return {name: values[p] for name, values in AT.items()}


def covariance(q, r, s0=S0):
    """Return those of levels, s0^2 + q^2 min(i, j) in a sequence, and of rows."""
    same = SEQUENCE[:, None] == SEQUENCE
    levels = np.where(same, s0**2 + q**2 * np.minimum(PLACE[:, None], PLACE), 0.0)
    return levels, levels + r**2 * np.eye(len(PLACE))


def dense_given(q, r, y, rows, of):
    """Return mean and covariance of the levels ``of`` given the known observations among ``rows``."""
    levels, noisy = covariance(q, r)
    rows = [t for t in rows if not np.isnan(y[t])]
    gain = np.linalg.solve(noisy[np.ix_(rows, rows)], levels[np.ix_(rows, of)]).T
    return M0 + gain @ (y[rows] - M0), levels[np.ix_(of, of)] - gain @ levels[np.ix_(rows, of)]


@pytest.mark.parametrize("p", range(2))
def test_filter_and_smoother_are_the_dense_gaussians_of_each_sequence(data, p):
    at, every = at_point(p), np.arange(12)
    levels, known = Levels.of(AT, data, M0, S0), ~np.isnan(data["y"])
    smoothed, filtered = levels.smoothed(), levels.filtered()
    mean, cov = dense_given(**at, y=data["y"], rows=every, of=every)
    assert smoothed.mean[p] == pytest.approx(mean, rel=1e-11)
    assert smoothed.covariance()[p] == pytest.approx(cov, abs=1e-11)
    terms = []
    for t in every:
        (mean,), ((variance,),) = dense_given(**at, y=data["y"], rows=every[: t + 1], of=[t])
        assert (filtered.mean()[p, t], filtered.std()[p, t]) == pytest.approx((mean, np.sqrt(variance)), rel=1e-11)
        (mean,), ((variance,),) = dense_given(**at, y=data["y"], rows=every[:t], of=[t])
        row = stats.norm(mean, np.hypot(np.sqrt(variance), at["r"]))
        terms.append(row.logpdf(data["y"][t]) if known[t] else 0.0)
    assert levels.log_rows()[p] == pytest.approx(terms, abs=1e-11)
    _, rows = covariance(**at)
    height = stats.multivariate_normal(np.full(known.sum(), M0), rows[np.ix_(known, known)]).logpdf(data["y"][known])
    assert levels.log_marginal()[p] == pytest.approx(height, rel=1e-12)


def test_rows_ahead_go_on_from_each_sequence(data):
    ahead, filtered = Levels.of(AT, data, M0, S0).ahead(3), Levels.of(AT, data, M0, S0).filtered()
    for begin, last in ((0, 6), (3, 11)):
        steps = AT["q"][:, None] ** 2 * np.arange(1, 4)
        assert ahead.mean()[:, begin : begin + 3] == pytest.approx(np.repeat(filtered.mean()[:, [last]], 3, axis=1))
        assert ahead.std()[:, begin : begin + 3] ** 2 == pytest.approx(filtered.std()[:, [last]] ** 2 + steps)


def test_sequences_share_nothing(data):
    """And glued into one they have another density."""
    parts = [{name: values[k == SEQUENCE] for name, values in data.items()} for k in (0, 1)]
    apart = sum(Levels.of(AT, part, M0, S0).log_marginal() for part in parts)
    assert Levels.of(AT, data, M0, S0).log_marginal() == pytest.approx(apart, rel=1e-13)
    glued = Levels.of(AT, {**data, "sequence": 0 * SEQUENCE}, M0, S0).log_marginal()
    assert np.all(np.abs(glued - apart) > 0.01)


def test_unseen_levels_are_brownian(data):
    """Of no observations the levels have the covariances s0^2 + q^2 min(i, j), and the mean m0."""
    unseen = {**data, "y": np.full(12, np.nan)}
    levels = Levels.of(AT, unseen, M0, S0)
    for p in range(2):
        brownian, _ = covariance(**at_point(p))
        assert levels.smoothed().covariance()[p] == pytest.approx(brownian, rel=1e-12, abs=1e-12)
    assert np.all(levels.smoothed().mean == M0)
    assert np.all(levels.log_marginal() == 0)


@pytest.mark.parametrize("ratio", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_variances_hold_at_any_ratio(data, ratio):
    """Of q^2 to r^2, against 60 digits: densities and gradients, and rows and levels given others."""
    q2, r2 = (ratio, 1.0) if ratio > 1 else (1.0, 1 / ratio)
    y, at = np.where(np.isnan(data["y"]), np.nan, data["y"]), {"q": np.array([q2**0.5]), "r": np.array([r2**0.5])}
    known = np.flatnonzero(~np.isnan(y))
    levels = Levels.of(at, data, M0, S0)
    with mpmath.workdps(60):
        q2, r2 = (mpmath.mpf(float(values[0])) ** 2 for values in at.values())
        own = [
            [S0**2 + q2 * int(min(PLACE[i], PLACE[j])) if SEQUENCE[i] == SEQUENCE[j] else 0 for j in known]
            for i in known
        ]
        C = mpmath.matrix(own) + r2 * mpmath.eye(len(known))
        inverse, e = C**-1, mpmath.matrix([mpmath.mpf(float(value)) - M0 for value in y[known]])
        u = inverse * e
        log_det = mpmath.log(mpmath.det(C))
        height = float(-(e.T * u)[0] / 2 - log_det / 2 - len(known) * mpmath.log(2 * mpmath.pi) / 2)
        of_r2 = float(sum(u[i] ** 2 - inverse[i, i] for i in range(len(known))) / 2)
        given = [float(e[i] - u[i] / inverse[i, i]) + M0 for i in range(len(known))]
        sds = [float(mpmath.sqrt(1 / inverse[i, i])) for i in range(len(known))]
        own = mpmath.matrix(own)
        rest = own - own * inverse * own
        variances = [float(rest[i, i]) for i in range(len(known))]
    assert levels.log_marginal()[0] == pytest.approx(height, rel=1e-11)
    _, _, gradient = kalman.derivatives(y - M0, levels.opens, S0**2, float(q2), float(r2))
    assert gradient == pytest.approx(of_r2, rel=1e-9)
    others = levels.given_others(known)
    assert others.mean()[0] == pytest.approx(given, rel=1e-9)
    assert others.std()[0] == pytest.approx(sds, rel=1e-11)
    assert levels.smoothed().sd[0, known] ** 2 == pytest.approx(variances, rel=1e-11)


def test_nothing_that_varies_is_no_density():
    """Where q and r are 0 the second row has no variance left; where r alone is, rows are the levels."""
    data = {"y": np.array([5.0, 6.0, 5.5]), "sequence": np.zeros(3, dtype=int)}
    at = {"q": np.array([0.0, 1.0, 0.0]), "r": np.array([0.0, 0.0, 1.0])}
    levels = Levels.of(at, data, M0, S0)
    assert levels.log_marginal()[0] == -np.inf
    walk = stats.norm.logpdf([0.0, 1.0, -0.5], 0.0, [S0, 1.0, 1.0]).sum()
    same = stats.multivariate_normal(np.full(3, M0), S0**2 + np.eye(3)).logpdf(data["y"])
    assert levels.log_marginal()[1:] == pytest.approx([walk, same], rel=1e-14)
    assert levels.smoothed().mean[1] == pytest.approx(data["y"])
    assert np.ptp(levels.smoothed().mean[2]) < 1e-14
    assert np.all(levels.smoothed().sd[1] == 0)


@pytest.mark.parametrize("mode", ["NUMBA", "FAST_COMPILE"])
def test_the_operation_has_the_density_and_its_gradient(data, mode):
    q, r = pt.dscalars("q", "r")
    value = level_log_likelihood(q, r, data["y"] - M0, S0**2, np.array([0, 7]))
    compiled = pytensor.function([q, r], [value, *pytensor.grad(value, [q, r])], mode=mode)
    for p in range(2):
        at = at_point(p)
        height, *gradient = compiled(**at)
        assert height == pytest.approx(Levels.of(at, data, M0, S0).log_marginal(), rel=1e-13)
        for name, slope in zip(("q", "r"), gradient, strict=True):
            h = 1e-5 * at[name]
            ends = [Levels.of({**at, name: at[name] + sign * h}, data, M0, S0).log_marginal() for sign in (-1, 1)]
            assert slope == pytest.approx((ends[1] - ends[0]) / (2 * h), rel=1e-5, abs=1e-6)


def test_drawn_levels_have_the_covariances_of_the_smoother(data):
    """20,000 draws, in their errors; with gains of other rows it would be seen."""
    at = {name: values[:1] for name, values in AT.items()}
    chain = Levels.of(at, data, M0, S0).smoothed()
    x, cov = chain.rvs((20_000,), np.random.default_rng(3))[:, 0], chain.covariance()[0]
    near = np.flatnonzero(SEQUENCE[1:] == SEQUENCE[:-1])
    errors = np.sqrt((cov[near, near + 1] ** 2 + np.diag(cov)[near] * np.diag(cov)[near + 1]) / 20_000)
    sample = np.cov(x.T)[near, near + 1]
    assert np.max(np.abs(sample - cov[near, near + 1]) / errors) < 5
    assert np.max(np.abs(sample - np.roll(cov[near, near + 1], 1)) / errors) > 5


def test_expected_squares_are_those_of_draws(data):
    """The E-step: sums of squared steps of the level, and of deviations of rows from it."""
    at = {name: values[:1] for name, values in AT.items()}
    levels = Levels.of(at, data, M0, S0)
    x = levels.smoothed().rvs((50_000,), np.random.default_rng(4))[:, 0]
    inside, seen = SEQUENCE[1:] == SEQUENCE[:-1], ~np.isnan(data["y"])
    sums = [np.square(np.diff(x)[:, inside]).sum(axis=1), np.square(x - data["y"])[:, seen].sum(axis=1)]
    for each, expected in zip(sums, levels.sums_of_squares(), strict=True):
        assert abs(each.mean() - expected[0]) < 5 * each.std() / np.sqrt(50_000)


def test_the_filter_is_that_of_statsmodels(data):
    from statsmodels.tsa.statespace.structural import UnobservedComponents  # takes a second

    y, at = data["y"][1:7], at_point(0)
    model = UnobservedComponents(y, "llevel")
    model.ssm.initialize_known(np.array([M0]), np.array([[S0**2]]))
    model.ssm.loglikelihood_burn = 0
    smoothed = model.smooth([at["r"] ** 2, at["q"] ** 2])
    levels = Levels.of(at, {"y": y, "sequence": np.zeros(6, dtype=int)}, M0, S0)
    assert model.loglike([at["r"] ** 2, at["q"] ** 2]) == pytest.approx(levels.log_marginal(), rel=1e-12)
    assert smoothed.smoothed_state[0] == pytest.approx(levels.smoothed().mean, rel=1e-10)
    assert smoothed.smoothed_state_cov[0, 0] == pytest.approx(levels.smoothed().sd ** 2, rel=1e-10)
    assert smoothed.filtered_state[0] == pytest.approx(levels.filtered().mean(), rel=1e-10)


@dataclass(frozen=True)
class Rows:
    """Rows whose log density is a function of the sd of steps."""

    height: Callable[[float], float]
    q: float = 0.0

    def at(self, params):
        return replace(self, q=float(params["q"]))

    def log_marginal(self):
        return np.asarray(self.height(self.q))


@pytest.mark.parametrize(("height", "q"), [(lambda q: -(q**2), 0.0), (lambda q: -1e3 * (q - 0.05) ** 2, 0.15)])
def test_em_goes_to_0_where_the_density_has_a_mode_there_and_not_where_it_is_only_as_high(height, q):
    stats = Squares({}, {}, Rows(height))
    assert height(0.0) > height(0.15)
    assert or_still(stats, {"q": 0.15, "r": 1.0}, lambda at: 0.0) == {"q": q, "r": 1.0}
