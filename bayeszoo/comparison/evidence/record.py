"""The result of empirical Bayes: a model whose fields were chosen by the data, or why there is none."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from bayeszoo.foundation.gate import Check, verdict
from bayeszoo.model.base import Model
from bayeszoo.model.fields import hyperparameters, text

ENVELOPE = "the fields were chosen by these data, so this is an upper envelope and not the evidence of a model"


@dataclass(frozen=True, repr=False)
class EmpiricalBayes:
    """A model whose fields maximize the evidence, or why there is none.

    Attributes
    ----------
    model : Model
        The model at the largest evidence found; if ``boundary`` is not empty, where the search ended.
    before : Model
        The model before.
    log_evidence, log_evidence_before : float
        The maximum of log p(data) over the fields, and log p(data) at the fields before. The maximum is an upper
        envelope: do not compare it with the evidence of a model whose fields were not chosen by the same data.
    over : tuple of str
        The fields that were chosen.
    boundary : dict of str to str
        What the evidence does along each field, or entry of a field, in which it has no maximum.
    reached, starts : int
        Number of climbs that ended within `SAME` nats of the best one, and number of climbs.
    checks : list of Check
        All of them must pass.
    limits : dict of str to float
        Entries that go to an end of their range where the evidence levels off, and that end, if the other entries have
        a maximum in this limit; ``model`` and ``log_evidence`` are then those where the search ended, far towards it.
    """

    model: Model
    before: Model
    over: tuple[str, ...]
    boundary: dict[str, str]
    reached: int
    starts: int
    checks: list[Check]
    log_evidence: float = math.nan
    log_evidence_before: float = math.nan
    limits: dict[str, float] = field(default_factory=dict)

    @property
    def status(self) -> str:
        """``"ok"``, ``"caution"``, ``"in the limit"``, ``"at the boundary"`` or ``"not converged"``."""
        if self.boundary and not self.limits:
            return "at the boundary"
        worst = verdict(self.checks)
        return "not converged" if worst == "failed" else "in the limit" if self.limits else worst

    @property
    def is_shown(self) -> bool:
        """Whether the chosen fields are an answer: the evidence has a maximum, perhaps in a limit."""
        return self.status in ("ok", "caution", "in the limit")

    def __repr__(self) -> str:
        """Show the fields before and after, the evidence and the status."""
        ended = "" if self.is_shown else "  (where the search ended)"
        changes = [
            f"{name} {text(getattr(self.before, name))} -> {text(self.limits.get(name, getattr(self.model, name)))}"
            for name in self.over
        ]
        lines = [
            f"{self.model.name}: {', '.join(changes)}{ended}",
            *self.about_evidence(),
            ENVELOPE,
            f"{self.reached} of {self.starts} climbs reached the highest maximum",
            f"status {self.status}",
        ]
        return "\n".join([*lines, *self.reasons])

    def about_evidence(self, shown: bool = True, decimals: int = 2) -> list[str]:
        """Return lines about the evidence; its value at the chosen fields may be withheld."""
        after = f"{self.log_evidence:.{decimals}f}" if shown else "withheld"
        return [f"log evidence {self.log_evidence_before:.{decimals}f} -> {after}"]

    @property
    def next_step(self) -> str:
        """What to try where the fields are withheld; else an empty string."""
        if self.is_shown:
            return ""
        if not self.boundary:
            return f"try --starts {4 * self.starts}"
        name = next(iter(self.boundary)).partition("[")[0]
        value = np.asarray(getattr(self.before, name))
        if type(self) is EmpiricalBayes and hyperparameters(self.before)[name].positive and not value.ndim:
            prior = f"--prior '{name}=HalfNormal({value:.3g})'"
            return (
                f"give {name} a prior and integrate over it: try bayeszoo fit {self.before.name} --method exact {prior}"
            )
        return f"fix {name} at values that you can defend: try bayeszoo fit {self.before.name} --set {name}=VALUE"

    @property
    def reasons(self) -> list[str]:
        """Why the status is not ``"ok"``, a line each."""
        failed = [str(check) for check in self.checks if not check.passed]
        return list(self.boundary.values()) or failed
