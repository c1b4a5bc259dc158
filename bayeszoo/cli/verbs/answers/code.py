"""A fit's model as a script of PyMC alone: ``bayeszoo code``."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from bayeszoo.cli import options as opt
from bayeszoo.cli import saved
from bayeszoo.foundation.process import writing
from bayeszoo.tools.references.code import code


def code_command(
    fit_file: opt.FitFile,
    /,
    *,
    output: Annotated[opt.Output, Parameter(help="Script to write; stdout without it.")] = None,
    overwrite: opt.Overwrite = False,
) -> None:
    """Write the model of a fit, on its data, as a script that needs PyMC alone; its log density is checked first."""
    if output is not None:
        writing.require_writable(output, overwrite)
    text = code(saved.load(fit_file, single=True))
    if output is None:
        sys.stdout.write(text)
    else:
        writing.write_text(text, output, overwrite)
        saved.wrote(output)
