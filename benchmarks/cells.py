"""The cells of the certificate: the fits of each, and the line that records its result.

A cell is one simulated data set, one repeated fit, one target, one verdict on an approximation, or one file of seeded
bugs.
"""

import hashlib
import logging
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

import bayeszoo as bz
from bayeszoo import models
from bayeszoo.contract.case import off_default
from bayeszoo.contract.sampler import largest_z
from bayeszoo.data.read import Data
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.fit import methods_for
from bayeszoo.foundation import diagnostics
from bayeszoo.model import Model
from bayeszoo.model.capabilities import ClosedForm, Observable, Symmetric
from bayeszoo.model.density import log_density
from bayeszoo.model.find import by_name
from bayeszoo.results.matched import matched
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import elements, is_of_components

ROOT = Path(__file__).parents[1]
THINNED = 99  # draws among which a parameter is ranked
ROWS = 20
AGAIN = ("beta_bernoulli", "gamma_poisson", "gaussian_mean", "gaussian_precision", "normal_gamma")
AGAIN += ("dirichlet_multinomial", "markov_chain", "linear_regression", "ridge", "student_t")
SEEDS_AGAIN, SEEDS_BAD = 20, 10
BUGS = ("test_checks_catch_bugs", "test_checks_catch_bugs_of_families", "test_checks_catch_bugs_of_mixtures")
BUGS += ("test_checks_catch_bugs_of_regressions", "test_checks_of_declarations", "test_gate", "test_hmm_engines")
BUGS += ("test_hidden_markov", "test_gaussian_components", "test_student_t", "test_topic_scores", "test_decode")
BUGS += (
    "test_likelihoods_mixture",
    "test_checks_of_answers",
    "test_checks_catch_bugs_of_classes",
    "test_checks_catch_bugs_of_trees",
    "test_checks_catch_bugs_of_processes",
    "test_checks_catch_bugs_of_series",
    "test_checks_catch_bugs_of_functions",
    "test_checks_catch_bugs_of_levels",
    "test_checks_catch_bugs_of_links",
    *("test_augmented", "test_benchmark", "test_blocks", "test_blocks_at_limits", "test_dp_mixture"),
    *("test_gaussian_mixture", "test_integration", "test_mixture_gibbs", "test_mixture_of_experts"),
    *("test_neural_network", "test_regression_tree", "test_trees", "test_vectorized", "test_wishart"),
)
APPROXIMATIONS = ("vb", "online_vb", "laplace", "advi", "fullrank_advi")
CASES = 3
"""Data on which each approximation's verdict is held to the truth: the model's own, and simulated ones."""
LARGE = {"lda"}
"""Models of whose own data the truth takes hours."""
BAD = {
    "two modes at +-6": ("two_modes", {"distance": 6.0}),
    "two modes at +-10": ("two_modes", {"distance": 10.0}),
    "funnel": ("funnel", {}),
    "Cauchy": ("heavy", {"nu": 1.0}),
    "t, 1.5 degrees of freedom": ("heavy", {"nu": 1.5}),
}
"""Targets that no fit may show as they are: a miss is a number that is shown and wrong."""
FIELDS: dict[str, dict[str, Any]] = {
    "lda": {"alpha": (2.0, 1.1), "eta": (1.5, 2.0, 2.5, 3.0)},
    "neural_network": {"H": 2},
}
"""Fields under which calibration draws, where those off the defaults give posteriors that chains do not get around in:
the gate then withholds half of the fits, and the ranks of the others are no sample of all. Three units of a network
take forty times as long as two."""
WITHHELD = {"probit_regression/gibbs"}
"""Samplers that are not calibrated: of most data that the prior gives, the gate withholds their chains, which are slow
where the outcomes are nearly separated."""
FITTING = (
    "foundation",
    "distributions",
    "likelihoods",
    "model",
    "families",
    "compile",
    "inference",
    "results",
    "contract",
)
"""Storeys that a fit's numbers come from, and that check them; the others read tables or show what is there."""


