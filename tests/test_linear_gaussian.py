"""Linear Gaussian series with known matrices, against one dense Gaussian of all states and statsmodels' smoother."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

import bayeszoo as bz
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.state_space.matrices import Matrices
from bayeszoo.families.state_space.structure import upper
from tests.refusals import raises

Linear, Level = bz.find("linear_gaussian"), bz.find("local_level")
SEQUENCE, ROWS = np.repeat([0, 1], [9, 6]), 15
THREE = {
    "A": [[0.9, 0.3, 0], [0, 0.5, 1], [0.1, 0, 1.02]],
    "C": [1, 0.5, -1],
    "Q": [[1, 0.5, 0.2], [0.5, 2, 0.3], [0.2, 0.3, 1]],
    "m0": [1, 2, 3],
    "S0": [[2, 0.5, 0], [0.5, 1, 0.2], [0, 0.2, 3]],
}
SINGULAR = {"Q": [[0.25, 0.5], [0.5, 1]], "m0": [3, -1], "S0": 4}
FORGETS = {"A": [[0, 1], [0, 0]], "C": [1, 0.4], "Q": [[0, 0], [0, 1]]}
CASES = {"a place and its velocity": {}, "three": THREE, "Q of rank 1": SINGULAR, "A and Q of rank 1": FORGETS}
CASES |= {"one": {"A": [[0.8]], "C": [2], "Q": [[1]]}}


def rows(gaps=(0, 4, 14)):
    y = np.random.default_rng(1).normal(0, 3, size=ROWS)
    y[list(gaps)] = np.nan
    return {"y": y, "sequence": SEQUENCE}


def dense(model, sequence, q, r):
    """Return mean and covariance of the states of all rows, one after the other, and of the rows given them."""
    A, C, Q = np.array(model.A), np.array(model.C), np.array(model.Q)
    first = np.array(model.S0) if np.ndim(model.S0) else model.S0 * np.eye(len(C))
    d, T = len(C), len(sequence)
    mean, cov = np.zeros(T * d), np.zeros((T * d, T * d))
    for t in range(T):
        at, before = slice(t * d, (t + 1) * d), slice((t - 1) * d, t * d)
        if t == 0 or sequence[t] != sequence[t - 1]:
            mean[at], cov[at, at] = model.m0, first
            continue
        mean[at], cov[at, : t * d] = A @ mean[before], A @ cov[before, : t * d]
        cov[: t * d, at] = cov[at, : t * d].T
        cov[at, at] = A @ cov[before, before] @ A.T + q**2 * Q
    H = np.kron(np.eye(T), C)
    return mean, cov, H, H @ cov @ H.T + r**2 * np.eye(T)


def solved(model, data, q, r, given=None):
    """Return means and variances (parts, T) of the entries of the state and of the mean of the row, given rows."""
    mean, cov, H, S = dense(model, data["sequence"], q, r)
    seen = np.flatnonzero(~np.isnan(data["y"])) if given is None else given
    gain = np.linalg.solve(S[np.ix_(seen, seen)], H[seen] @ cov).T
    mean, cov = mean + gain @ (data["y"][seen] - H[seen] @ mean), cov - gain @ H[seen] @ cov
    d, T = len(model.C), len(data["y"])
    L = np.array([*np.eye(d), np.array(model.C)])
    blocks = np.array([cov[t * d : (t + 1) * d, t * d : (t + 1) * d] for t in range(T)])
    return (mean.reshape(T, d) @ L.T).T, np.einsum("pi,tij,pj->pt", L, blocks, L)


def moments(law, parts):
    return (np.reshape(each, (parts, -1)) for each in (law.mean(), law.var()))


@pytest.fixture(params=[(0.7, 1.3), (0.7, 0.0), (0.0, 0.4)], ids=str)
def sds(request):
    return request.param


@pytest.fixture(params=CASES)
def model(request, sds):
    fields = CASES[request.param]
    return Linear(**fields, q=sds[0], r=sds[1])


def test_density_smoother_and_rows_left_out_are_those_of_one_dense_gaussian(model):
    data, (q, r) = rows(), (float(model.q), float(model.r))
    own, seen = model.levels(model.known_sds, data), np.flatnonzero(~np.isnan(data["y"]))
    mean, _, H, S = dense(model, SEQUENCE, q, r)
    density = stats.multivariate_normal((H @ mean)[seen], S[np.ix_(seen, seen)])
    assert own.log_marginal() == pytest.approx(density.logpdf(data["y"][seen]), rel=1e-10, abs=1e-10)
    means, variances = moments(own.smoothed(), len(model.parts(data)))
    expected = solved(model, data, q, r)
    np.testing.assert_allclose(means, expected[0][: len(means)], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(variances, expected[1][: len(means)], rtol=1e-9, atol=1e-9)
    i = seen[3]
    others = solved(model, data, q, r, seen[seen != i])
    held_out = own.given_others(np.array([i]))
    np.testing.assert_allclose(held_out.mean(), others[0][-1, i], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(held_out.var(), others[1][-1, i] + r**2, rtol=1e-8, atol=1e-8)


def test_the_declared_covariance_is_that_of_the_dense_states(model):
    data, (q, r) = rows(), (float(model.q), float(model.r))
    terms = model.structure(data).terms(data, np.ones(ROWS, bool))
    np.testing.assert_allclose(
        terms[""] + q**2 * terms["q"] + r**2 * terms["r"], dense(model, SEQUENCE, q, r)[3], atol=1e-11
    )


def peer_of(model, y):
    """Return statsmodels' filter with the same matrices."""
    from statsmodels.tsa.statespace.mlemodel import MLEModel  # takes a second

    d = len(model.C)
    peer = MLEModel(y, k_states=d)
    peer["design"], peer["transition"], peer["selection"] = np.array([model.C]), np.array(model.A), np.eye(d)
    peer["state_cov"], peer["obs_cov"] = float(model.q) ** 2 * np.array(model.Q), np.array([[float(model.r) ** 2]])
    first = np.array(model.S0) if np.ndim(model.S0) else model.S0 * np.eye(d)
    peer.ssm.initialize_known(np.broadcast_to(model.m0, d).astype(float), first)
    peer.ssm.loglikelihood_burn = 0
    return peer.ssm


