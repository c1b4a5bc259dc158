"""Every threshold of the gate: one defect at a time in chains otherwise good (VERIFICATION.md, section 2.6)."""

import json

import numpy as np
import pymc as pm
import pytest
import scipy
import xarray as xr

import bayeszoo as bz
from bayeszoo.foundation import check_names, gate
from bayeszoo.foundation.gate import (
    as_dict,
    at_least,
    at_most,
    check_hmc,
    passed,
    unmeasured_checks,
    verdict,
)
from bayeszoo.results.stored import Fit
from tests.quick import quick_where

NAMES = {"nutpie": ("maxdepth_reached", "logp"), "pymc": ("reached_max_treedepth", "lp")}
MIXING = {"r_hat", "ess_bulk", "ess_tail"}
UNCHECKED = {"non_finite_draws", "stuck_chains", "repeated_chains", *MIXING}


def good(chains=4, draws=1000, seed=1, names="nutpie"):
    """Independent draws of two quantities, and the statistics of a sampler in good health."""
    rng, shape = np.random.default_rng(seed), (chains, draws)
    depth, log_density = NAMES[names]
    posterior = {"mu": rng.normal(size=shape), "beta": rng.normal(size=(*shape, 2))}
    stats = {
        "diverging": np.zeros(shape, bool),
        "energy": rng.gamma(3, size=shape),
        depth: np.zeros(shape, bool),
        log_density: -rng.gamma(3, size=shape),
    }
    return posterior, stats


def tree_of(posterior, stats):
    groups = {
        name: xr.Dataset({k: (("chain", "draw", "group")[: v.ndim], v) for k, v in values.items()})
        for name, values in [("posterior", posterior), ("sample_stats", stats)]
    }
    return xr.DataTree.from_dict(groups)


def failing(tree):
    return {check.name for check in bz.gate(tree) if not check.passed}


def put(where, value):
    """Return an edit of ``mu`` that sets the draws at ``where``."""

    def edit(mu):
        mu[where] = value(mu) if callable(value) else value

    return edit


def slow(coefficient):
    """Return an edit that makes the draws of a chain depend on each other."""

    def edit(mu):
        mu[:] = scipy.signal.lfilter([1.0], [1.0, -coefficient], mu, axis=1)

    return edit


def slow_tails(mu):
    """Keep every sign independent, but let the size wax and wane: the tails are visited in clumps."""
    mu *= np.exp(2 * np.sin(2 * np.pi * np.arange(mu.shape[1]) / 500))


@pytest.mark.parametrize("names", NAMES)
def test_good_chains_pass(names):
    checks = bz.gate(tree_of(*good(names=names)))
    assert [check for check in checks if not check.passed] == []
    assert passed(checks)
    assert as_dict(checks)["passed"]
    assert len(checks) == 12


@pytest.mark.parametrize(("size", "failed"), [((4, 400), set()), ((3, 1000), {"chains"}), ((4, 399), {"draws"})])
def test_the_least_that_is_enough(size, failed):
    assert failing(tree_of(*good(*size))) == failed


NEVER = ("non_finite_draws", "stuck_chains", "repeated_chains", "divergences", "non_finite_log_densities")
LIMITS = dict.fromkeys((*NEVER, "tree_depth"), "<= 0")
LIMITS |= dict.fromkeys(("ess_bulk", "ess_tail"), ">= 500")  # 100 a chain
LIMITS |= {"chains": ">= 4", "draws": ">= 400", "r_hat": "<= 1.01", "e_bfmi": ">= 0.3"}


def test_the_limits_of_five_chains():
    assert {check.name: check.limit for check in bz.gate(tree_of(*good(chains=5)))} == LIMITS


DRAWS = {
    "one NaN": (put((2, 17), np.nan), {"non_finite_draws", *MIXING}),
    "one infinity": (put((0, 0), -np.inf), {"non_finite_draws", *MIXING}),
    "one chain constant": (put(3, 0.1), {"stuck_chains", "r_hat"}),
    "all chains constant, apart": (put(..., np.arange(4.0)[:, None]), {"stuck_chains", "r_hat", "ess_bulk"}),
    "one chain shifted": (put(1, lambda mu: mu[1] + 0.5), {"r_hat"}),
    "one chain wider": (put(1, lambda mu: mu[1] * 2), {"r_hat"}),  # same mean: only the folded R-hat sees it
    "drifting": (put(..., lambda mu: mu + np.linspace(0, 1, mu.shape[1])), {"r_hat"}),
    "autocorrelated": (slow(0.9), {"ess_bulk"}),
    "tails in clumps": (slow_tails, {"ess_tail"}),
}


