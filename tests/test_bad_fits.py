"""Six wrong fits that PyMC, nutpie or ArviZ let pass: every output catches them."""

import contextlib
import copy
import io
import json
import re
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.cli.app import main
from bayeszoo.cli.terminal import show_fit
from bayeszoo.foundation import check_names
from bayeszoo.foundation.gate import AGREEMENT
from bayeszoo.inference import starts
from bayeszoo.inference.methods import nuts, smc
from bayeszoo.inference.problem import Problem
from bayeszoo.report.text.numbers import number
from bayeszoo.results.caveats import next_step
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import HEADLINE, document
from tests.bad_models.flat_mean import FlatMean
from tests.bad_models.two_modes import TwoModes
from tests.quick import quick_where, zoo_with
from tests.refusals import raises

PLACENTA = ("beta_bernoulli", "--example", "placenta_previa")
bad_models = zoo_with("bad_models", autouse=False)
FIGURES = ("log_evidence", "elbo", "log_likelihood", "log_joint")


def bayeszoo_command(*arguments):
    """Return the code, stdout and stderr of one call of the command line, and the document if it printed one."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    document = json.loads(out.getvalue() or "null") if "--json" in arguments else None
    return SimpleNamespace(code=ended.value.code, out=out.getvalue(), err=err.getvalue(), document=document)


def remembering(sampler):
    """Sample each attempt once only, so that a fit is printed as a table and as JSON for the price of one.

    Where an attempt begins is no part of its name: a remembered attempt leaves the generator as it was, so that the
    next one would not be the same if it were sampled again.
    """
    runs = {}

    def sample(problem, settings):
        attempt = settings.draws, settings.target_accept
        if attempt not in runs:
            runs[attempt] = sampler(problem, settings)
        return copy.deepcopy(runs[attempt])

    return sample


def corrupted(edit):
    def sample(problem, settings):
        run = nuts._with_nutpie(problem, settings)
        edit(run)
        return run

    return sample


def put(group, name, place, value):
    return lambda run: getattr(run, group)[name].__setitem__(place, value)


STICK = put("draws", "theta", 3, 0.5)
POISON = put("draws", "theta", (1, slice(100, 105)), np.nan)
DIVERGE = put("stats", "diverging", (0, 7), True)


@dataclass(frozen=True)
class Bad:
    """A fit that must not be trusted: how to make it, which checks must see it, and how often it is tried."""

    arguments: tuple[str, ...]
    sees: set[str]
    attempts: int
    sampler: object = nuts._with_nutpie


SIX = {
    "funnel": Bad(("funnel", "y.csv", "--draws", "400", "--tune", "400"), {"r_hat", "e_bfmi"}, 3),
    "two far modes": Bad(("two_modes", "y.csv", "--no-extend"), {"r_hat", "ess_bulk"}, 1),
    "stuck chain": Bad(PLACENTA, {"stuck_chains", "r_hat"}, 1, corrupted(STICK)),
    "NaN draws": Bad(PLACENTA, {"non_finite_draws", "r_hat"}, 1, corrupted(POISON)),
    "one chain": Bad((*PLACENTA, "--chains", "1"), {"chains", "r_hat"}, 1),
    "ten draws": Bad((*PLACENTA, "--draws", "10"), {"draws"}, 1),
}


@pytest.fixture(scope="module", params=quick_where(SIX, lambda name: name != "funnel"))
def caught(request, bad_models, tmp_path_factory):
    """A bad fit as it came out of the command line: as a table, as JSON, as a file."""
    bad, folder = SIX[request.param], tmp_path_factory.mktemp("bad")
    (folder / "y.csv").write_text("y\n0.5\n-0.5\n")
    words = ("fit", *bad.arguments, "--seed", 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setitem(nuts.SAMPLERS, "nutpie", remembering(bad.sampler))
        said = [bayeszoo_command(*words, *form) for form in (("-o", "fit.nc"), ("--json",))]
    assert [one.code for one in said] == [3, 3]
    return SimpleNamespace(bad=bad, table=said[0], json=said[1], file=folder / "fit.nc")


def estimates_of(tree):
    """Every headline number that the draws would give, as the table and JSON would write it."""
    values = [v.to_numpy().reshape(-1, *v.shape[2:]) for v in tree["posterior"].data_vars.values()]
    found = [f(v, axis=0) for v in values for f in (np.mean, np.std, np.median)]
    numbers = [x for array in found for x in np.ravel(array).tolist() if np.isfinite(x)]
    return {text for x in numbers for text in (number(x), number(x, 4), repr(x))}


def test_the_table_withholds_and_stderr_names_the_checks(caught):
    lines = caught.table.out.splitlines()
    assert [line for line in lines if re.match(r"(the estimate is|all \d+ estimates are) withheld", line)] == lines[2:3]
    assert "status failed: " in caught.table.out
    assert not estimates_of(bz.load(caught.file)) & set(caught.table.out.split())
    assert "warning: estimates are withheld: the gate did not pass\n" in caught.table.err
    assert f"\nnext: {caught.json.document['next']}\n" in caught.table.err
    for name in caught.bad.sees:
        assert f"\nwarning: {check_names.plain(name)}: " in caught.table.err


def test_the_json_withholds_and_counts_the_attempts(caught):
    document = caught.json.document
    assert document["status"] == "failed"
    assert document["gate"]["passed"] is False
    failed = {name for name, check in document["gate"]["checks"].items() if not check["passed"]}
    assert caught.bad.sees <= failed
    for found in document["parameters"].values():
        assert [found[name] for name in HEADLINE] == [None] * len(HEADLINE)
    assert [document[name] for name in FIGURES] == [None] * len(FIGURES)
    assert not any(text in caught.json.out for text in estimates_of(bz.load(caught.file)) if len(text) > 8)
    assert document["warnings"][0] == "estimates are withheld: the gate did not pass"
    assert document["facts"]["attempts"] == caught.bad.attempts
    said = [f"attempt {i} did not pass: " in caught.table.err for i in range(1, 4)]
    assert all(said[: caught.bad.attempts - 1])
    assert not any(said[caught.bad.attempts :])


def test_the_file_carries_the_verdict_and_prediction_is_refused(caught):
    tree = bz.load(caught.file)
    assert tree.attrs["status"] == "failed"
    assert Fit(tree).gate["passed"] is False
    for found in bz.summarize(tree).values():
        assert [found[name] for name in HEADLINE] == [None] * len(HEADLINE)
    for form in ([], ["--json"]):
        said = bayeszoo_command("predict", caught.file, *form)
        assert (said.code, said.out) == (3, "")
        assert said.err.startswith("error: the fit failed its gate: predictions from it are withheld; ")
        assert "try " in said.err


# Comparison


@pytest.fixture(scope="module")
def compared():
    """A comparison in which a stuck chain and runs of SMC that disagree stand beside the exact answer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(nuts.SAMPLERS, "nutpie", corrupted(STICK))
        patch.setattr(smc, "MAX_EVIDENCE_SD", 1e-9)
        patch.setattr(smc.run, "__kwdefaults__", {**smc.run.__kwdefaults__, "draws": 100, "extend": False})
        arguments = ("compare", *PLACENTA, "--methods", "exact,nuts,smc", "--seed", 1)
        return {form: bayeszoo_command(*arguments, *form) for form in ((), ("--json",))}


