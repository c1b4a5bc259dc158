"""The filter of levels, slopes, seasons and features, its sums and draws, against one dense Gaussian of all states."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats

from bayeszoo.families.state_space.components import Components
from bayeszoo.families.state_space.levels import Levels
from bayeszoo.families.state_space.structure import CODES, SDS, Structure, of_first, responses
from bayeszoo.likelihoods.loops import kalman
from bayeszoo.likelihoods.ops.kalman import structural_log_likelihood

SEQUENCE = np.repeat([0, 1], [9, 6])
OPENS = np.array([t in (0, 9) for t in range(15)])
M0, SDS_OF_FIRST = 2.0, (3.0, 0.7, 1.4)
FORMS = [(("level",), 1, 0), (("level", "slope"), 1, 0), (("level", "season"), 4, 2)]
FORMS += [(("level", "slope", "season"), 3, 1)]
"""Components, period and number of features."""
AT = {"q": np.array([0.6, 0.0]), "q_slope": np.array([0.2, 0.1]), "q_season": np.array([0.5, 0.0])}
AT |= {"r": np.array([1.1, 0.4])}


def rows(p):
    rng = np.random.default_rng(1)
    y, X = rng.normal(M0, 3, size=15), rng.normal(size=(15, p))
    y[[0, 4, 14]] = np.nan
    return {"y": y, "X": X, "sequence": SEQUENCE}


def case(form, at=AT):
    parts, period, p = form
    structure = Structure(parts, period, SDS_OF_FIRST, (1.3, 0.6)[:p])
    data = rows(p)
    own = {name: value for name, value in at.items() if SDS[name] in ("noise", *parts)}
    return Components.of(own, data, M0, structure), data, structure


def moved(structure):
    """Return the matrix of a step of the states, and how a row depends on them, written anew."""
    parts, S = structure.parts, structure.period
    names = ["level", *["slope"] * ("slope" in parts), *[f"s{j}" for j in range(S - 1) if "season" in parts]]
    F = np.zeros((len(names), len(names)))
    for i, name in enumerate(names):
        if name in ("level", "slope"):
            F[i, i] = 1
        if name == "slope":
            F[0, i] = 1
    seasons = [i for i, name in enumerate(names) if name.startswith("s") and name != "slope"]
    for j, i in enumerate(seasons):
        F[i, seasons if j == 0 else seasons[j - 1]] = -1 if j == 0 else 1
    Z = np.array([name in ("level", "s0") for name in names], dtype=float)
    return names, F, Z


def dense(structure, data, point):
    """Return the covariance matrix of the states of all rows (T d, T d), and each part's dependence on them."""
    names, F, Z = moved(structure)
    k, p, T = len(names), data["X"].shape[1], 15
    first = np.diag(np.square([SDS_OF_FIRST[0 if n == "level" else 1] for n in names]))
    seasons = [i for i, n in enumerate(names) if n[0] == "s" and n != "slope"]
    S = structure.period
    first[np.ix_(seasons, seasons)] = SDS_OF_FIRST[2] ** 2 * (S * np.eye(len(seasons)) - 1) / max(S - 1, 1)
    Q = np.diag([point["q"] if n == "level" else point["q_slope"] if n == "slope" else 0.0 for n in names]) ** 2
    if seasons:
        Q[seasons[0], seasons[0]] = point["q_season"] ** 2
    d, cov = k + p, np.zeros((T * (k + p),) * 2)
    for t in range(T):
        step, noise, at = np.zeros((d, d)), np.zeros((d, d)), slice(t * d, (t + 1) * d)
        step[k:, k:] = np.eye(p) if t else 0
        noise[k:, k:] = 0 if t else np.diag(np.square(structure.tau))
        noise[:k, :k] = first if OPENS[t] else Q
        step[:k, :k] = 0 if OPENS[t] else F
        before = slice((t - 1) * d, t * d)
        cov[at, at] = noise + (step @ cov[before, before] @ step.T if t else 0)
        if t:
            cov[at, : t * d] = step @ cov[before, : t * d]
            cov[: t * d, at] = cov[at, : t * d].T
    own = {"level": np.eye(d)[0], "slope": np.eye(d)[min(1, d - 1)]}
    if seasons:
        own["season"] = np.eye(d)[seasons[0]]
    parts = {name: np.kron(np.eye(T), own[name]) for name in structure.parts}
    parts["features"] = np.array([np.kron(np.eye(T)[t], [*np.zeros(k), *data["X"][t]]) for t in range(T)])
    parts["signal"] = np.array([np.kron(np.eye(T)[t], [*Z, *data["X"][t]]) for t in range(T)])
    return cov, parts


