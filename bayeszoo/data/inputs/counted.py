"""A counted outcome, successes of trials or events, and the features that explain it."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from bayeszoo.data.inputs.base import Arrays, Parsed
from bayeszoo.data.inputs.counts import Outcomes, read_outcomes
from bayeszoo.data.inputs.labels import OUTCOMES
from bayeszoo.data.inputs.regression import WithFeatures
from bayeszoo.data.table.table import Column, Table, shown, to_counts, to_positive
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Options


@dataclass(frozen=True)
class BinaryRegression(WithFeatures):
    """One column of the outcome, 0 or 1 or two labels with the option ``positive``, and columns of features.

    Or columns of successes and ``trials``: the outcome is then the number of successes.
    """

    options = WithFeatures.options | {"positive", "successes", "trials"}
    kind, if_constant = np.int64, "no slope is known but by the prior"
    companion, roles = "trials", MappingProxyType({"trials": to_counts})
    elsewhere = {"group": "logistic_intercepts has an intercept for each group"}  # noqa: RUF012
    holds = (
        "one column of 0 and 1 ({0.name}, or say which with --target; or two labels, with --positive), or columns of "
        "--successes and --trials, and columns of features, all others or some of them (--features), of real numbers "
        "or of text, which has levels (--levels)"
    )

    def _checked_options(self, table: Table, missing: str, options: Options) -> Options:
        chosen = super()._checked_options(table, missing, options)
        successes = chosen.pop("successes", None)
        if successes is not None and not {"target", "positive"}.isdisjoint(chosen):
            raise InputError("successes are the outcome: leave out --target and --positive", "conflicting_options")
        if successes is None and not {"target", self.name} & {*chosen, *table.columns}:
            successes = "successes" if {"successes", "trials"} <= table.columns.keys() else None
        if successes is not None and "trials" not in {*chosen, *table.columns}:
            raise InputError(
                "successes and trials go together",
                "options_go_together",
                hint="name the column of trials with --trials",
            )
        return chosen if successes is None else {**chosen, "target": successes}

    def _refuse_together(self, outcome: Column, values: np.ndarray, sizes: np.ndarray) -> None:
        above = np.flatnonzero(values > sizes)
        if len(above):
            raise outcome.error(
                f"successes are more than {shown(sizes[above[0]])} trials", "successes_above_trials", above
            )

    def observations(self, arrays: Arrays) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return a failure and a success for each row with trials, and the count of each."""
        if self.companion not in arrays:
            return super().observations(arrays)
        twice = np.repeat(np.arange(self.size(arrays)), 2)
        single = {name: values for name, values in self.reordered(arrays, twice).items() if name != self.companion}
        successes, trials = arrays[self.name], arrays[self.companion]
        counts = np.stack([trials - successes, successes], axis=1).astype(np.int64)
        return {**single, self.name: np.tile([0, 1], self.size(arrays))}, np.ravel(counts)

    def other_forms(self, arrays: Arrays) -> list[dict[str, np.ndarray]]:
        """Return rows of one, two, three or four trials with equal outcomes."""
        if self.companion in arrays:
            return []
        trials = 1 + np.arange(self.size(arrays)) % 4
        return [{**arrays, self.name: arrays[self.name] * trials, self.companion: trials}]

    def _outcome(self, column: Column, options: Options, like: Arrays | None) -> Outcomes:
        if self.companion in options:
            return Outcomes(to_counts(column))
        labels = getattr(like, "reading", {}).get(OUTCOMES, ())
        return read_outcomes(column, options.get("positive"), labels)


@dataclass(frozen=True)
class CountRegression(WithFeatures):
    """One column of counts, perhaps one of the time of observation, ``exposure``, and columns of features.

    A column named ``exposure`` is used as exposure unless an option names another.
    """

    options = WithFeatures.options | {"exposure"}
    kind, if_constant = np.int64, "no slope is known but by the prior"
    companion, roles = "exposure", MappingProxyType({"exposure": to_positive})
    elsewhere = {"group": "poisson_intercepts has an intercept for each group"}  # noqa: RUF012
    holds = (
        "one column of counts ({0.name}, or say which with --target), perhaps one of how long each row was observed "
        "(--exposure), and columns of features, all others or some of them (--features), of real numbers or of text, "
        "which has levels (--levels)"
    )

    def _outcome(self, column: Column, options: Options, like: Arrays | None) -> Outcomes:
        return Outcomes(to_counts(column))

    def _parse_new(self, table: Table, missing: str, options: Options, like: Arrays | None) -> Parsed:
        parsed = super()._parse_new(table, missing, options, like)
        if like is not None and self.companion in like and self.companion not in parsed.arrays:
            raise InputError(
                "the fit has an exposure, these rows have none",
                "exposure_differs",
                hint="give its column with --exposure",
            )
        if like is not None and self.companion in parsed.arrays and self.companion not in like:
            raise InputError("the fit has no exposure, these rows do", "exposure_differs", hint="leave out --exposure")
        return parsed

    def other_forms(self, arrays: Arrays) -> list[dict[str, np.ndarray]]:
        """Return the same counts with unequal exposures."""
        return [] if self.companion in arrays else [{**arrays, self.companion: 0.5 + np.arange(self.size(arrays)) % 4}]
