"""The content that the table of a model must have, and the conversion of tables to arrays."""

from bayeszoo.data.inputs.base import Arrays, Inputs, Measured, Parsed
from bayeszoo.data.inputs.categories import Categories
from bayeszoo.data.inputs.classed import ClassRegression
from bayeszoo.data.inputs.counted import BinaryRegression, CountRegression
from bayeszoo.data.inputs.counts import Binary, Counts
from bayeszoo.data.inputs.edges import Edges
from bayeszoo.data.inputs.groups.kinds import GroupEvents, GroupMeans, Groups, GroupTrials
from bayeszoo.data.inputs.groups.lines import GroupRows
from bayeszoo.data.inputs.groups.regressions import GroupedBinary, GroupedCounts
from bayeszoo.data.inputs.groups.rows import places_of
from bayeszoo.data.inputs.matrix import Matrix, Real, RealWithError
from bayeszoo.data.inputs.mixed.arrays import levels_by_feature, tables_of
from bayeszoo.data.inputs.mixed.labelled import Labelled
from bayeszoo.data.inputs.mixed.rows import Mixed
from bayeszoo.data.inputs.ratings import Ratings
from bayeszoo.data.inputs.regression import Regression
from bayeszoo.data.inputs.sequences.regressed import RegressedSeries
from bayeszoo.data.inputs.sequences.series import CountSeries, RealSeries, Series, SymbolSeries, first_rows, starts
from bayeszoo.data.inputs.sequences.times import NAMES, labels_of_rows
from bayeszoo.data.inputs.sequences.transitions import Transitions
from bayeszoo.data.inputs.words.corpus import Corpus, Documents
from bayeszoo.data.inputs.words.labelled import LabelledDocuments

__all__ = [
    "NAMES",
    "Arrays",
    "Binary",
    "BinaryRegression",
    "Categories",
    "ClassRegression",
    "Corpus",
    "CountRegression",
    "CountSeries",
    "Counts",
    "Documents",
    "Edges",
    "GroupEvents",
    "GroupMeans",
    "GroupRows",
    "GroupTrials",
    "GroupedBinary",
    "GroupedCounts",
    "Groups",
    "Inputs",
    "Labelled",
    "LabelledDocuments",
    "Matrix",
    "Measured",
    "Mixed",
    "Parsed",
    "Ratings",
    "Real",
    "RealSeries",
    "RealWithError",
    "RegressedSeries",
    "Regression",
    "Series",
    "SymbolSeries",
    "Transitions",
    "first_rows",
    "labels_of_rows",
    "levels_by_feature",
    "places_of",
    "starts",
    "tables_of",
]