def point_of(p):
    return {name: values[p] for name, values in AT.items()}


@pytest.fixture(params=FORMS, ids=str)
def form(request):
    return request.param


def solved(form, p, given=None):
    """Return means and variances of the parts of all rows given some rows, by dense matrices."""
    _, data, structure = case(form)
    cov, parts = dense(structure, data, point_of(p))
    seen = np.flatnonzero(~np.isnan(data["y"]))
    seen = seen if given is None else seen[np.isin(seen, given)]
    H = parts["signal"]
    C = (H @ cov @ H.T + point_of(p)["r"] ** 2 * np.eye(15))[np.ix_(seen, seen)]
    B = cov @ H[seen].T
    mean, rest = B @ np.linalg.solve(C, data["y"][seen] - M0), cov - B @ np.linalg.solve(C, B.T)
    moments = {}
    for name in structure.shown:
        L = parts[name]
        moments[name] = L @ mean + M0 * (name in ("level", "signal")), np.diag(L @ rest @ L.T)
    return moments, C, seen


def split(law, structure):
    rows = law.mean().shape[-1] // len(structure.shown)
    pairs = (law.mean(), law.var())
    return {
        name: tuple(each[..., i * rows : (i + 1) * rows] for each in pairs) for i, name in enumerate(structure.shown)
    }


def test_the_density_of_all_rows_is_that_of_a_dense_gaussian(form):
    components, data, _ = case(form)
    for p in range(2):
        _, C, seen = solved(form, p)
        dense_height = stats.multivariate_normal(np.full(len(seen), M0), C).logpdf(data["y"][seen])
        assert components.log_marginal()[p] == pytest.approx(dense_height, rel=1e-11)
        assert components.log_rows()[p].sum() == pytest.approx(dense_height, rel=1e-11)
        assert components.backward.height[p] == pytest.approx(dense_height, rel=1e-11)


def test_the_covariance_is_a_sum_of_closed_forms(form):
    """Which `declare` has: responses to single steps, and no filter."""
    _, data, structure = case(form)
    seen = ~np.isnan(data["y"])
    for p in range(2):
        terms, at = structure.terms(data, seen), point_of(p)
        total = terms[""] + sum(at[name] ** 2 * terms[name] for name in terms if name)
        assert total == pytest.approx(solved(form, p)[1], rel=1e-10, abs=1e-10)


def test_parts_given_all_rows_and_rows_so_far(form):
    components, _, structure = case(form)
    smoothed, filtered = split(components.smoothed(), structure), split(components.filtered(), structure)
    for p in range(2):
        whole = solved(form, p)[0]
        for name in structure.shown:
            for ours, theirs in zip(smoothed[name], whole[name], strict=True):
                assert ours[p] == pytest.approx(theirs, rel=1e-8, abs=1e-9)
            for t in (1, 8, 11):
                known = solved(form, p, range(t + 1))[0][name]
                assert filtered[name][0][p, t] == pytest.approx(known[0][t], rel=1e-8, abs=1e-9)
                assert filtered[name][1][p, t] == pytest.approx(known[1][t], rel=1e-8, abs=1e-9)