def test_comparison_withholds_estimates_and_evidence_and_says_why(compared):
    assert {said.code for said in compared.values()} == {3}
    document = compared["--json",].document
    rows, fits = ({one["method"]: one for one in document[name]} for name in ("table", "fits"))
    assert fits["exact"]["log_evidence"] is not None
    assert rows["exact"]["mean"] == pytest.approx(438 / 982)
    shown = {"mean", "sd", "log_evidence", "loo_score"}
    assert all(rows["exact"][name] is not None for name in shown)
    for method in ("nuts", "smc"):
        assert rows[method]["status"] == "failed"
        kept = {name for name, value in rows[method].items() if value is not None}
        assert kept == {"fit", "model", "method", "parameter", "seconds", "kind", "status"}
        assert [fits[method][name] for name in FIGURES] == [None] * len(FIGURES)
        assert "log_evidence" not in fits[method]["facts"]
        assert "log_evidence_gap" not in fits[method]["exact"]
    assert "warning: nuts: stuck chains: 1 (must be <= 0)\n" in compared[()].err
    assert "warning: smc: sd of log evidence between runs: " in compared[()].err


# Attempts


@pytest.fixture
def fails(monkeypatch):
    """Corrupt the first runs of the sampler; return the list of settings that it is called with."""

    def corrupt(times, edit=DIVERGE):
        settings_seen = []

        def sample(problem, settings):
            settings_seen.append(settings)
            run = nuts._with_nutpie(problem, settings)
            if len(settings_seen) <= times:
                edit(run)
            return run

        monkeypatch.setitem(nuts.SAMPLERS, "nutpie", sample)
        return settings_seen

    return corrupt