@pytest.mark.parametrize("name", CASES)
def test_answers_of_known_matrices_are_those_of_statsmodels(name):
    """Filter, smoother, scores, forecast and log likelihood, of one sequence with gaps."""
    model, y = Linear(**CASES[name], q=0.7, r=1.3), rows()["y"]
    frame, ahead = bz.decode(model, {"y": y}, missing="mask"), bz.forecast(model, 4, {"y": y}, missing="mask")
    peer = peer_of(model, y).smooth()
    assert frame.attrs["log_score"] == pytest.approx(peer.llf, rel=1e-10)
    seen = ~np.isnan(y)
    assert frame["log_score"][seen].to_numpy() == pytest.approx(peer.llf_obs[seen], rel=1e-10)
    columns = {"level": 0, **{f"state_{i + 1}": i for i in range(1, len(model.C))}}
    for column, i in columns.items():
        assert frame[column].to_numpy() == pytest.approx(peer.smoothed_state[i], rel=1e-10, abs=1e-10)
        sd = frame["sd" if i == 0 else f"sd_{column}"]
        assert sd.to_numpy() == pytest.approx(np.sqrt(peer.smoothed_state_cov[i, i]), rel=1e-10)
    assert frame["filtered"].to_numpy() == pytest.approx(peer.filtered_state[0], rel=1e-10, abs=1e-10)
    assert frame["sd_filtered"].to_numpy() == pytest.approx(np.sqrt(peer.filtered_state_cov[0, 0]), rel=1e-10)
    longer = peer_of(model, np.append(y, np.full(4, np.nan))).filter()
    assert ahead["mean"].to_numpy() == pytest.approx(longer.forecasts[0, -4:], rel=1e-10, abs=1e-10)
    assert ahead["sd"].to_numpy() == pytest.approx(np.sqrt(longer.forecasts_error_cov[0, 0, -4:]), rel=1e-10)