def test_parts_after_each_sequence_are_those_of_further_rows_that_are_missing(form):
    components, data, structure = case(form)
    new = np.random.default_rng(2).normal(size=(3, data["X"].shape[1]))
    ahead = split(components.ahead(3, new), structure)
    for k in (0, 1):
        own, other = (np.flatnonzero(np.equal(SEQUENCE, j)) for j in (k, 1 - k))
        order = np.concatenate([other, own])
        longer = {
            "y": np.append(data["y"][order], [np.nan] * 3),
            "X": np.concatenate([data["X"][order], new]),
            "sequence": np.repeat([0, 1], [len(other), len(own) + 3]),
        }
        smoothed = split(Components.of(varying(structure), longer, M0, structure).smoothed(), structure)
        for name in structure.shown:
            for mine, theirs in zip(ahead[name], smoothed[name], strict=True):
                assert mine[:, 3 * k : 3 * k + 3] == pytest.approx(theirs[:, -3:], rel=1e-9, abs=1e-9)


def varying(structure):
    return {name: value for name, value in AT.items() if SDS[name] in ("noise", *structure.parts)}


def test_a_row_given_all_others_is_that_of_the_dense_gaussian(form):
    components, data, _ = case(form)
    for p in range(2):
        _, C, seen = solved(form, p)
        inverse = np.linalg.inv(C)
        law = components.given_others(seen)
        precision = np.diag(inverse)
        assert law.std()[p] == pytest.approx(precision**-0.5, rel=1e-9)
        mean = data["y"][seen] - inverse @ (data["y"][seen] - M0) / precision
        assert law.mean()[p] == pytest.approx(mean, rel=1e-8, abs=1e-9)


def test_the_gradient_is_that_of_differences_and_gives_expected_squares(form):
    _, data, structure = case(form)
    at = {name: float(values[0]) for name, values in varying(structure).items()}
    own = Components.of(at, data, M0, structure)
    slopes = own.slopes()
    for name, value in at.items():
        ends = [own.at({**at, name: value + h}).log_marginal() for h in (-1e-5, 1e-5)]
        assert slopes[name] == pytest.approx((ends[1] - ends[0]) / 2e-5, rel=1e-6, abs=1e-7)
    mean, variance = split(own.smoothed(), structure)["signal" if len(structure.shown) > 1 else "level"]
    seen = ~np.isnan(data["y"])
    expected = np.sum((np.square(data["y"] - mean) + variance)[seen])
    assert own.squares()[1]["r"] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("mode", ["NUMBA", "FAST_COMPILE"])
def test_the_operation_has_the_density_and_its_gradient(mode):
    """It compiles a small graph."""
    _, data, structure = case(FORMS[2])
    q, r = pt.dvector("q"), pt.dscalar("r")
    at = {"q": 0.6, "q_season": 0.5, "r": 1.1}
    rest = (data["y"] - M0, data["X"], *structure.factors, np.array([0, 9]), *structure.form)
    value = structural_log_likelihood(q, r, *rest)
    compiled = pytensor.function([q, r], [value, *pytensor.grad(value, [q, r])], mode=mode)
    height, of_q, of_r = compiled(np.array([0.6, 0.0, 0.5]), 1.1)
    own = Components.of(at, data, M0, structure)
    assert height == pytest.approx(float(own.log_marginal()), rel=1e-12)
    slopes = own.slopes()
    assert [of_q[0], of_q[2], of_r] == pytest.approx([slopes[name] for name in ("q", "q_season", "r")], rel=1e-10)


def test_paths_have_the_mean_and_the_variances_of_the_smoother():
    """4,000 draws, in their errors."""
    _, data, structure = case(FORMS[3])
    own = Components.of({name: values[0] for name, values in AT.items()}, data, M0, structure)
    rng = np.random.default_rng(3)
    x = np.array([own.path(rng) for _ in range(4000)])
    mean, variance = split(own.smoothed(), structure)["level"]
    assert np.max(np.abs(x.mean(axis=0) - mean) / np.sqrt(variance / 4000)) < 5
    assert np.max(np.abs(x.var(axis=0) / variance - 1)) < 5 * np.sqrt(2 / 4000)