@pytest.mark.slow
def test_a_fit_that_needs_a_second_attempt_passes(fails):
    seen = fails(times=1)
    said = bayeszoo_command("fit", *PLACENTA, "--seed", 1, "--json")
    assert said.code == 0
    assert said.document["status"] == "ok"
    assert said.document["facts"] == {"attempts": 2, "tune": 2000, "target_accept": 0.95}
    assert said.document["parameters"]["theta"]["mean"] == pytest.approx(438 / 982, abs=0.002)
    assert "attempt 1 did not pass: divergences 1 (must be <= 0)\n" in said.err
    assert [(s.draws, s.tune, s.chains, s.target_accept) for s in seen] == [(1000, 1000, 4, 0.8), (2000, 2000, 4, 0.95)]


def test_the_third_attempt_is_the_last(fails):
    seen = fails(times=9)
    arguments = ("--seed", 1, "--draws", 400, "--tune", 200, "--target-accept", 0.97, "--json")
    said = bayeszoo_command("fit", *PLACENTA, *arguments)
    assert said.code == 3
    assert said.document["facts"]["attempts"] == 3
    assert [(s.draws, s.tune, s.target_accept) for s in seen] == [(400, 200, 0.97), (800, 400, 0.97), (1600, 800, 0.99)]


@pytest.mark.parametrize(("edit", "options"), [(STICK, {}), (DIVERGE, {"extend": False})], ids=["structural", "off"])
def test_one_attempt_when_more_would_not_help_or_are_not_wanted(fails, edit, options):
    seen, model = fails(times=9, edit=edit), bz.find("beta_bernoulli")
    tree = bz.fit(model(), bz.example(model, "placenta_previa"), seed=1, **options)
    assert (tree.attrs["status"], Fit(tree).facts["attempts"], len(seen)) == ("failed", 1, 1)


def stay(run):
    """Take all draws from those at the larger mode, so that the chains agree with each other."""
    at = np.argwhere(run.draws["mu"] > 0)
    chain, draw = np.random.default_rng(2).choice(at, run.draws["mu"].shape).transpose(2, 0, 1)
    for name in ("mu", "lam"):
        run.draws[name][:] = run.draws[name][chain, draw]


def elsewhere(run):
    """Move all draws, as the wrong density, or the wrong closed form, of a user's own model would."""
    run.draws["theta"][:] = 1.1 * run.draws["theta"]


def test_good_chains_of_another_posterior_than_the_closed_form_do_not_pass(fails, capsys):
    fails(times=1, edit=elsewhere)
    tree = bz.fit(bz.find("beta_bernoulli")(), [1, 0] * 20, "nuts", seed=1, groups=())
    assert Fit(tree).failed == [AGREEMENT]
    assert next_step(Fit(tree)).endswith("is wrong: try bayeszoo check beta_bernoulli")
    show_fit(Fit(tree), document(Fit(tree)))
    assert f"the estimate is withheld: failed {check_names.plain(AGREEMENT)} " in capsys.readouterr().out


def test_chains_that_leave_a_mode_that_em_found_do_not_pass(monkeypatch):
    """The smaller mode holds 1.5% by quadrature."""
    monkeypatch.setitem(nuts.SAMPLERS, "nutpie", corrupted(stay))
    kind = bz.find("student_t")
    data = bz.read(kind, [-2.1, -1.9, -2.0, 2.0, 2.2, 1.9, 2.05])
    tree = bz.fit(kind.weak_with(data, {"nu": 0.1}), data, "nuts", seed=1, extend=False)
    checks = Fit(tree).gate["checks"]
    assert checks["r_hat"]["passed"]
    assert not checks["mode_shares"]["passed"]


