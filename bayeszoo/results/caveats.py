"""Warnings about the numbers of a fit, the reasons why they are withheld, and what to try next."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise

from bayeszoo.errors import Caution, InputError, Untrustworthy
from bayeszoo.foundation import check_names
from bayeszoo.foundation.gate import AGREEMENT, APART, STRUCTURAL, care_may_help
from bayeszoo.model.capabilities import Collapsed, Gibbs, PointMasses, Variational, is_exact
from bayeszoo.model.outer.limits import beyond_quadrature
from bayeszoo.model.outer.over_draws import OverDrawn
from bayeszoo.results.stored import Fit

_REASONS = {
    "caution": "estimates are shown with a warning",
    "failed": "estimates are withheld: the gate did not pass",
    "interrupted": "estimates are withheld: the run was interrupted",
}
MOST_NAMED = 4
"""Most quantities that a message names."""
WORDS = {"failed": "the fit failed its gate", "interrupted": "the fit was interrupted"}


def failures_of(fit: Fit) -> list[str]:
    """Return why a fit's estimates are withheld, or the caveats on them; an empty list where all is ok."""
    failed = [_line(name, fit.checks[name]) for name in fit.failed]
    return [_REASONS[fit.status], *failed] if fit.status in _REASONS else failed


def _line(name: str, check: Mapping[str, object]) -> str:
    value = "not checked" if check["value"] is None else check["value"]
    figure = value if isinstance(value, str) else f"{value:.4g}"
    return (
        f"{check_names.plain(name)}: {figure} (must be {check['limit']}{'; ' * bool(check['caveat'])}{check['caveat']})"
    )


def require_shown(fit: Fit, answer: str) -> Fit:
    """Return the view of a fit whose numbers are shown; else raise `Untrustworthy`, which names the ``answer``."""
    if not fit.is_shown:
        step = next_step(fit)
        raise Untrustworthy(f"{WORDS[fit.status]}: {answer} are withheld{f'; {step}' if step else ''}", "withheld")
    if far := fit.facts.get("parameters_withheld"):
        why = f"the approximation is too far from the posterior in {', '.join(far[:MOST_NAMED])}"
        step = next_step(fit)
        raise Untrustworthy(f"{why}: {answer} are withheld{f'; {step}' if step else ''}", "withheld")
    return fit


def warn(fit: Fit) -> None:
    """Warn if the numbers of a fit are shown with caution."""
    if fit.status == "caution":
        first, *others = failures_of(fit)
        name = ", ".join(str(fit.tree.attrs[name]) for name in ("model", "method", "group") if name in fit.tree.attrs)
        warnings.warn(f"{name}: {first}: {'; '.join(others)}", Caution, stacklevel=3)


def next_step(fit: Fit) -> str:
    """Return the command, or options of the same command, to try where numbers are withheld; else an empty string.

    Numbers are withheld if a check of the gate failed; those of single components if draws disagree on the components.
    """
    failed = {name for name in fit.failed if fit.checks[name]["verdict"] == "failed"}
    components = "label_stability" in fit.facts and fit.facts.get("components_withheld")
    if fit.status == "interrupted" or not (failed or components or "withheld" in fit.facts):
        return ""
    if failed & {"chains", "draws"}:
        return "try --chains 4 --draws 1000"
    if "tables" in fit.facts:
        is_mixing = not any(name.startswith(("imputation", "completed")) for name in failed)
        return f"try --tables {4 * int(fit.facts['tables'])}" if is_mixing else "try --missing drop"
    if failed == {AGREEMENT}:
        command = f"bayeszoo check {_named(fit)} {_same_data(fit)}".rstrip()
        return f"the density that was sampled or the closed form is wrong: try {command}"
    unbounded = fit.method == "nuts" and _may_be_unbounded(fit)
    steps = _mending(fit, failed, unbounded) if fit.kind == "sampled" else []
    with suppress(InputError):  # the model may not be installed
        others = [method for method in _other_methods(fit) if method != "smc" or not unbounded]  # needs a proper prior
        steps += [f"--method {other}" for other in others[:1]]
    return f"{_mixing(fit, failed)}try {', or '.join(steps)}" if steps else ""


