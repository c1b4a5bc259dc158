"""`make certify`: hours of fits that show whether the promise holds, resumed where they were interrupted.

Every cell (one simulated data set, one fit again, one target, one file of seeded bugs) is a line of
``models/scorecards/certificate.jsonl``, appended as soon as it is done; a cell that has a line is not run again, and
``--fresh`` begins anew, and ``--recheck 40`` runs forty cells of former models and engines again, drawn at random, and
notes whether they come to the same verdict. The page ``docs/guide/certificate.md`` is written from the lines alone.

    python -m benchmarks.certify [WORDS ...] [--simulations 200] [--workers 2] [--fresh] [--recheck 0]

runs the cells whose name holds one of the words, such as ``sbc/gaussian_mean`` or ``bad/``; all without any.
"""

import argparse
import hashlib
import json
import logging
import subprocess
import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from functools import cache
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from scipy import stats

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
LINES, PAGE = ROOT / "models" / "scorecards" / "certificate.jsonl", ROOT / "docs" / "guide" / "certificate.md"
THINNED = 99  # draws among which a parameter is ranked
BINS = 20
VERDICT = ("status", "missed", "raised")  # what must be the same again: draws may differ by rounding, and so in ranks
LEVEL = 1e-4  # of a model's smallest p-value, Bonferroni over its quantities
FEWEST = 100  # simulations below which nothing is concluded
ROWS = 20
AGAIN = ("beta_bernoulli", "gamma_poisson", "gaussian_mean", "gaussian_precision", "normal_gamma")
AGAIN += ("dirichlet_multinomial", "markov_chain", "linear_regression", "ridge", "student_t")
SEEDS_AGAIN, SEEDS_BAD = 20, 10
MAX_Z = 4.9  # of the largest of some thousand numbers
BUGS = ("test_checks_catch_bugs", "test_checks_catch_bugs_of_families", "test_checks_catch_bugs_of_mixtures")
BUGS += ("test_checks_catch_bugs_of_regressions", "test_checks_of_declarations", "test_gate", "test_hmm_engines")
BUGS += ("test_hidden_markov", "test_gaussian_components", "test_student_t", "test_topic_scores", "test_decode")
BUGS += ("test_likelihoods_mixture", "test_checks_of_answers")
APPROXIMATIONS = ("vb", "laplace", "advi", "fullrank_advi")
CASES = 3
"""Data on which each approximation's verdict is held to the truth: the model's own, and simulated ones."""
LARGE = {"lda"}
"""Models of whose own data the truth takes hours."""
NEAR, NOISE = (0.1, 1 / 0.9), (0.04, 1.04)
"""Gaps up to which an approximation is to be ok; and what errors of both sides may add to them."""
BAD = {
    "two modes at +-6": ("two_modes", {"distance": 6.0}),
    "two modes at +-10": ("two_modes", {"distance": 10.0}),
    "funnel": ("funnel", {}),
    "Cauchy": ("heavy", {"nu": 1.0}),
    "t, 1.5 degrees of freedom": ("heavy", {"nu": 1.5}),
}
"""Targets that no fit may show as they are: a miss is a number that is shown and wrong."""
FIELDS: dict[str, dict[str, Any]] = {"lda": {"alpha": (2.0, 1.1), "eta": (1.5, 2.0, 2.5, 3.0)}}
"""Priors under which calibration draws, where those off the defaults give posteriors that chains do not get around in:
the gate then withholds half of the fits, and the ranks of the others are no sample of all."""
WITHHELD = {"probit_regression/gibbs"}
"""Samplers that are not calibrated: of most data that the prior gives, the gate withholds their chains, which are slow
where the outcomes are nearly separated."""
FITTING = ("foundation", "distributions", "likelihoods", "model", "families", "inference", "results", "contract")
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
    judged, truth = matched([judged, truth])
    hidden = set(Fit(judged).facts.get("withheld", ()))
    gaps = {label: gap for label, gap in _distances(judged, truth) if np.isfinite(gap).all()}
    shown = {label: gap for label, gap in gaps.items() if label not in hidden}
    return {"status": judged.attrs["status"], "truth": truth.attrs["method"], **_worst(gaps), "shown": _worst(shown)}


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