def problem_of_two_modes():
    model = TwoModes(6.0)
    return Problem(model, bz.read(model, {"y": [0.5, -0.5]}), np.random.default_rng(1))


def test_chains_begin_at_the_modes_to_which_draws_of_the_prior_lead():
    places = starts.starts(problem_of_two_modes())
    assert sorted(float(start.x[0]) for start in places) == pytest.approx([-6, 6], abs=1e-3)
    assert [start.log_mass for start in places] == pytest.approx([np.log(2 * np.pi) / 2] * 2, abs=1e-3)


def test_modes_of_equal_height_in_different_places_are_no_answer_without_a_word():
    """Compiles the density of the two modes, as the test above."""
    model = TwoModes(6.0)
    fit = Fit(bz.fit(model, bz.read(model, {"y": [0.5, -0.5]}), "map", seed=1, groups=()))
    assert fit.status == "caution"
    assert fit.checks["equal_maxima"]["value"] == 1


@pytest.mark.parametrize(("middle", "height", "count"), [(-6, 0, 1), (-6, -30, 0), (6, 0, 0)])
def test_where_an_earlier_chain_settled_these_have_been(middle, height, count):
    problem, noise = problem_of_two_modes(), np.random.default_rng(2).normal(size=(4, 400))

    def run(centres, heights):
        density = np.broadcast_to(np.array(heights, dtype=float)[:, None], noise.shape)
        return nuts.Run({"x": np.array(centres)[:, None] + noise}, {"logp": density})

    earlier = run([6.0, 6.0, 6.0, middle], [0, 0, 0, height])
    (check,) = nuts._left_behind(problem, [earlier], run([6.0] * 4, [0] * 4))
    assert (check.value, check.passed) == (count, count == 0)


def test_quantities_that_stand_still_in_one_attempt_only_are_compared_with_those_of_another():
    """Of rows far apart the probability that two are of one component moves in some attempts and not in others."""
    kind = bz.find("gaussian_mixture")
    data = bz.read(kind, {"x": [0.0, 0.1, 40.0, 40.1]})
    problem = Problem(kind(K=2), data, np.random.default_rng(1))

    def run(distance):
        noise = np.random.default_rng(2).normal(size=(4, 400))
        means = np.stack([noise, distance + noise], axis=2)[..., None]
        draws = {"weights": np.full((4, 400, 2), 0.5), "means": means, "covariances": np.ones((4, 400, 2, 1, 1))}
        return nuts.Run(draws, {"logp": np.zeros((4, 400))})

    runs = [run(2.0), run(40.0)]
    free = [nuts.label_free(problem.model, some.draws, data) for some in runs]
    shapes = [{name: values.shape for name, values in quantities.items()} for quantities in free]
    assert shapes[0] != shapes[1]
    assert not nuts._left_behind(problem, runs[:1], runs[1])[0].passed


@pytest.mark.slow
def test_a_second_attempt_does_not_forget_a_mode(monkeypatch):
    """Where nothing leads to both modes at once, chains that agree pass, but none after chains that did not."""
    monkeypatch.setattr(starts, "_prior_draws", lambda problem: iter(()))
    trees = [bz.fit(TwoModes(6.0), {"y": [0.5, -0.5]}, seed=seed, groups=()) for seed in range(10)]
    assert all(Fit(tree).facts["attempts"] == 1 for tree in trees if tree.attrs["status"] == "ok")
    assert sum(tree.attrs["status"] != "ok" for tree in trees) > 5


@pytest.mark.slow
def test_a_density_without_bound_has_no_laplace_and_no_advi():
    """Equal values under flat priors: the density grows as sigma falls, until sigma leaves the floating-point range."""
    model, data = FlatMean(), {"y": [1.0, 1.0, 1.0]}
    with raises(bz.NumericalError, "not_positive_definite"):
        bz.fit(model, data, "laplace", seed=1)
    tree = bz.fit(model, data, "advi", seed=1)
    assert tree.attrs["status"] == "failed"
    assert bz.summarize(tree)["sigma"]["mean"] is None