def _mixing(fit: Fit, failed: set[str]) -> str:
    """Return R-hat, the number of draws and what this means, where R-hat failed."""
    r_hat = fit.checks.get("r_hat", {}).get("value")
    if "r_hat" not in failed or failed & set(STRUCTURAL) or not isinstance(r_hat, float):
        return ""
    sizes = fit.tree["posterior"].sizes
    separated = "chains are far apart, and break" if "divergences" in failed else "chains are in different modes"
    why = separated if r_hat > APART else "chains mix slowly"
    return f"R-hat {r_hat:.3g} after {sizes['chain'] * sizes['draw']} draws: {why}; "


def _named(fit: Fit) -> str:
    """Return the model's name, or its file as in the command of the fit: no other file may be run."""
    words = shlex.split(str(fit.tree.attrs.get("command", "")))
    file = fit.own_file
    is_named = file is not None and words[:1] == ["fit"] and words[1:] and file.is_named(words[1])
    return shlex.quote(words[1] if is_named else str(fit.tree.attrs["model"]))


def _same_data(fit: Fit) -> str:
    """Return the words of the command that name its data, if these are one file or an example."""
    words = shlex.split(str(fit.tree.attrs.get("command", "")))
    if len(words) > 2 and words[0] == "fit" and not words[2].startswith("-"):
        return f"{shlex.quote(words[2])} "
    after = dict(pairwise(words))
    return f"--example {shlex.quote(after['--example'])} " if "--example" in after else ""


def _may_be_unbounded(fit: Fit) -> bool:
    """Say whether the density seems unbounded, as under an improper prior."""
    values = {name: check["value"] for name, check in fit.checks.items()}
    sizes = fit.tree["posterior"].sizes
    return not care_may_help(values, sizes["chain"] * sizes["draw"])


def _mending(fit: Fit, failed: set[str], unbounded: bool) -> list[str]:
    """Return what to try with a sampler: another prior, longer chains, other numbers of components."""
    if failed & set(STRUCTURAL):
        return [f"--seed {int(fit.tree.attrs['seed']) + 1}"]
    if unbounded and not {"K", "q"} & fit.fields.keys():
        is_textbook = fit.tree.attrs.get("prior") == "textbook"
        return ["--prior weak" if is_textbook else f"a proper prior{' (--set FIELD=...)' * bool(fit.fields)}"]
    if "divergences" in failed:
        return ["a narrower prior (--set FIELD=...)"]
    if "thin" in fit.facts:
        return [f"--thin {2 * fit.facts['thin']}"]
    if {"K", "q"} & fit.fields.keys():
        most = max(4, 1 + int(fit.fields.get("K", fit.fields.get("q", 0))))
        return [f"bayeszoo select {_same_data(fit)}-c {_named(fit)} --components 1-{most}"]
    r_hat = fit.checks.get("r_hat", {}).get("value")
    return [] if isinstance(r_hat, float) and r_hat > APART else [f"--draws {4 * fit.options['draws']}"]


def _other_methods(fit: Fit) -> list[str]:
    """Return the other methods of the model; after an approximation, sampling methods first."""
    model = fit.model
    gibbs, vb = isinstance(model, Collapsed), isinstance(model, Variational)
    exact = is_exact(type(model)) and not beyond_quadrature(model, fit.data)
    samplers = ["gibbs"] * gibbs + ["nuts"]
    others = ["vb"] * vb + samplers + ["smc"] if fit.kind == "sampled" else samplers + ["vb"] * vb
    if isinstance(model, PointMasses | OverDrawn):  # there is no density to follow
        others = ["gibbs"] * isinstance(model, Gibbs) + ["vb"] * vb
    return [method for method in ["exact"] * exact + others if method != fit.method]
