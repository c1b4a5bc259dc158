"""Factor scores and reconstructions of rows: ``bayeszoo project`` and ``reconstruct``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayeszoo.answers.latent.factors import project, reconstruct
from bayeszoo.cli import options as opt
from bayeszoo.cli import saved
from bayeszoo.cli.answers import ANSWER, AnswerOptions
from bayeszoo.cli.groups import by_group
from bayeszoo.foundation.named import Document

if TYPE_CHECKING:
    import pandas as pd


@by_group
def project_command(
    fit_file: opt.FitFile,
    data: opt.NewFile = None,
    /,
    *,
    shown: AnswerOptions = ANSWER,
    table: opt.TableOptions = opt.TABLE,
) -> None:
    """Compute the factor scores of rows, from a saved fit of ppca or bayesian_pca.

    Parameters
    ----------
    data
        Table of new rows; without it the rows of the fit.
    """
    shown.answer_rows(project, fit_file, data, table, _show)


@by_group
def reconstruct_command(
    fit_file: opt.FitFile,
    data: opt.NewFile = None,
    /,
    *,
    shown: AnswerOptions = ANSWER,
    table: opt.TableOptions = opt.TABLE,
) -> None:
    """Reconstruct rows from the factors of a saved fit, and fill in missing values.

    Parameters
    ----------
    data
        Table of new rows; without it the rows of the fit.
    """
    shown.answer_rows(reconstruct, fit_file, data, table, _show)


def _show(frame: pd.DataFrame, whole: Document, digits: int | None) -> None:
    """Print the first rows."""
    saved.show_rows(frame, saved.title(whole), spare=("median", "sd"), words=["column", "what"], digits=digits)
