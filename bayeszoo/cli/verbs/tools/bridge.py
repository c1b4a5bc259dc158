"""The log evidence of a fit by bridge sampling: ``bayeszoo bridge``."""

from __future__ import annotations

from bayeszoo.cli import options as opt
from bayeszoo.cli import saved, terminal
from bayeszoo.errors import Untrustworthy
from bayeszoo.foundation.gate import as_dict
from bayeszoo.tools.draws.bridge import Bridge, bridge


def bridge_command(fit_file: opt.FitFile, /, *, seed: opt.Seed = 0, as_json: opt.Json = False) -> int:
    """Estimate the log evidence of a fit from its draws by bridge sampling, with its error; withheld where checks fail.

    Parameters
    ----------
    seed
        Seed of the proposals.
    """
    tree = saved.load(fit_file, single=True)
    answer = bridge(tree, seed=seed)
    if as_json:
        terminal.print_json({**saved.about(tree), **_document(answer)})
    else:
        terminal.show_lines(str(answer))
    return Untrustworthy.exit_code if answer.status == "failed" else 0


def _document(answer: Bridge) -> dict[str, object]:
    shown = None if answer.status == "failed" else answer.log_evidence
    error = None if shown is None else answer.error
    return {"log_evidence": shown, "error": error, "halves": list(answer.halves), **as_dict(answer.checks)}