def transposed(model):
    return dataclasses.replace(model, A=np.array(model.A).T.tolist())


def without_covariances(model):
    return dataclasses.replace(model, Q=np.diag(np.diag(model.Q)).tolist())


def with_variances_for_sds(model):
    return dataclasses.replace(model, q=model.q**2)


@pytest.mark.parametrize("bug", [transposed, without_covariances, with_variances_for_sds])
def test_the_dense_gaussian_sees_a_wrong_matrix(bug):
    model, data = Linear(**THREE, q=0.7, r=1.3), rows()
    seen = np.flatnonzero(~np.isnan(data["y"]))
    mean, _, H, S = dense(model, SEQUENCE, 0.7, 1.3)
    right = stats.multivariate_normal((H @ mean)[seen], S[np.ix_(seen, seen)]).logpdf(data["y"][seen])
    wrong = bug(model)
    assert abs(wrong.levels(wrong.known_sds, data).log_marginal() - right) > 1e-3


def test_slopes_are_those_of_differences():
    """Of the log density in q and r, with a singular Q as well."""
    data = rows()
    for fields in (THREE, SINGULAR):
        model = Linear(**fields)
        own = model.marginal_slopes({"q": np.array(0.7), "r": np.array(1.3)}, data)
        for name, step in (("q", 1e-5), ("r", 1e-5)):
            ends = [
                model.log_marginal({"q": np.array(0.7), "r": np.array(1.3), name: np.array(at)}, data)
                for at in ({"q": 0.7, "r": 1.3}[name] + step * np.array([-1, 1]))
            ]
            assert own[name] == pytest.approx((ends[1] - ends[0]) / (2 * step), rel=1e-7)


def test_expected_squares_give_the_step_of_em():
    """The step from a point raises the log likelihood, and at its maximum stays there; Q has rank 1."""
    model, data = Linear(**SINGULAR), rows()
    point, heights = {"q": np.float64(1.0), "r": np.float64(1.0)}, []
    for _ in range(300):
        step = model.e_step(point, data)
        heights.append(step.value)
        point = {name: np.float64(value) for name, value in model.m_step(step.stats, flat=True).items()}
    assert np.all(np.diff(heights) > -1e-9)
    slopes = model.marginal_slopes(point, data)
    assert max(abs(point[name] * slopes[name]) for name in point if point[name] > 0) < 1e-3


def test_one_entry_is_local_level():
    data, at = rows(), {"q": np.array([0.7, 0.0]), "r": np.array([1.3, 0.4])}
    model, level = Linear(A=[[1]], C=[1], Q=[[1]], m0=2.0, S0=9.0), Level(m0=2.0, s0=3.0)
    assert model.parts(data) == ("level",)
    assert model.log_marginal(at, data) == pytest.approx(level.log_marginal(at, data), rel=1e-12)
    assert model.smoothed(at, data).mean() == pytest.approx(level.smoothed(at, data).mean(), rel=1e-11)


def test_paths_have_the_moments_of_the_smoother():
    """4,000 draws, in their errors."""
    model, data = Linear(**THREE, q=0.7, r=1.3), rows()
    rng = np.random.default_rng(3)
    paths = np.array([model.sampled_path(model.known_sds, data, rng) for _ in range(4000)])
    means, variances = solved(model, data, 0.7, 1.3)
    assert np.max(np.abs(paths.mean(axis=0) - means[0]) / np.sqrt(variances[0] / 4000)) < 5
    assert np.max(np.abs(paths.var(axis=0) / variances[0] - 1)) < 5 * np.sqrt(2 / 4000)


def test_known_standard_deviations_are_no_parameters():
    data = rows()
    assert tuple(Linear().outer) == ("q", "r")
    assert tuple(Linear(r=2).outer) == ("q",)
    half, whole = Linear(r=2), Linear()
    at = {"q": np.array(0.7)}
    assert half.log_marginal(at, data) == whole.log_marginal({**at, "r": np.array(2.0)}, data)
    with raises(InputError, "nothing_to_fit"):
        bz.fit(Linear(q=1, r=2))
    with raises(InputError, "unknown_field"):
        bz.decode(Linear(q=1))
    with raises(InputError, "nothing_to_fit"):  # of no row q matters
        bz.fit(Linear(Q=[[0, 0], [0, 0]]))


