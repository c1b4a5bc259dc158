"""Posteriors whose answer is known, in posteriordb's layout: ``bayeszoo export-references``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bayeszoo.cli import options as opt
from bayeszoo.cli import terminal
from bayeszoo.tools.references.posteriors import export_references


def export_references_command(
    folder: Annotated[Path, Parameter(help="Folder to write, a new one.")],
    /,
    *names: Annotated[str, Parameter(help="References, such as eight_schools-normal_means; all by default.")],
    overwrite: opt.Overwrite = False,
) -> None:
    """Write posteriors whose answer is known in posteriordb's layout: model, data, draws, evidence and moments."""
    written = export_references(folder, names or None, overwrite)
    terminal.show_lines(f"wrote {len(written)} posteriors: {', '.join(written)}")
