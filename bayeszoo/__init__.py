"""The textbook Bayesian models in PyMC, checked against closed forms: never a wrong number silently.

    import bayeszoo as bz
    M = bz.find("beta_bernoulli")
    tree = bz.fit(M(a=1, b=1), "data.csv", method="nuts", seed=1)
    bz.compare(M(), "data.csv", methods=["exact", "map", "advi", "nuts"])

Importing it imports neither PyMC nor ArviZ.
"""

from bayeszoo import plots
from bayeszoo.accumulated import Accumulated
from bayeszoo.assign import assign
from bayeszoo.bias_variance import bias_variance
from bayeszoo.bias_variance_plot import plot_bias_variance
from bayeszoo.chains import stationary
from bayeszoo.check import check
from bayeszoo.chunks import accumulate, read_chunks
from bayeszoo.compare import compare
from bayeszoo.components import components
from bayeszoo.data import Data, Example, example, read
from bayeszoo.decode import decode, forecast
from bayeszoo.document_scores import document_scores
from bayeszoo.empirical import empirical_bayes
from bayeszoo.enumeration import enumerate_posterior
from bayeszoo.errors import InputError, Interrupted, NumericalError, Untrustworthy
from bayeszoo.factor_plots import plot_ard, plot_biplot, plot_scree
from bayeszoo.files import load, save
from bayeszoo.fit import fit
from bayeszoo.full_bayes import full_bayes
from bayeszoo.gate import Check, gate
from bayeszoo.grid import evidence_grid
from bayeszoo.held_out import held_out
from bayeszoo.identified import identified
from bayeszoo.lasso_path import lasso_path, plot_lasso_path
from bayeszoo.mackay import mackay
from bayeszoo.ngrams import ngrams, vowel_or_consonant
from bayeszoo.pagerank import pagerank
from bayeszoo.predict import predict
from bayeszoo.predictive_check import predictive_check
from bayeszoo.projection import project, reconstruct
from bayeszoo.report import report
from bayeszoo.residual_plots import plot_predictive_check, plot_residuals
from bayeszoo.residuals import residuals
from bayeszoo.select import select
from bayeszoo.select_plot import plot_select
from bayeszoo.state_plot import plot_states
from bayeszoo.summary import summarize
from bayeszoo.terms import polynomials, subsets
from bayeszoo.topic_plot import plot_topics
from bayeszoo.topics import proportions, topics
from bayeszoo.update import stream, update
from bayeszoo.zoo import find, names

__all__ = [
    "Accumulated",
    "Check",
    "Data",
    "Example",
    "InputError",
    "Interrupted",
    "NumericalError",
    "Untrustworthy",
    "accumulate",
    "assign",
    "bias_variance",
    "check",
    "compare",
    "components",
    "decode",
    "document_scores",
    "empirical_bayes",
    "enumerate_posterior",
    "evidence_grid",
    "example",
    "find",
    "fit",
    "forecast",
    "full_bayes",
    "gate",
    "held_out",
    "identified",
    "lasso_path",
    "load",
    "mackay",
    "names",
    "ngrams",
    "pagerank",
    "plot_ard",
    "plot_bias_variance",
    "plot_biplot",
    "plot_lasso_path",
    "plot_predictive_check",
    "plot_residuals",
    "plot_scree",
    "plot_select",
    "plot_states",
    "plot_topics",
    "plots",
    "polynomials",
    "predict",
    "predictive_check",
    "project",
    "proportions",
    "read",
    "read_chunks",
    "reconstruct",
    "report",
    "residuals",
    "save",
    "select",
    "stationary",
    "stream",
    "subsets",
    "summarize",
    "topics",
    "update",
    "vowel_or_consonant",
]