def cells(simulations: int) -> Iterator[str]:
    """Name every cell, the quick ones of each kind first."""
    for name in bz.names():
        methods = [method for method in ("nuts", "gibbs") if method in methods_for(bz.find(name))]
        samplers = [f"{name}/{method}" for method in methods if f"{name}/{method}" not in WITHHELD]
        yield from (f"sbc/{sampler}/{i}" for sampler in samplers for i in range(simulations))
    yield from (f"again/{name}/{seed}" for name in AGAIN for seed in range(SEEDS_AGAIN))
    yield from (f"bad/{target}/{seed}" for target in BAD for seed in range(SEEDS_BAD))
    for name in bz.names():
        methods = [method for method in APPROXIMATIONS if method in methods_for(bz.find(name))]
        cases = [case for case in range(CASES) if case or name not in LARGE]
        yield from (f"verdict/{name}/{method}/{case}" for case in cases for method in methods)
    yield from (f"bugs/{file}" for file in BUGS if (ROOT / "tests" / f"{file}.py").exists())


def run(cell: str) -> dict[str, Any]:
    """Compute one cell; what it raises is its result."""
    logging.getLogger("pymc").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    kind, *case = cell.split("/")
    try:
        return KINDS[kind](*case)
    except Exception as error:  # a model may raise anything, and the certificate is where to say it
        return {"raised": f"{type(error).__name__}: {error}"}


def calibrate(name: str, method: str, number: str) -> dict[str, Any]:
    """Rank simulated parameters, and their log likelihood, among posterior draws (Talts et al. 2018)."""
    model, seed = off_default(bz.find(name)).replaced(**FIELDS.get(name, {})), int(number)
    rng = np.random.default_rng([seed, *name.encode()])
    params, arrays = model.simulate(rng, ROWS)
    fit = Fit(bz.fit(model, bz.read(model, arrays), method, seed=seed, groups=()))
    if not fit.is_shown:
        return {"status": fit.status}
    draws = {k: v[np.linspace(0, len(v) - 1, THINNED).astype(int)] for k, v in fit.pooled().items() if k in params}
    both = {k: np.concatenate([np.asarray(params[k])[None], v]) for k, v in draws.items()}
    values = dict(model.invariants(both, fit.data)) if isinstance(model, Symmetric) else dict(both)
    if isinstance(model, Observable):
        each = log_density(model.likelihood(both, fit.data), model.inputs.outcome(fit.data))
        values["log likelihood"] = each.sum(axis=-1)
    ranks = {}
    for key, entries in values.items():
        flat = np.reshape(entries, (THINNED + 1, -1))
        below, equal = (flat[1:] < flat[0]).sum(axis=0), (flat[1:] == flat[0]).sum(axis=0)
        ranks[key] = (below + rng.integers(0, equal + 1)).tolist()
    return {"status": fit.status, "ranks": ranks}


def fit_again(name: str, seed: str) -> dict[str, Any]:
    """Fit a model to its own data with another seed: the gate is not to fail, and the closed form is met."""
    kind = bz.find(name)
    data = bz.example(kind)
    fit = Fit(bz.fit(kind.weak(data), data, "nuts", seed=int(seed), groups=()))
    exact = fit.posterior if isinstance(fit.model, ClosedForm) else None
    known = {k: exact[k] for k in fit.draws() if k in exact} if exact else {}
    return {"status": fit.status, "z": largest_z(fit.draws(), known) if known else None}


def fit_bad(target: str, seed: str) -> dict[str, Any]:
    """Fit a target whose numbers are known to be out of reach, and say which wrong ones are shown."""
    name, fields = BAD[target]
    models.__path__ = [str(ROOT / "tests" / "bad_models"), *models.__path__]
    by_name.cache_clear()
    try:
        fit = bz.fit(bz.find(name)(**fields), {"y": [0.0]}, "nuts", seed=int(seed), groups=())
        summary = bz.summarize(fit)["v" if name == "funnel" else "x"]
        missed = [] if summary["mean"] is None else WRONG[name](summary, fields)
        return {"status": fit.attrs["status"], "missed": missed}
    finally:
        models.__path__ = models.__path__[1:]
        by_name.cache_clear()


WRONG: dict[str, Callable[[Mapping[str, Any], Mapping[str, float]], list[str]]] = {
    "two_modes": lambda summary, fields: (
        ["sd"] if abs(summary["sd"] / np.hypot(1, fields["distance"]) - 1) > 0.1 else []
    ),
    "funnel": lambda summary, fields: ["sd"] if abs(summary["sd"] / 3 - 1) > 0.1 else [],
    "heavy": lambda summary, fields: [
        k
        for k, nu in (("mean", 1), ("sd", 2))
        if fields["nu"] <= nu and _shown(summary[k]) and _shown(summary[f"mcse_{k}"])
    ],
}