@pytest.mark.parametrize(("edit", "failed"), DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("where", ["parameter", "deterministic"])
def test_one_bad_quantity_among_good_ones(edit, failed, where):
    posterior, stats = good()
    bad = posterior["mu"] if where == "parameter" else posterior["beta"][..., 1]
    edit(bad)
    assert failed <= failing(tree_of(posterior, stats)) <= failed | MIXING


def low_bfmi(energy):
    energy[2] = np.cumsum(energy[2] - 3)  # momentum resampling moves it far too little


STATS = {
    "one divergence": ("diverging", put((1, 5), True), "divergences"),
    "low E-BFMI in one chain": ("energy", low_bfmi, "e_bfmi"),
    "constant energy in one chain": ("energy", put(0, 3.0), "e_bfmi"),
    "NaN energy": ("energy", put((0, 0), np.nan), "e_bfmi"),
    "maximum tree depth once": ("maxdepth_reached", put((3, 999), True), "tree_depth"),
    "log density minus infinity": ("logp", put((0, 1), -np.inf), "non_finite_log_densities"),
    "log density NaN": ("logp", put((0, 1), np.nan), "non_finite_log_densities"),
}


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize(("stat", "edit", "failed"), STATS.values(), ids=STATS)
def test_one_bad_statistic(names, stat, edit, failed):
    posterior, stats = good(names=names)
    edit(stats[dict(zip(NAMES["nutpie"], NAMES[names], strict=True)).get(stat, stat)])
    assert failing(tree_of(posterior, stats)) == {failed}


MISSING = {stat: failed for stat, _, failed in STATS.values()}


@pytest.mark.parametrize(("stat", "failed"), MISSING.items())
def test_a_missing_statistic_is_not_a_passed_one(stat, failed):
    posterior, stats = good()
    del stats[stat]
    checks = {check.name: check for check in bz.gate(tree_of(posterior, stats)) if not check.passed}
    assert list(checks) == [failed]
    assert checks[failed].value is None
    assert str(checks[failed]).startswith(f"{check_names.plain(failed)} not checked (must be ")


def test_no_statistics_at_all():
    tree = tree_of(*good())
    del tree["sample_stats"]
    assert failing(tree) == set(MISSING.values())
    assert not passed(check_hmc({}))


EMPTY = {
    "no group": lambda tree: tree.drop_nodes("posterior"),
    "no variables": lambda tree: tree.assign(posterior=xr.DataTree(tree["posterior"].to_dataset()[[]])),
    "no draws": lambda tree: tree.isel(draw=slice(0)),
    "no elements": lambda tree: tree.assign(
        posterior=xr.DataTree(tree["posterior"].to_dataset()[["beta"]].isel(group=[]))
    ),
}


@pytest.mark.parametrize("empty", EMPTY.values(), ids=EMPTY.keys())
def test_a_posterior_without_a_number_is_not_checked(empty):
    assert failing(empty(tree_of(*good()))) >= UNCHECKED


def test_all_chains_stuck_at_one_value_are_as_bad():
    """R-hat is NaN and ArviZ gives an effective sample size of 4000: NaN must not pass."""
    stuck = tree_of({"mu": np.ones((4, 1000))}, good()[1])
    assert {"stuck_chains", "repeated_chains", "r_hat"} <= failing(stuck)


@pytest.mark.parametrize(("share", "passes"), [(0.003, True), (0.03, False)])
def test_a_chain_without_a_rare_event_is_not_stuck(share, passes):
    """An indicator of probability .003 may be 0 in a chain of 1,000 draws, one of .03 may not (0.97**1000 = 6e-14)."""
    posterior, stats = good()
    posterior["z"] = (np.random.default_rng(5).random((4, 1000)) < share).astype(float)
    posterior["z"][2] = 0.0
    assert ("stuck_chains" not in failing(tree_of(posterior, stats))) == passes
    posterior["z"][2] = 1.0  # the rare value, in all draws
    assert "stuck_chains" in failing(tree_of(posterior, stats))


def test_the_order_of_the_axes_does_not_matter():
    posterior, stats = good()
    low_bfmi(stats["energy"])
    tree = tree_of(posterior, stats)
    turned = xr.DataTree.from_dict({k: tree[k].to_dataset().transpose(..., "draw", "chain") for k in tree.children})
    assert bz.gate(turned) == bz.gate(tree)


BOUNDS = [
    (at_most, 1.01, None, 1.01, "ok"),
    (at_most, 1.01, None, np.nextafter(1.01, 2), "failed"),
    (at_most, 1.01, None, -np.inf, "ok"),
    (at_least, 1.01, None, 1.01, "ok"),
    (at_least, 1.01, None, np.nextafter(1.01, 0), "failed"),
    (at_least, 1.01, None, np.inf, "ok"),
    (at_most, 1.01, 1.05, 1.05, "caution"),
    (at_most, 1.01, 1.05, np.nextafter(1.05, 2), "failed"),
    (at_most, 1.01, 1.05, 1.01, "ok"),
    (at_least, 400, 100, 100, "caution"),
    (at_least, 400, 100, 99.9, "failed"),
    *[(at_most, 1.01, shown, np.inf, "failed") for shown in (None, 1.05)],
    *[(bound, 1, 1, unknown, "failed") for bound in (at_most, at_least) for unknown in (None, np.nan)],
    *[(bound, 1, None, unknown, "failed") for bound in (at_most, at_least) for unknown in (None, np.nan)],
]


@pytest.mark.parametrize(("bound", "limit", "shown", "value", "expected"), BOUNDS)
def test_bounds(bound, limit, shown, value, expected):
    check = bound("a figure", value, limit, *([] if shown is None else [shown]))
    assert (check.verdict, check.passed) == (expected, expected == "ok")
    assert (check.value is None) == str(check).startswith("a figure not checked") == (value is None or np.isnan(value))
    assert (f"; shown to {shown or 0:g})" in str(check)) == (expected == "caution")


def test_the_worst_check_decides_and_none_is_not_ok():
    ok, missed, failed = (at_most("a figure", value, 1, 2) for value in (1, 2, 3))
    unmade = at_most("a figure", None, 1).or_caveat("for a reason")
    assert [verdict(checks) for checks in ([ok], [missed, ok], [ok, unmade], [unmade, failed], [], iter([]))] == [
        *("ok", "caution", "caution", "failed", "failed", "failed"),
    ]
    assert passed(iter([ok]))
    assert not any(passed(checks) for checks in ([missed], [unmade], [failed], []))
    assert str(unmade) == "a figure not checked (must be <= 1; for a reason)"


def test_a_figure_that_misses_its_limit_by_little_has_the_digits_that_tell_them_apart():
    assert str(at_most("a figure", 0.100004, 0.1)) == "a figure 0.100004 (must be <= 0.1)"
    assert str(at_least("a figure", 0.9 - 1e-9, 0.9)) == "a figure 0.899999999 (must be >= 0.9)"
    assert str(at_most("a figure", 0.1, 0.1)) == "a figure 0.1 (must be <= 0.1)"


def test_a_k_hat_that_cannot_be_computed_is_a_caveat_for_the_reason_alone():
    assert verdict(unmeasured_checks({"k_hat": None, "k_hat_withheld": "of many"}, "too large")) == "caution"
    assert verdict(unmeasured_checks({"k_hat": None}, "too large")) == "failed"
    assert verdict(unmeasured_checks({"k_hat": 0.71}, "too large")) == "failed"


def test_an_approximation_that_was_not_measured_is_not_ok():
    assert verdict(unmeasured_checks({"k_hat": 0.1}, "too large")) == "caution"


def too_slow(mu):
    """Draw so few effective draws that R-hat alone would let them pass with a caveat."""
    slow(0.96)(mu)
    mu -= mu.mean(axis=1, keepdims=True)


CHAINS = {
    "good": ("mu", put((0, 0), 0.0), "ok"),
    "one chain a little off": ("mu", put(1, lambda mu: mu[1] + 0.3), "caution"),
    "one chain off": ("mu", put(1, lambda mu: mu[1] + 0.8), "failed"),
    "slow": ("mu", slow(0.86), "caution"),
    "too slow": ("mu", too_slow, "failed"),
    "one NaN": ("mu", put((2, 17), np.nan), "failed"),
    "a chain that stands still": ("mu", put(3, 0.1), "failed"),
    "one divergence": ("diverging", put((1, 5), True), "failed"),
    "trees cut": ("maxdepth_reached", put((3, slice(100)), True), "caution"),
    "energy that moves slowly": ("energy", slow(0.87), "caution"),
    "energy that hardly moves": ("energy", slow(0.98), "failed"),
}


def verdict_of(name):
    posterior, stats = good()
    quantity, edit, _ = CHAINS[name]
    edit((posterior | stats)[quantity])
    return verdict(bz.gate(tree_of(posterior, stats)))


@pytest.mark.parametrize("name", CHAINS)
def test_chains_get_their_verdict(name):
    assert verdict_of(name) == CHAINS[name][2]


def always_a_number(value):
    return 0.0 if value is None or np.isnan(value) else float(value)


BUGS = {
    "one chain a little off": {"SHOWN_R_HAT": 1.01},
    "one chain off": {"SHOWN_R_HAT": 10.0, "SHOWN_ESS": 0},
    "slow": {"SHOWN_ESS": 400},
    "too slow": {"SHOWN_ESS": 0},
    "one NaN": {"_number": always_a_number, "check_draws": lambda posterior: [at_most("r_hat", None, 1.01)]},
    "one divergence": {"MAX_DIVERGENCES": 1},
    "trees cut": {"SLOW": ""},
    "energy that moves slowly": {"SHOWN_BFMI": 0.3},
    "energy that hardly moves": {"SHOWN_BFMI": 0.0},
}


@pytest.mark.parametrize(("seen", "bug"), BUGS.items(), ids=BUGS)
def test_a_bug_in_a_limit_changes_a_verdict(monkeypatch, seen, bug):
    for name, wrong in bug.items():
        monkeypatch.setattr(gate, name, wrong)
    assert verdict_of(seen) != CHAINS[seen][2]


@pytest.mark.parametrize("sampler", quick_where(NAMES, lambda name: name == "pymc"))
def test_trees_of_the_samplers_themselves_pass(sampler):
    """Not made by bayeszoo: what a user of PyMC has at hand."""
    with pm.Model():
        pm.Normal("mu", np.float64(0), np.float64(1))
        tree = pm.sample(
            draws=500, tune=500, chains=4, cores=1, random_seed=3, progressbar=False, quiet=True, nuts_sampler=sampler
        )
    assert failing(tree) == set()


def test_false_alarms_are_rare():
    alarms = [seed for seed in range(20) if failing(tree_of(*good(seed=seed)))]
    assert len(alarms) <= 1


@pytest.mark.parametrize(
    ("r_hat", "divergences", "cut", "may_help"),
    [(1.9, 33, 0, False), (2.8, 0, 3354, False), (1.2, 33, 0, True), (1.9, 1, 1, True), (None, None, None, True)],
)
def test_care_does_not_help_chains_that_are_apart_and_whose_steps_break(r_hat, divergences, cut, may_help):
    names = ("r_hat", "divergences", "tree_depth")
    assert gate.care_may_help(dict(zip(names, (r_hat, divergences, cut), strict=True)), 1200) is may_help


LAWS = {"t": scipy.stats.t(1.5), "gamma": scipy.stats.gamma(0.02), "normal": scipy.stats.norm(np.zeros((2, 1)), 2)}


@pytest.mark.parametrize("name", LAWS)
def test_draws_are_held_to_the_closed_form_whatever_its_tails(name):
    shape, rng, law = np.shape(LAWS[name].mean()), np.random.default_rng(0), {"x": LAWS[name]}
    draws = LAWS[name].rvs((4, 1000, *shape), random_state=rng)
    (right,) = gate.check_agreement({"x": draws, "other": draws + 1}, law)
    bugs = [draws * 1.38, draws + 0.2 * (np.quantile(draws, 0.84) - np.quantile(draws, 0.16)), -draws]
    symmetric = name != "gamma"
    assert right.passed
    assert [gate.check_agreement({"x": each}, law)[0].passed for each in bugs] == [not symmetric, False, symmetric]


def test_a_closed_form_that_is_one_number_to_rounding_is_no_ground_to_fail():
    tiny = scipy.stats.beta([0.001, 2.0], [1e12, 3.0])
    draws = np.random.default_rng(0).beta([1e-300, 2.0], [1e12, 3.0], size=(4, 1000, 2))
    assert gate.check_agreement({"theta": draws}, {"theta": tiny})[0].passed
    assert not gate.check_agreement({"theta": draws[..., ::-1]}, {"theta": tiny})[0].passed


def test_the_error_of_a_share_is_that_of_the_fewer_of_its_effective_draws(monkeypatch):
    """Of 100 draws of a standard normal, 40 to 60 below its median; beyond the other quantiles as many as must be."""
    draws = scipy.stats.norm.ppf(
        np.concatenate([np.full(10, 0.05), np.full(30, 0.3), np.full(50, 0.7), np.full(10, 0.95)])
    )
    for bulk, tail in ((80.0, 20.0), (20.0, 80.0)):
        sizes = {"bulk": bulk, "tail": tail}
        monkeypatch.setattr(gate.diagnostics, "ess", lambda values, kind="bulk", of=sizes: np.asarray(of[kind]))
        (found,) = gate.check_agreement({"x": draws.reshape(2, 50)}, {"x": scipy.stats.norm()})
        assert found.value == pytest.approx(0.1 / (0.5 * 0.5 / 20) ** 0.5)


def test_checks_of_fits_saved_by_earlier_versions_are_read_by_their_codes():
    earlier = {"stuck chains": "stuck_chains", "derived: non-finite draws": "derived: non_finite_draws"}
    earlier |= {"least share of a mode beside what its mass asks": "mode_shares", "r_hat": "r_hat"}
    tree = bz.fit(bz.find("beta_bernoulli"), method="exact", seed=1)
    check = {"passed": False, "value": 1.0, "limit": "<= 0"}
    tree.attrs["gate"] = json.dumps({"passed": False, "checks": dict.fromkeys(earlier, check)})
    assert Fit(tree).failed == list(earlier.values())
    assert not set(check_names.PLAIN) & set(check_names.PLAIN.values())
