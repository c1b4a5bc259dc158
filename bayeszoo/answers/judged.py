"""Answers by an approximation some of whose parameters are off, each number judged by itself.

Wrong parameters need not make a wrong answer: the distribution of a new row may be right although a parameter's sd is
too small. So the answer is computed twice, from the approximation and from the draws of the posterior that it was
measured against, and each number is shown if the two agree, whatever its neighbours. If parameters are withheld,
numbers must agree within the gate's limits; if parameters are shown with a warning, so is an answer, up to the limits
beyond which a parameter is withheld.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import lazy_loader
import numpy as np
import scipy

from bayeszoo.answers.columns import with_reasons
from bayeszoo.errors import Untrustworthy
from bayeszoo.foundation.gate import MAX_MEAN_GAP, MAX_QUANTILE_GAP, MAX_SD_GAP, SHOWN_MEAN_GAP, SHOWN_SD_RATIO
from bayeszoo.results.caveats import next_step, require_shown
from bayeszoo.results.gaps import STATISTICS, Gaps, gaps_of, statistics_of
from bayeszoo.results.stored import Fit, dumps
from bayeszoo.results.support import REFERENCE_DRAWS

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")

MAX_SCORE_GAP = 0.1
"""Largest error of a log score that is shown, in nats."""
FAR = "too far from the posterior's"
_MOMENTS = "mean, sd, quantiles"
_FAR = f"{_MOMENTS}: {FAR}"
_NOT_OF_PARAMETERS = ("observed", "what", "withheld", "plug_in", "bias")
"""Columns that do not depend on the parameters."""


class Limits(NamedTuple):
    """Largest distance of an answer from the posterior's: means and quantiles in sd, ratios of sds, scores in nats."""

    mean: float
    least: float
    most: float
    quantile: float
    score: float
    is_strict: bool
    """Whether parameters are withheld: then a number passes only if it is known to agree."""
    then: str = ""
    """Advice if an answer is further off."""

    def agree(self, mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
        """Return where an error of a mean, in sd, and a ratio of sds are within the limits."""
        if self.is_strict:
            return (np.abs(mean) <= self.mean) & (sd >= self.least) & (sd <= self.most)
        return ~((np.abs(mean) > self.mean) | (sd < self.least) | (sd > self.most))

    def moments_agree(self, own: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Return where means and sds, ``own``, agree with the posterior's, ``other``."""
        with np.errstate(invalid="ignore", divide="ignore"):
            gap, ratio = np.asarray((own[0] - other[0]) / other[1]), np.asarray(own[1] / other[1])
        same = (own[0] == other[0]) & (own[1] == other[1])  # also if the sd is 0
        return same | self.agree(gap, ratio)

    def scores_agree(self, own: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return where normal scores agree: an error of the mean moves all alike, one of the sd in proportion."""
        with np.errstate(invalid="ignore"):
            far = np.abs(own - other) > self.mean + (self.most - 1) * np.abs(other)
        unknown = np.isnan(own) | np.isnan(other)
        return (own == other) | (~far & (~unknown | (not self.is_strict)))

    def means_agree(self, own: np.ndarray, other: np.ndarray, sd: np.ndarray) -> np.ndarray:
        """Return where means agree, in units of the posterior's ``sd``."""
        with np.errstate(invalid="ignore"):
            far = np.abs(own - other) > self.mean * sd
        unknown = np.isnan(own) | np.isnan(other) | np.isnan(sd)
        return (own == other) | (~far & (~unknown | (not self.is_strict)))

    def logs_agree(self, own: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return where log probabilities or densities agree."""
        with np.errstate(invalid="ignore"):
            return (own == other) | (np.abs(own - other) <= self.score)


WITHIN = Limits(MAX_MEAN_GAP, 1 - MAX_SD_GAP, 1 + MAX_SD_GAP, MAX_QUANTILE_GAP, MAX_SCORE_GAP, is_strict=True)
"""Limits of answers if parameters are withheld."""
SHOWN = Limits(SHOWN_MEAN_GAP, 1 / SHOWN_SD_RATIO, SHOWN_SD_RATIO, np.inf, SHOWN_MEAN_GAP, is_strict=False)
"""Limits of answers if all parameters are shown, some with a warning."""


class Agreement(NamedTuple):
    """Which rows of a table agree with the reference, and a line that sums it up."""

    shown: np.ndarray
    line: str


class Part(NamedTuple):
    """Columns of an answer that are shown together, and the rows where they agree with the posterior's."""

    columns: tuple[str, ...]
    agree: np.ndarray
    name: str = ""
    """The name of the columns in a reason; their own names if empty."""
    counts: bool = True
    """Whether the answer is refused unless a number of this part, or of another that counts, agrees."""


def judged[Rows](
    fit: Fit, answer: str, rows: Callable[[Fit], Rows], ask: Callable[[Fit, Rows], pd.DataFrame]
) -> pd.DataFrame:
    """Return a fit's answer; if parameters are off, withhold numbers that disagree with the posterior.

    Parameters
    ----------
    fit : Fit
        The fit that is asked.
    answer : str
        What messages call the answer, such as "predictions from it".
    rows : callable
        Map a fit that may answer to the rows that are asked about.
    ask : callable
        Map a fit and these rows to a table with columns ``mean``, ``sd``, ``q025``, ``median``, ``q975``.

    Returns
    -------
    pandas.DataFrame
        The table. If parameters are withheld, numbers are shown that agree with draws of the posterior within
        `MAX_MEAN_GAP` sd, `MAX_SD_GAP` of the sd and `MAX_QUANTILE_GAP` sd of each quantile; if they are shown with a
        warning, within `SHOWN_MEAN_GAP` sd and a factor of `SHOWN_SD_RATIO`. Other numbers are NaN with the reason in
        the column ``withheld``, and ``attrs["judged"]`` sums it up. A log score is shown within `MAX_SCORE_GAP` nats.

    Raises
    ------
    Untrustworthy
        When the fit failed its gate; or parameters are withheld, and no row of the answer agrees, or no draws of the
        posterior were kept.
    """
    answering(fit, answer)
    if not is_judged(fit):
        return ask(fit, rows(fit))
    asked_about = rows(fit)
    return kept(fit, answer, ask(fit, asked_about), ask(reference_of(fit), asked_about))


def kept(fit: Fit, answer: str, own: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of an answer that agree with those by draws of the posterior; raise where none does."""
    limits = limits_of(fit)
    agreement = _agreement(own, reference, limits)
    if not agreement.shown.any():
        refuse(fit, answer)
    agrees = {name: _agrees(name, own, reference, limits) for name in own.columns.difference([*_NOT_OF_PARAMETERS])}
    reasons = _reasons(own, agreement.shown, agrees.get("log_score", True))
    for name, of_rows in agrees.items():
        own[name] = own[name].where(agreement.shown & of_rows)
    own = with_reasons(own, reasons)
    own.attrs["judged"] = agreement.line
    return own


def kept_parts(frame: pd.DataFrame, parts: Sequence[Part], fit: Fit, answer: str, line: str) -> pd.DataFrame:
    """Return `only_agreeing` with ``line`` in ``attrs["judged"]``; raise `Untrustworthy` where no number agrees."""
    counted = [part for part in parts if part.counts]
    if not any((part.agree & frame[_numbers(frame, part)].notna().any(axis=1)).any() for part in counted):
        refuse(fit, answer)
    frame = only_agreeing(frame, parts)
    frame.attrs["judged"] = line
    return frame


def only_agreeing(frame: pd.DataFrame, parts: Sequence[Part]) -> pd.DataFrame:
    """Return an answer without the numbers that disagree, which its column ``withheld`` names.

    Each part is judged by itself: agreement of other numbers of a row does not count.
    """
    texts = [""] * len(frame) if "withheld" not in frame else frame["withheld"].tolist()
    for part in parts:
        reason = f"{part.name or ', '.join(part.columns)}: {FAR}"
        texts = [_joined(reason, text) if far else text for far, text in zip(~part.agree, texts, strict=True)]
        for name in _numbers(frame, part):
            frame[name] = frame[name].where(part.agree)
    return with_reasons(frame, np.array(texts, dtype=object))


def without_of_all(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return an answer without the totals ``names`` in ``attrs``, which disagree or include rows that do."""
    if names:
        frame.attrs |= dict.fromkeys(names, np.nan)
        frame.attrs["withheld"] = [*frame.attrs.get("withheld", []), f"{', '.join(names)} of all rows: {FAR}"]
    return frame


def _numbers(frame: pd.DataFrame, part: Part) -> list[str]:
    return [name for key in part.columns for name in (key, f"mcse_{key}") if name in frame]


def _joined(reason: str, text: str) -> str:
    """Add a reason to those of a row; equal reasons are merged."""
    earlier, separator, last = text.rpartition("; ")
    (names, why), (last_names, last_why) = (entry.partition(": ")[::2] for entry in (reason, last))
    if why == last_why:
        return f"{earlier}{separator}{last_names}, {names}: {why}"
    return "; ".join(filter(None, (text, reason)))


def moments_part(
    own: pd.DataFrame, reference: pd.DataFrame, limits: Limits, names: Sequence[str] = STATISTICS, name: str = ""
) -> tuple[Part, Gaps]:
    """Compare mean, sd and quantiles, in the columns ``names``, and return the gaps too."""
    posterior = stacked(reference, names)
    gaps = gaps_of(stacked(own, names), posterior)
    return Part(tuple(names), gaps_agree(gaps, posterior, limits), name or _MOMENTS), gaps


def scores_of(p: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Return probabilities as normal scores; those of 0 and 1 as if half a draw disagreed."""
    half = np.minimum(np.asarray(error) / 2, 0.5)
    return np.asarray(scipy.special.ndtri(np.where(p == 0, half, np.where(p == 1, 1 - half, p))))


def _reasons(own: pd.DataFrame, shown: np.ndarray, scores: Any) -> np.ndarray:
    """Return which numbers of each row are withheld, and why; a score may be off though its distribution agrees."""
    texts = own["withheld"].to_numpy() if "withheld" in own else np.full(len(own), "", dtype=object)
    is_scored = own["log_score"].notna().to_numpy() if "log_score" in own else False
    score_alone = is_scored & ~np.asarray(scores)
    texts = np.where(score_alone & (texts == ""), f"log_score: {FAR}", texts)
    return np.where(shown, texts, _FAR).astype(object)


def answering(fit: Fit, answer: str) -> Fit:
    """Return the fit if its numbers are shown or can be judged; else raise `Untrustworthy`."""
    return fit if is_judged(fit) else require_shown(fit, answer)


def refuse(fit: Fit, answer: str) -> None:
    """Raise `Untrustworthy`, as no number of an answer agrees with the posterior's."""
    require_shown(fit, answer)
    raise Untrustworthy(f"all of it is {FAR}: {answer} are withheld", "withheld")


def is_judged(fit: Fit) -> bool:
    """Return whether parameters of a fit are off, and draws of the posterior were kept to judge answers."""
    return fit.is_shown and REFERENCE_DRAWS in fit


def has_withheld(fit: Fit) -> bool:
    """Return whether parameters of a judged fit are withheld."""
    return "parameters_withheld" in fit.facts


def limits_of(fit: Fit) -> Limits:
    """Return how far an answer of a fit may be from the posterior's."""
    return (WITHIN if has_withheld(fit) else SHOWN)._replace(then=next_step(fit))


def reference_of(fit: Fit) -> Fit:
    """Return the fit with draws of the posterior in place of the approximation's."""
    groups = {str(name): group.to_dataset() for name, group in fit.tree.children.items()}
    groups.pop("sample_stats", None)  # weights of the approximation's draws
    tree = xr.DataTree.from_dict({**groups, "posterior": groups.pop(REFERENCE_DRAWS)})
    facts = {name: value for name, value in fit.facts.items() if name not in ("withheld", "parameters_withheld")}
    tree.attrs.update(fit.tree.attrs | {"facts": dumps(facts)})
    return Fit.assembled(tree, model=fit.model, observed=fit.observed)


def gaps_agree(gaps: Gaps, known: np.ndarray, limits: Limits) -> np.ndarray:
    """Return where gaps are within the limits, given the posterior's `STATISTICS`; unknown ones do not agree."""
    # without a mean or sd quantiles are compared: of outcomes 0 and 1 all may be 0, and tell nothing
    can_tell = np.isfinite(known[:2]).all(axis=0) | (known[-1] > known[2]) | (not limits.is_strict)
    with np.errstate(invalid="ignore"):
        near = gaps.quantile <= limits.quantile if limits.is_strict else True
    return limits.agree(gaps.mean, gaps.sd) & near & can_tell


def agreeing_draws(fit: Fit, answer: str, draws: Callable[[Fit], np.ndarray]) -> np.ndarray:
    """Return draws (draws, n) of quantities of a fit; NaN where mean, sd or quantiles disagree with the posterior's."""
    own = draws(fit)
    if not is_judged(fit):
        return own
    posterior = statistics_of(draws(reference_of(fit))[None])
    agree = gaps_agree(gaps_of(statistics_of(own[None]), posterior), posterior, limits_of(fit))
    if not agree.any():
        refuse(fit, answer)
    return np.where(agree, own, np.nan)


def line_of(shown: np.ndarray, mean: np.ndarray, sd: np.ndarray, limits: Limits, noun: str = "rows") -> str:
    """Return a line: how far the shown numbers are from the posterior's, and how many are withheld."""
    known = shown & np.isfinite(mean) & np.isfinite(sd)
    within = ""
    if known.any():
        least, most = sd[known].min(), sd[known].max()
        far = np.abs(mean[known]).max()
        within = f": means within {far:.2g} sd of the posterior's, sds {least:.2g} to {most:.2g} times"
    return line_within(shown, within, limits, noun)


def line_within(shown: np.ndarray, within: str, limits: Limits, noun: str = "rows") -> str:
    """Return a line: why an answer was judged, how near its numbers are, and how many are withheld."""
    why = "parameters are withheld" if limits.is_strict else "parameters are shown with a warning"
    withheld = ""
    if not shown.all():
        then = f"; {limits.then}" if limits.then else ""
        withheld = f"; {(~shown).sum()} of {len(shown)} {noun} are too far from it{then}"
    return f"{why}, and this answer is judged by itself{within}{withheld}"


def _agreement(own: pd.DataFrame, reference: pd.DataFrame, limits: Limits = WITHIN) -> Agreement:
    """Compare each row with that of the reference."""
    (_, agrees, *_), gaps = moments_part(own, reference, limits)
    return Agreement(agrees, line_of(agrees, gaps.mean, gaps.sd, limits) if agrees.any() else _FAR)


def stacked(frame: pd.DataFrame, names: Sequence[str]) -> np.ndarray:
    """Return columns of a table as numbers, shape (names, rows)."""
    return np.stack([frame[name].to_numpy(dtype=np.float64) for name in names])


def _agrees(name: str, own: pd.DataFrame, reference: pd.DataFrame, limits: Limits) -> Any:
    """Return the rows whose distribution agrees in which a column may be shown: scores have a limit of their own."""
    if name in STATISTICS or name.startswith("mcse_"):
        return True
    if name != "log_score":
        return not limits.is_strict
    return limits.logs_agree(own[name].to_numpy(), reference[name].to_numpy())