def test_weakly_informative_priors_keep_the_matrices():
    data = bz.read(Linear, {"y": np.random.default_rng(2).normal(50, 3, size=20)})
    weak = Linear.weak_with(data, {"A": [[0.5]], "C": [2], "Q": [[4]]})
    assert np.array(weak.A).tolist() == [[0.5]] == np.array(Linear(A=0.5, C=1, Q=1).A).tolist()
    assert float(2 * weak.m0[0]) == pytest.approx(float(np.mean(data["y"])))


def test_a_state_that_grows_is_said():
    data = rows()
    assert not Linear().remarks(None, data)
    (line,) = Linear(A=[[1.05]], C=[1], Q=[[1]]).remarks(None, data)
    assert "1.05" in line
    assert bz.decode(Linear(A=[[1.05]], C=[1], Q=[[1]], q=1, r=1)).attrs["remarks"] == [line]


def test_a_state_that_rows_do_not_see_is_said():
    """Rows of the velocity alone say nothing of the first place."""
    (line,) = Linear(C=[0, 1]).remarks(None, rows())
    assert "1 of 2" in line
    assert not Linear(A=[[0, 1], [0, 0]]).remarks(None, rows())


def test_rows_that_a_path_without_noise_fits_are_refused():
    straight = {"y": 3.0 + 2.0 * np.arange(8), "sequence": np.zeros(8, int)}
    with raises(NumericalError, "no_spread"):
        Linear().require_spread(straight)
    Linear(r=1).require_spread(straight)
    Linear(A=[[0.5]], C=[1], Q=[[1]]).require_spread({**straight, "y": np.full(8, 3.0)})


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"A": [[1, 2]]}, "wrong_shape"),
        ({"A": [[1, 2], [3]]}, "wrong_type"),
        ({"A": [[np.nan, 1], [0, 1]]}, "out_of_range"),
        ({"A": [[1]]}, "wrong_shape"),
        ({"A": 1}, "wrong_shape"),
        ({"C": [1]}, "wrong_shape"),
        ({"Q": [[1, 2], [0, 1]]}, "not_symmetric"),
        ({"Q": [[1, 2], [2, 1]]}, "not_positive_definite"),
        ({"q": -1}, "out_of_range"),
        ({"r": "a"}, "wrong_type"),
        ({"S0": [[1, 0], [0, 0]]}, "not_positive_definite"),
    ],
    ids=str,
)
def test_wrong_fields_are_refused(fields, code):
    with raises(InputError, code):
        Linear(**fields)


@pytest.mark.parametrize("fields", [{"m0": [1, 2, 3]}, {"S0": [[1]]}], ids=str)
def test_a_first_state_of_another_length_is_refused(fields):
    with raises(InputError, "wrong_shape"):
        bz.decode(Linear(**fields, q=1, r=1))


def test_factors_of_a_singular_matrix_give_it_back():
    rng = np.random.default_rng(5)
    root = rng.normal(size=(4, 2))
    for matrix in (root @ root.T, np.zeros((3, 3)), np.array([[0.25, 0.5], [0.5, 1.0]]), np.eye(2)):
        U, D = upper(matrix)
        np.testing.assert_allclose(U @ np.diag(D) @ U.T, matrix, atol=1e-12)
        assert np.count_nonzero(D) == np.linalg.matrix_rank(matrix)
        assert np.all(D >= 0)


def test_reach_is_the_largest_effect_of_one_step():
    of_velocity = Matrices(np.array(Linear().A), np.array([1.0, 0]), np.array(Linear().Q), np.zeros(2), np.eye(2))
    assert of_velocity.reach() == pytest.approx(np.sqrt(1 / 3 + 1 + 1))