def _shown(value: Any) -> bool:
    return value is not None and bool(np.isfinite(value))


def judge(name: str, method: str, case: str) -> dict[str, Any]:
    """Hold the verdict on an approximation to the truth: what is printed against the exact posterior, or long chains.

    Case 0 is the model's own data with their weakly informative prior, the others are simulated.
    """
    kind, rng = bz.find(name), np.random.default_rng([int(case), *name.encode()])
    model = off_default(kind).replaced(**FIELDS.get(name, {}))
    data = bz.example(kind) if case == "0" else bz.read(model, model.simulate(rng, ROWS)[1])
    model = kind.weak(data) if case == "0" else model
    judged = bz.fit(model, data, method, seed=1, groups=())
    truth = _truth(model, data)
    if truth is None:
        return {"status": judged.attrs["status"], "truth": None}
    judged, truth = matched([Fit(judged), Fit(truth)])
    hidden = set(judged.facts.get("withheld", ()))
    gaps = {label: gap for label, gap in _distances(judged, truth) if np.isfinite(gap).all()}
    shown = {label: gap for label, gap in gaps.items() if label not in hidden}
    return {"status": judged.status, "truth": truth.method, **_worst(gaps), "shown": _worst(shown)}


def _truth(model: Model, data: Data) -> Any:
    """Return a fit with many draws of the posterior by a method that is ok: exact, else Gibbs sampling or NUTS."""
    for method in ("exact", "gibbs", "nuts"):
        if method in methods_for(type(model)):
            try:
                tree = bz.fit(model, data, method, seed=1001, draws=5000 if method != "gibbs" else 2000, groups=())
            except (InputError, NumericalError):  # it has no exact answer of these data
                continue
            if tree.attrs["status"] == "ok":
                return tree
    return None


def _distances(judged: Fit, truth: Fit) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield each printed quantity, the error of its mean in sd of the posterior, and the ratio of the sds."""
    for group in ("posterior", "derived"):
        for key, values in judged.draws(group).items():
            draws = truth.draws(group)[key]
            if key in truth.model.without_moments or is_of_components(truth, group, key):
                continue
            heavy = diagnostics.tail_shape(draws) > 0.4
            sd = np.where(heavy, np.nan, draws.std((0, 1)))
            with np.errstate(invalid="ignore", divide="ignore"):
                mean, ratio = (values.mean((0, 1)) - draws.mean((0, 1))) / sd, values.std((0, 1)) / sd
            still = sd <= 1e-9 * np.abs(draws.mean((0, 1)))
            for index, label in elements(judged.tree[group].to_dataset()[key]):
                if not still[index]:
                    yield label, (float(mean[index]), float(ratio[index]))


def _worst(gaps: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """Return the largest error of a mean and the largest factor between sds; nothing where there is no quantity."""
    if not gaps:
        return {}
    factors = [max(ratio, 1 / ratio) if ratio > 0 else np.inf for _, ratio in gaps.values()]
    return {"mean_gap": max(abs(mean) for mean, _ in gaps.values()), "sd_factor": float(max(factors))}


def catch_bugs(file: str) -> dict[str, Any]:
    """Run the tests of a file that seed bugs: which bug is caught by which check, as the name of its test says."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-k", "bug or caught", f"tests/{file}.py"]
        subprocess.run([*command, f"--junitxml={report}"], cwd=ROOT, capture_output=True, check=False)
        tests = ElementTree.parse(report).getroot().iter("testcase")
        return {"bugs": {test.attrib["name"]: len(test) == 0 for test in tests}}


KINDS: dict[str, Callable[..., dict[str, Any]]] = {
    "sbc": calibrate,
    "again": fit_again,
    "bad": fit_bad,
    "bugs": catch_bugs,
    "verdict": judge,
}


def source_digest(cell: str) -> str:
    """Return a digest of what a cell's numbers come from: its model or tests, and the storeys that fit and judge it."""
    kind, name, *_ = cell.split("/")
    return _digest({"bugs": f"tests/{name}.py", "bad": "benchmarks/cells.py"}.get(kind, f"models/{name}.py"))


@cache
def _digest(own: str) -> str:
    storeys = sorted(path for storey in FITTING for path in ROOT.joinpath("bayeszoo", storey).rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in [*storeys, ROOT / own])).hexdigest()[:12]
