"""What the table of a model must hold, and the arrays that become of it."""

from bayeszoo.inputs.base import Arrays, Inputs, Parsed
from bayeszoo.inputs.binary import Binary
from bayeszoo.inputs.categories import Categories
from bayeszoo.inputs.corpus import Corpus
from bayeszoo.inputs.counts import Counts
from bayeszoo.inputs.documents import Documents
from bayeszoo.inputs.matrix import Matrix
from bayeszoo.inputs.real import Real
from bayeszoo.inputs.regression import Regression
from bayeszoo.inputs.series import CountSeries, RealSeries, Series, starts
from bayeszoo.inputs.series_of_symbols import SymbolSeries
from bayeszoo.inputs.transitions import Transitions

__all__ = [
    "Arrays",
    "Binary",
    "Categories",
    "Corpus",
    "CountSeries",
    "Counts",
    "Documents",
    "Inputs",
    "Matrix",
    "Parsed",
    "Real",
    "RealSeries",
    "Regression",
    "Series",
    "SymbolSeries",
    "Transitions",
    "starts",
]
