"""What empirical Bayes returns: a model whose fields were chosen by the data, or why there is none."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from bayeszoo.foundation.gate import Check, verdict
from bayeszoo.model.base import Model
from bayeszoo.model.fields import text

ENVELOPE = "the fields were chosen by these data, so this is an upper envelope and not the evidence of a model"


@dataclass(frozen=True, repr=False)
class EmpiricalBayes:
    """A model whose fields maximize the evidence, or why there is none.

    Attributes
    ----------
    model : Model
        The model at the largest evidence found; where ``boundary`` is not empty, only where the search ended.
    before : Model
        The model that was given.
    log_evidence, log_evidence_before : float
        max over the fields of log p(data), and log p(data) at the fields given. The first is an upper envelope: it
        may not be compared with the evidence of a model whose fields were not chosen by the same data.
    over : tuple of str
        The fields that were chosen.
    boundary : dict of str to str
        What the evidence does, for each field, or entry of one, in which it has no maximum.
    reached, starts : int
        How many climbs ended within `SAME` nats of the best, and how many there were.
    checks : list of Check
        All of them must pass.
    limits : dict of str to float
        Entries that go to an end of theirs where the evidence levels off, and that end, if the others have a maximum
        in this limit; ``model`` and ``log_evidence`` are then those of the limit.
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
        """Whether the chosen fields are an answer: there is a maximum, or one in the limit."""
        return self.status in ("ok", "caution", "in the limit")

    def __repr__(self) -> str:
        """Show the fields before and after, the evidence and the status."""
        ended = "" if self.is_shown else "  (where the search ended)"
        changes = [
            f"{name} {text(getattr(self.before, name))} -> {text(getattr(self.model, name))}" for name in self.over
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
    def reasons(self) -> list[str]:
        """Why the status is not ``"ok"``, a line each."""
        failed = [str(check) for check in self.checks if not check.passed]
        return list(self.boundary.values()) or failed
