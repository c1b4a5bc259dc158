"""The textbook Bayesian models in PyMC, checked against closed forms: never a wrong number silently.

    import bayeszoo as bz
    M = bz.find("beta_bernoulli")
    tree = bz.fit(M(a=1, b=1), "data.csv", method="nuts", seed=1)
    bz.compare(M(), "data.csv", methods=["exact", "map", "advi", "nuts"])

Importing it imports neither PyMC nor ArviZ.
"""

from bayeszoo.chains import stationary
from bayeszoo.check import check
from bayeszoo.compare import compare
from bayeszoo.data import Data, Example, example, read
from bayeszoo.empirical import empirical_bayes
from bayeszoo.errors import InputError, Interrupted, NumericalError, Untrustworthy
from bayeszoo.files import load, save
from bayeszoo.fit import fit
from bayeszoo.gate import Check, gate
from bayeszoo.ngrams import ngrams, vowel_or_consonant
from bayeszoo.pagerank import pagerank
from bayeszoo.predict import predict
from bayeszoo.select import select
from bayeszoo.summary import summarize
from bayeszoo.update import stream, update
from bayeszoo.zoo import find, names

__all__ = [
    "Check",
    "Data",
    "Example",
    "InputError",
    "Interrupted",
    "NumericalError",
    "Untrustworthy",
    "check",
    "compare",
    "empirical_bayes",
    "example",
    "find",
    "fit",
    "gate",
    "load",
    "names",
    "ngrams",
    "pagerank",
    "predict",
    "read",
    "save",
    "select",
    "stationary",
    "stream",
    "summarize",
    "update",
    "vowel_or_consonant",
]