def _distances(judged: Any, truth: Any) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield each printed quantity, the error of its mean in sd of the posterior, and the ratio of the sds."""
    for group in ("posterior", "derived"):
        for key, values in Fit(judged).draws(group).items():
            draws = Fit(truth).draws(group)[key]
            if key in Fit(truth).model.without_moments or is_of_components(truth, group, key):
                continue
            heavy = diagnostics.tail_shape(draws) > 0.4
            sd = np.where(heavy, np.nan, draws.std((0, 1)))
            with np.errstate(invalid="ignore", divide="ignore"):
                mean, ratio = (values.mean((0, 1)) - draws.mean((0, 1))) / sd, values.std((0, 1)) / sd
            still = sd <= 1e-9 * np.abs(draws.mean((0, 1)))
            for index, label in elements(judged[group].to_dataset()[key]):
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
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-k", "bug", f"tests/{file}.py"]
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
    return _digest({"bugs": f"tests/{name}.py", "bad": "benchmarks/certify.py"}.get(kind, f"models/{name}.py"))


@cache
def _digest(own: str) -> str:
    storeys = sorted(path for storey in FITTING for path in ROOT.joinpath("bayeszoo", storey).rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in [*storeys, ROOT / own])).hexdigest()[:12]


def read_lines(path: Path = LINES) -> dict[str, dict[str, Any]]:
    """Read the lines by cell; one that an interrupt cut off is left out."""
    lines = {}
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            continue
        lines[line["cell"]] = line
    return lines


def run_all(names: Iterable[str], workers: int, path: Path = LINES) -> None:
    """Run the cells without a line, and append each as soon as it is done."""
    done = read_lines(path)
    todo = (name for name in names if name not in done)
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    with path.open("a", encoding="utf-8") as out:
        if path.stat().st_size and not path.read_text(encoding="utf-8").endswith("\n"):
            out.write("\n")
        try:
            while batch := list(islice(todo, 4 * workers)):
                running: dict[Future[dict[str, Any]], str] = {pool.submit(run, name): name for name in batch}
                for future in as_completed(running):
                    line = {"cell": running[future], "source": source_digest(running[future]), **future.result()}
                    out.write(json.dumps(line) + "\n")
                    out.flush()
                    print(running[future], *(f"{k} {line[k]}" for k in ("status", "missed", "raised") if k in line))
        finally:
            pool.shutdown(cancel_futures=True)


def recheck(count: int, workers: int, words: Sequence[str], path: Path = LINES) -> None:
    """Run cells of former models and engines again, drawn at random, and write in their lines what came of it."""
    lines = read_lines(path)
    former = [name for name, line in lines.items() if line["source"] != source_digest(name) and "bugs/" not in name]
    former = [name for name in former if not words or any(word in name for word in words)]
    chosen = np.random.default_rng(count).permutation(former)[:count].tolist()
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for name, again in zip(chosen, pool.map(run, chosen), strict=True):
            before = lines[name]
            same = all(before.get(key) == again.get(key) for key in VERDICT)
            lines[name] = {"cell": name, "source": source_digest(name), **again, "same": same}
            print(name, "the same" if same else f"was {before}, is {again}", flush=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines.values()), encoding="utf-8")


def lowest_p(ranks: Sequence[Mapping[str, list[int]]]) -> tuple[float, int]:
    """Return the smallest chi-square p-value of any quantity's ranks, times their number, and this number."""
    columns = [np.array([each[name] for each in ranks]).reshape(len(ranks), -1) for name in ranks[0]]
    table = np.concatenate(columns, axis=1)
    counts = [np.histogram(column, BINS, (0, THINNED + 1))[0] for column in table.T]
    return min(1.0, min(stats.chisquare(each).pvalue for each in counts) * len(counts)), len(counts)


