"""The same seed gives the same draws, and different fits with one seed are independent."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import integrate, stats

import bayeszoo as bz
from bayeszoo.foundation.streams import stream, stream_of_fit
from tests.quick import quick_first

SHORT = {"draws": 60, "tune": 100, "chains": 2, "extend": False}
PROGRAM = """
import hashlib, sys
import numpy as np
import bayeszoo as bz
for name in sys.argv[2:]:
    options = dict(draws=60, tune=100, chains=2, extend=False) if sys.argv[1].startswith(("nuts", "gibbs")) else {}
    method, _, sampler = sys.argv[1].partition(":")
    tree = bz.fit(bz.find(name)(), method=method, seed=1, **options, **({"sampler": sampler} if sampler else {}))
    draws = b"".join(np.ascontiguousarray(v.to_numpy()).tobytes() for v in tree["posterior"].data_vars.values())
    print(name, hashlib.sha256(draws).hexdigest())
"""
GROUPS = {"A": [1] * 40 + [0] * 60, "B": [1] * 54 + [0] * 46}


def two_fits(method="exact", **options):
    """Fits of two groups with one seed."""
    model = bz.find("beta_bernoulli")(a=1, b=1)
    return [bz.fit(model, group, method=method, seed=1, **options) for group in GROUPS.values()]


def rates(fits):
    return [np.ravel(fit["posterior"]["theta"].to_numpy()) for fit in fits]


def require_independent(a, b):
    """Require what holds of independent draws: five standard errors of the correlation and of the probability."""
    posterior_a, posterior_b = (stats.beta(1 + sum(g), 1 + len(g) - sum(g)) for g in GROUPS.values())
    truth = integrate.quad(lambda x: posterior_b.pdf(x) * posterior_a.cdf(x), 0, 1)[0]
    assert abs(np.corrcoef(a, b)[0, 1]) < 5 / np.sqrt(len(a))
    assert abs(np.mean(b > a) - truth) < 5 * np.sqrt(truth * (1 - truth) / len(a))


@pytest.mark.parametrize("method", quick_first(["exact", "nuts", "smc"]))
def test_two_groups_fitted_with_one_seed_are_independent(method):
    fits = two_fits(method, draws=5000) if method == "exact" else two_fits(method)
    # draws of a chain are less than independent ones: thinned, they are as good
    require_independent(*(draws[:: 1 if method == "exact" else 10] for draws in rates(fits)))
    drawn = [stream_of_fit(fit.attrs, 0, "predict").normal(size=10_000) for fit in fits]  # nor do their answers
    assert abs(np.corrcoef(*drawn)[0, 1]) < 5 / np.sqrt(10_000)


def test_one_stream_for_all_data_is_caught(monkeypatch):
    monkeypatch.setattr(sys.modules["bayeszoo.fit"], "stream", lambda seed, *_: np.random.default_rng(seed))
    with pytest.raises(AssertionError):
        require_independent(*rates(two_fits(draws=5000)))


def test_streams_differ_by_seed_model_fields_data_and_purpose():
    first = (1, "m", {"a": 1.0}, "data", "exact")
    others = [(2,), ("n",), ({"a": 1.5}, {"b": 1.0}, {"a": (1.0, 1.0)}), ("other",), ("nuts",)]
    identities = [first, *((*first[:i], value, *first[i + 1 :]) for i, values in enumerate(others) for value in values)]
    firsts = [stream(*identity).integers(2**63) for identity in identities]
    assert len(set(firsts)) == len(firsts)
    assert stream(*identities[0]).integers(2**63) == firsts[0]
    last_bit = stream(1, "m", {"a": np.nextafter(1.0, 2)}, "data", "exact")
    assert last_bit.integers(2**63) == firsts[0]  # rounding on another processor is no other model


def test_a_generator_is_its_own_stream():
    rng = np.random.default_rng(1)
    assert stream(rng, "anything") is rng
    assert stream_of_fit({}, rng, "anything") is rng


def test_a_fit_gives_the_same_draws_after_another():
    def draws():
        fit = bz.fit(bz.find("linear_regression")(), method="nuts", seed=1, **SHORT)
        return fit["posterior"]["w"].to_numpy()

    first = draws()
    bz.fit(bz.find("beta_bernoulli")(a=1, b=1), method="nuts", seed=1, **SHORT)
    np.testing.assert_array_equal(draws(), first)


def digests(method, *names, cache):
    """Digests of draws by model, in a process of their own whose compiled functions are kept in a folder."""
    flags = {"PYTENSOR_FLAGS": f"base_compiledir={cache},generated_src_dir={cache}/src", "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", PROGRAM, method, *names]
    printed = subprocess.run(command, env=os.environ | flags, capture_output=True, text=True, check=True).stdout
    return dict(line.split() for line in printed.splitlines())


MODELS = ("linear_regression", "bayesian_pca", "bayesian_lasso")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["nuts", "nuts:pymc", "laplace"])
def test_a_fresh_process_gives_the_same_draws_whatever_was_fitted_or_compiled_before(method, tmp_path):
    compiled_now = digests(method, *MODELS, cache=tmp_path)
    assert digests(method, *reversed(MODELS), cache=tmp_path) == compiled_now
    assert digests(method, MODELS[1], cache=tmp_path) == {MODELS[1]: compiled_now[MODELS[1]]}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "method"), [("gaussian_mixture", "nuts"), ("hmm_gaussian", "nuts"), ("lda", "gibbs")])
def test_a_compiled_likelihood_gives_the_same_draws_from_the_cache(name, method, tmp_path):
    assert digests(method, name, cache=tmp_path) == digests(method, name, cache=tmp_path)
