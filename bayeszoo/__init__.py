"""The textbook Bayesian models in PyMC, checked against closed forms: never a wrong number silently.

    import bayeszoo as bz
    M = bz.find("beta_bernoulli")
    tree = bz.fit(M(a=1, b=1), "data.csv", method="nuts", seed=1)
    bz.compare(M(), "data.csv", methods=["exact", "map", "advi", "nuts"])

Importing it imports neither PyMC nor ArviZ. The public names are grouped below as the folders are: a lower group
imports nothing from a higher one.
"""

import bayeszoo.foundation.process.starting  # noqa: F401, I001 (before all others)
from typing import TYPE_CHECKING

from bayeszoo import plots
from bayeszoo.answers.latent.assign import assign
from bayeszoo.answers.classes.classify import classify
from bayeszoo.answers.classes.explain import explain
from bayeszoo.answers.classes.scores import calibration, confusion, roc
from bayeszoo.answers.latent.clusters import Clusters, clusters, row_density
from bayeszoo.answers.latent.complete import complete
from bayeszoo.answers.effects import feature_effects
from bayeszoo.answers.series.decode import decode
from bayeszoo.answers.series.forecast import forecast
from bayeszoo.answers.latent.factors import project, reconstruct
from bayeszoo.answers.function import function_values
from bayeszoo.answers.group_estimates import group_estimates
from bayeszoo.answers.information import entropy, kl, mutual_information
from bayeszoo.answers.predict import predict
from bayeszoo.answers.checks.predictive_check import predictive_check
from bayeszoo.answers.checks.residuals import residuals
from bayeszoo.answers.steps import Steps, steps
from bayeszoo.answers.latent.topics import document_scores, proportions, topics
from bayeszoo.comparison.best import best_of_groups
from bayeszoo.comparison.by import contrasts, fit_by
from bayeszoo.comparison.candidates import components
from bayeszoo.comparison.compare import compare
from bayeszoo.comparison.evidence.empirical_bayes import empirical_bayes
from bayeszoo.comparison.evidence.full_bayes import full_bayes
from bayeszoo.comparison.evidence.grid import evidence_grid
from bayeszoo.comparison.held_out_rows import held_out_error
from bayeszoo.comparison.held_out_words import held_out
from bayeszoo.comparison.many import fit_many
from bayeszoo.comparison.prequential import prequential
from bayeszoo.comparison.select import select
from bayeszoo.contract.check import check
from bayeszoo.data.read import Data, Example, example, read
from bayeszoo.distributions import priors
from bayeszoo.errors import Caution, InputError, Interrupted, NumericalError, Untrustworthy
from bayeszoo.families.lasso.path import lasso_path
from bayeszoo.families.linear.design import identified
from bayeszoo.families.linear.terms import orders, polynomials, subsets
from bayeszoo.families.linear.weight_priors import weight_priors
from bayeszoo.families.markov.stationary import stationary
from bayeszoo.fit import fit
from bayeszoo.foundation.gate import Check, gate
from bayeszoo.inference.methods.enumeration import enumerate_posterior
from bayeszoo.model.parts.accumulated import Accumulated
from bayeszoo.model.parts.chunks import read_chunks
from bayeszoo.model.find import find, names
from bayeszoo.model.incomplete import Incomplete, read_incomplete
from bayeszoo.model.many_files.accumulate import accumulate
from bayeszoo.model.many_files.read_files import read_files
from bayeszoo.model.many_files.rows import FileRows
from bayeszoo.model.outer.over import over
from bayeszoo.model.suggest import suggest
from bayeszoo.model.parts.update import stream, update
from bayeszoo.plots.clusters import plot_clusters
from bayeszoo.plots.decomposition import plot_due_to
from bayeszoo.plots.families.classes import plot_calibration, plot_roc
from bayeszoo.plots.families.discriminants import plot_discriminants
from bayeszoo.plots.families.effects import plot_effects, plot_slopes
from bayeszoo.plots.families.factors import plot_ard, plot_biplot, plot_scree
from bayeszoo.plots.families.function import plot_function
from bayeszoo.plots.families.steps import plot_steps
from bayeszoo.plots.families.information import plot_information
from bayeszoo.plots.families.lasso_path import plot_lasso_path
from bayeszoo.plots.families.latent import plot_states, plot_topics
from bayeszoo.plots.families.levels import plot_levels
from bayeszoo.plots.families.nodes import plot_nodes
from bayeszoo.plots.families.pooling import plot_pooling
from bayeszoo.plots.groups import plot_groups
from bayeszoo.plots.neighbourhoods import plot_density, plot_neighbours
from bayeszoo.plots.prequential import plot_prequential
from bayeszoo.plots.relevance import plot_relevance
from bayeszoo.plots.residuals import plot_predictive_check, plot_residuals
from bayeszoo.plots.select import plot_select
from bayeszoo.report.explore.page import explore
from bayeszoo.report.notebook import show_in_notebooks, view
from bayeszoo.report.page import report
from bayeszoo.results.arviz_groups import extend
from bayeszoo.results.figures import facts, joint_covariance
from bayeszoo.results.files import load, save
from bayeszoo.results.summary import summarize
from bayeszoo.tools.resampling.bayesbag import bayesbag
from bayeszoo.tools.references.benchmark import Benchmark, Target, benchmark
from bayeszoo.tools.resampling.bayesian import bootstrap
from bayeszoo.tools.resampling.classical import bootstrap_mle
from bayeszoo.tools.draws.bridge import Bridge, bridge
from bayeszoo.tools.references.code import code
from bayeszoo.tools.decomposition.due_to import due_to
from bayeszoo.tools.decomposition.kitagawa import kitagawa
from bayeszoo.tools.neighbourhoods.density import density
from bayeszoo.tools.neighbourhoods.graphlets import graphlets
from bayeszoo.tools.draws.judge import Judgement, judge
from bayeszoo.tools.neighbourhoods.kmeans import kmeans
from bayeszoo.tools.maximum_entropy import maximum_entropy
from bayeszoo.tools.neighbourhoods.neighbours import knn
from bayeszoo.tools.ngrams import ngrams, vowel_or_consonant
from bayeszoo.tools.neighbourhoods.pagerank import pagerank
from bayeszoo.tools.references.posteriors import Reference, export_references, references
from bayeszoo.tools.draws.relabel import Relabelled, relabel
from bayeszoo.tools.svm import svm
from bayeszoo.tools.trees import trees