def page(lines: Mapping[str, Mapping[str, Any]], digest: Callable[[str], str] = source_digest) -> str:
    """Write the certificate: what was run, and what came of it."""
    groups: dict[str, dict[str, list[Mapping[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for cell, line in lines.items():
        kind, _, rest = cell.partition("/")
        groups[kind][rest if kind == "bugs" else rest.rpartition("/")[0]].append(line)
    present = sum(line["source"] == digest(cell) for cell, line in lines.items())
    again = [line["same"] for line in lines.values() if "same" in line]
    said = (
        f" Of {len(again)} older cells drawn at random and run again, {sum(again)} came to the same verdict."
        if again
        else ""
    )
    parts = [
        "# Certificate",
        "Written by `make certify` from `models/scorecards/certificate.jsonl`, and not to be edited. It takes hours "
        f"and goes on where it was interrupted: {len(lines)} cells so far, {present} of them with today's "
        f"models and engines.{said}",
        "## Simulation-based calibration",
        f"Ranks among {THINNED} draws of parameters simulated with {ROWS} rows, chi-square in {BINS} bins, p times the "
        f"number of quantities; below {LEVEL:g} fails, and of fewer than {FEWEST} simulations nothing is concluded.",
        _table("model and sampler, simulations, withheld, raised, quantities, p, verdict", _calibrated(groups["sbc"])),
        "## Seeded bugs",
        _table("tests, bugs, caught, missed", _caught(groups["bugs"])),
        "## Fits again with other seeds",
        f"False alarms: a fit of its own data that the gate fails, or a number off by {MAX_Z} errors.",
        _table("model, fits, ok, caution, failed, largest z", _again(groups["again"])),
        "## Targets out of reach",
        "A miss is a wrong number that is shown with an error; an sd without one has a note that it may not exist.",
        _table("target, fits, ok, caution, failed, misses (seeds)", _bad(groups["bad"])),
        "## Verdicts on approximations against the truth",
        "Every printed quantity against the exact posterior, or 20,000 draws of NUTS: the largest error of a mean in "
        f"sd and the largest factor between sds, of {CASES} data sets for each model. An ok is wrong beyond "
        f"{NEAR[0]} sd or 10%, and the noise of both sides; a caution or a failure is a false alarm where all are well "
        "within.",
        _table(
            "model and approximation, fits, ok, wrong ok, caution, failed, false alarms, no truth, worst ok, worst "
            "shown",
            _verdicts(groups["verdict"]),
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _table(heads: str, rows: Iterable[Sequence[Any]]) -> str:
    names = heads.split(", ")
    body = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in row)} |" for row in body)


def _calibrated(lines_of: Mapping[str, list[Mapping[str, Any]]]) -> Iterator[Sequence[Any]]:
    for name, lines in sorted(lines_of.items()):
        ranks = [line["ranks"] for line in lines if "ranks" in line]
        raised = sum("raised" in line for line in lines)
        p, quantities = lowest_p(ranks) if ranks else (1.0, 0)
        verdict = "too few" if len(ranks) < FEWEST else ("passed" if p >= LEVEL else "failed")
        yield name, len(lines), len(lines) - len(ranks) - raised, raised, quantities, f"{p:.2g}", verdict


def _caught(lines_of: Mapping[str, list[Mapping[str, Any]]]) -> Iterator[Sequence[Any]]:
    for name, (line,) in sorted(lines_of.items()):
        bugs = line.get("bugs", {})
        missed = ", ".join(f"`{bug}`" for bug, was_caught in bugs.items() if not was_caught)
        yield name, len(bugs), sum(bugs.values()), line.get("raised", missed)


def _statuses(lines: Sequence[Mapping[str, Any]]) -> list[int]:
    counts = Counter(line.get("status", "failed") for line in lines)
    return [len(lines), counts["ok"], counts["caution"], len(lines) - counts["ok"] - counts["caution"]]


def _again(lines_of: Mapping[str, list[Mapping[str, Any]]]) -> Iterator[Sequence[Any]]:
    for name, lines in sorted(lines_of.items()):
        largest = max((line["z"] for line in lines if line.get("z") is not None), default=None)
        yield name, *_statuses(lines), "" if largest is None else f"{largest:.2f}{'!' * (largest > MAX_Z)}"


def _bad(lines_of: Mapping[str, list[Mapping[str, Any]]]) -> Iterator[Sequence[Any]]:
    for name, lines in sorted(lines_of.items()):
        missed = [line["cell"].rpartition("/")[2] for line in lines if line.get("missed") or "raised" in line]
        yield name, *_statuses(lines), f"{len(missed)} ({', '.join(missed)})" if missed else 0


def _verdicts(lines_of: Mapping[str, list[Mapping[str, Any]]]) -> Iterator[Sequence[Any]]:
    total = Counter[str]()
    for name, lines in sorted(lines_of.items()):
        known = [line for line in lines if "mean_gap" in line]
        ok = [line for line in known if line["status"] == "ok"]
        count = Counter(
            fits=len(lines),
            ok=sum(line.get("status") == "ok" for line in lines),
            wrong=sum(_beyond(line, *NOISE) for line in ok),
            caution=sum(line.get("status") == "caution" for line in lines),
            failed=sum(line.get("status") == "failed" for line in lines),
            alarms=sum(not _beyond(line, -NOISE[0], 1 / NOISE[1]) for line in known if line["status"] != "ok"),
            unknown=len(lines) - len(known),
        )
        total.update(count)
        yield name, *count.values(), _gap(ok), _gap([line["shown"] for line in known if line.get("shown")])
    yield "all", *(total[key] for key in ("fits", "ok", "wrong", "caution", "failed", "alarms", "unknown")), "", ""


def _beyond(line: Mapping[str, Any], more: float, factor: float) -> bool:
    """Say whether a gap is beyond what is ok, moved by what noise may add."""
    return bool(line["mean_gap"] > NEAR[0] + more or line["sd_factor"] > NEAR[1] * factor)


def _gap(lines: Sequence[Mapping[str, Any]]) -> str:
    if not lines:
        return ""
    return f"{max(line['mean_gap'] for line in lines):.2g} sd, x {max(line['sd_factor'] for line in lines):.3g}"


def main() -> None:
    """Run what was asked for, and write the page also when interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--recheck", type=int, default=0)
    asked = parser.parse_args()
    if asked.fresh:
        LINES.unlink(missing_ok=True)
    names = [cell for cell in cells(asked.simulations) if not asked.words or any(word in cell for word in asked.words)]
    try:
        if asked.recheck:
            recheck(asked.recheck, asked.workers, asked.words)
        else:
            run_all(names, asked.workers)
    finally:
        PAGE.write_text(page(read_lines()), encoding="utf-8")


if __name__ == "__main__":
    main()