@pytest.mark.parametrize("ratio", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_one_state_is_the_fast_path_at_any_ratio(ratio):
    """Of q^2 to r^2: the loops of vectors and those of one number agree, and no variance is lost."""
    data = rows(0)
    at = {"q": np.array([min(ratio, 1.0) ** 0.5 * max(1.0, ratio) ** 0.5]), "r": np.array([1.0])}
    own = Components.of(at, data, M0, Structure(("level",), 1, SDS_OF_FIRST))
    scalar = Levels.of(at, data, M0, SDS_OF_FIRST[0])
    assert own.log_marginal() == pytest.approx(scalar.log_marginal(), rel=1e-12)
    assert own.smoothed().mean() == pytest.approx(scalar.smoothed().mean, rel=1e-11)
    assert own.smoothed().std() == pytest.approx(scalar.smoothed().sd, rel=1e-11)
    places = np.flatnonzero(~np.isnan(data["y"]))
    assert own.given_others(places).std() == pytest.approx(scalar.given_others(places).std(), rel=1e-10)
    _, *slopes = kalman.derivatives(data["y"] - M0, OPENS, SDS_OF_FIRST[0] ** 2, float(at["q"][0] ** 2), 1.0)
    assert [own.backward.of_q2[0, 0], own.backward.of_r2[0]] == pytest.approx(slopes, rel=1e-7)


@pytest.mark.parametrize("ratio", [1e-12, 1e-6, 1e6, 1e12])
def test_variances_of_all_parts_stay_positive(ratio):
    data = rows(0)
    at = {"q": np.array([ratio**0.5]), "q_slope": np.array([1.0]), "q_season": np.array([ratio**-0.5])}
    structure = Structure(("level", "slope", "season"), 4, SDS_OF_FIRST)
    own = Components.of({**at, "r": np.array([1.0])}, data, M0, structure)
    for law in (own.smoothed(), own.filtered(), own.ahead(3, np.empty((3, 0)))):
        assert np.all(law.std() > 0)
    assert np.all(own.backward.precision[:, ~np.isnan(data["y"])] > 0)
    assert np.isfinite(own.log_marginal()).all()


def test_the_filter_is_that_of_statsmodels():
    """Of an exact known first state: likelihood, and smoothed level, slope and season."""
    from statsmodels.tsa.statespace.structural import UnobservedComponents  # takes a second

    y, structure = np.random.default_rng(4).normal(size=20), Structure(("level", "slope", "season"), 4, SDS_OF_FIRST)
    at = {"q": 0.6, "q_slope": 0.2, "q_season": 0.5, "r": 1.1}
    own = Components.of(at, {"y": y, "X": np.empty((20, 0)), "sequence": np.zeros(20, dtype=int)}, 0.0, structure)
    peer = UnobservedComponents(y, "lltrend", seasonal=4)
    U, D = structure.factors
    peer.ssm.initialize_known(np.zeros(5), U @ np.diag(D) @ U.T)
    peer.ssm.loglikelihood_burn = 0
    smoothed = peer.smooth([at[name] ** 2 for name in ("r", "q", "q_slope", "q_season")])
    assert peer.loglike(smoothed.params) == pytest.approx(float(own.log_marginal()), rel=1e-12)
    mine = split(own.smoothed(), structure)
    for i, name in enumerate(structure.parts):
        assert mine[name][0] == pytest.approx(smoothed.smoothed_state[i], rel=1e-8, abs=1e-10)
        assert mine[name][1] == pytest.approx(smoothed.smoothed_state_cov[i, i], rel=1e-8)


def test_steps_and_first_states_are_those_of_a_path():
    """Responses in closed form: a step of a season moves its own row up, and the next one down."""
    structure = Structure(("level", "slope", "season"), 3, SDS_OF_FIRST)
    moves = responses(structure, np.arange(7))
    assert moves["level"][:, 2].tolist() == [0, 0, 1, 1, 1, 1, 1]
    assert moves["slope"][:, 2].tolist() == [0, 0, 0, 1, 2, 3, 4]
    assert moves["season"][:, 2].tolist() == [0, 0, 1, -1, 0, 1, -1]
    first = of_first(Structure(("level", "season"), 3, SDS_OF_FIRST), np.arange(7), np.zeros((7, 0)))
    assert first[0, [0, 1, 3]] == pytest.approx([9 + 1.96, 9 - 0.98, 9 + 1.96])
    assert sorted(CODES.values()) == [0, 1, 2, 3, 4]