__all__ = ["Caution", "InputError", "Interrupted", "NumericalError", "Untrustworthy"]
# Data, models and functions of families.
__all__ += ["Accumulated", "Data", "Example", "FileRows", "accumulate", "example", "find", "names", "over", "read"]
__all__ += ["Incomplete", "read_chunks", "read_files", "read_incomplete", "suggest", "weight_priors"]
__all__ += ["identified", "ngrams", "orders", "pagerank", "polynomials", "stationary", "subsets", "vowel_or_consonant"]
# Fits: made, judged, read and stored.
__all__ += ["Check", "enumerate_posterior", "extend", "fit", "gate", "load", "save", "stream", "summarize", "update"]
__all__ += ["facts", "joint_covariance", "view"]
# What a fit is asked.
__all__ += ["calibration", "classify", "confusion", "explain", "roc"]
__all__ += ["entropy", "kl", "mutual_information"]
__all__ += [
    "Clusters",
    "assign",
    "clusters",
    "decode",
    "document_scores",
    "feature_effects",
    "forecast",
    "function_values",
    "group_estimates",
]
__all__ += ["Steps", "predict", "predictive_check", "row_density", "steps"]
__all__ += ["complete", "project", "proportions", "reconstruct", "residuals", "topics"]
# Fits, models and prior fields compared; a model checked.
__all__ += ["check", "compare", "components", "empirical_bayes", "evidence_grid", "full_bayes", "held_out"]
__all__ += ["prequential", "priors"]
__all__ += ["best_of_groups", "contrasts", "fit_by", "fit_many", "held_out_error", "select"]
# Bayesian bootstrap, BayesBag, decompositions of a change, and other answers that need no fit.
__all__ += ["bayesbag", "bootstrap", "density", "due_to", "kitagawa", "kmeans", "knn", "maximum_entropy", "svm"]
__all__ += ["bootstrap_mle", "graphlets", "trees"]
# Posteriors whose answer is known, and samplers of them.
__all__ += ["Benchmark", "Target", "benchmark"]
__all__ += ["Reference", "export_references", "references"]
# Draws of any sampler, and the evidence from them; a model as a script of PyMC alone.
__all__ += ["Bridge", "Judgement", "Relabelled", "bridge", "code", "judge", "relabel"]
# Pictures and the pages.
__all__ += ["explore"]
__all__ += ["plot_calibration", "plot_discriminants", "plot_information", "plot_roc"]
__all__ += ["lasso_path", "plot_ard", "plot_biplot", "plot_due_to", "plot_effects", "plot_groups", "plot_lasso_path"]
__all__ += [
    "plot_clusters",
    "plot_density",
    "plot_neighbours",
    "plot_nodes",
    "plot_pooling",
    "plot_predictive_check",
    "plot_prequential",
    "plot_relevance",
    "plot_residuals",
    "plot_scree",
    "plot_select",
    "plot_slopes",
]
__all__ += ["plot_function", "plot_levels", "plot_states", "plot_steps", "plot_topics", "plots", "report"]

show_in_notebooks()

__version__: str
if not TYPE_CHECKING:  # which would take any name for an attribute

    def __getattr__(name: str) -> str:
        """Return ``__version__``: what reads it is imported only when it is asked for."""
        if name != "__version__":
            raise AttributeError(f"module 'bayeszoo' has no attribute {name!r}")
        from importlib.metadata import version

        return version("bayeszoo")
