# %% [markdown]
# # Write your own model in one file
#
# A model of the zoo is one file. Here a new one is written from nothing, then a mistake is put into it: first
# bayeszoo shows that the file is right, then that it sees the mistake, and at last that a file without mistakes can
# still be the wrong model.

# %%
import tempfile
from pathlib import Path

import numpy as np

import bayeszoo as bz

# %matplotlib inline
# %config InlineBackend.figure_formats = ["svg"]

# %% [markdown]
# ## The file
#
# Waiting times between events that come at a constant rate are exponential. With a Gamma prior the posterior of the
# rate is Gamma again. The fields of the dataclass are the prior; the data come in as arguments; every method is a
# formula of the textbook. Its bases say what it can do: `Conjugate` has a closed form, `Observable` a distribution of
# each row.

# %%
SOURCE = '''"""Exponential waits: the rate of events from the times between them.

rate ~ Gamma(a, rate b),  y_n ~ Exponential(rate),  n = 1..N        (Gelman et al., BDA3, section 2.6)
"""

from dataclasses import dataclass

import lazy_loader
import numpy as np
import scipy

from bayeszoo.data.inputs import Real
from bayeszoo.distributions.special import log_rising
from bayeszoo.model import Conjugate, Observable, Posterior, Stats, positive

pm = lazy_loader.load("pymc")


class Times(Real):
    """Times: their unit is free, their zero is not."""

    def in_units(self, arrays, factor, shift=0.0):
        return super().in_units(arrays, factor)


@dataclass(frozen=True)
class Waits(Stats):
    n: int = 0
    total: float = 0.0


@dataclass(frozen=True)
class ExponentialWaits(Conjugate, Observable):
    a: float = positive(1.0, "prior shape")
    b: float = positive(1.0, "prior rate", units=1)
    inputs = Times("y")

    @classmethod
    def weak(cls, data):
        return cls(1.0, np.mean(data["y"]) or 1.0)

    def simulate(self, rng, size=20):
        rate = rng.gamma(self.a, 1 / self.b)
        return {"rate": rate}, {"y": rng.exponential(1 / rate, size)}

    def declare(self, data):
        with pm.Model() as model:
            rate = pm.Gamma("rate", alpha=self.a, beta=self.b)
            pm.Exponential("y", lam=rate, observed=pm.Data("y_data", data["y"], dims="row"), dims="row")
        return model

    def statistics(self, data):
        return Waits(len(data["y"]), np.sum(data["y"]))

    def compressed(self, stats):
        with pm.Model() as model:
            rate = pm.Gamma("rate", alpha=self.a, beta=self.b)
            pm.Potential("y", np.float64(stats.n) * pm.math.log(rate) - np.float64(stats.total) * rate)
        return model

    def updated(self, stats):
        return ExponentialWaits(self.a + stats.n, self.b + stats.total)

    def posterior(self, stats):
        later = self.updated(stats)
        return Posterior({"rate": scipy.stats.gamma(later.a, scale=1 / later.b)})

    def log_evidence(self, stats):
        later = self.updated(stats)
        return log_rising(self.a, stats.n) + self.a * np.log(self.b) - later.a * np.log(later.b)

    def predictive(self, stats, data):
        later = self.updated(stats)
        return scipy.stats.lomax(later.a, scale=np.full(len(data["y"]), later.b))

    def likelihood(self, params, data):
        return scipy.stats.expon(scale=1 / np.asarray(params["rate"])[..., None] + np.zeros(len(data["y"])))
'''

# %% [markdown]
# The file may be anywhere: it is named by its path and its class, here and on the command line. Nothing is registered,
# and no other file changes.

# %%
file = Path(tempfile.mkdtemp()) / "exponential_waits.py"


def write(text):
    """Write the model's file, which is run anew when its text has changed."""
    file.write_text(text)
    return bz.find(f"{file}:ExponentialWaits")


Waits = write(SOURCE)
print(Waits())

# %% [markdown]
# ## Is it right?
#
# `bz.check` sets the parts of the file against each other: PyMC's density against SciPy's, the log joint less the log
# posterior against the evidence at fifty points, the evidence against the product of one-step predictions, simulated
# parameters against their posterior, the model in other units against itself. Each check has its figure and its
# limit.

# %%
found = bz.check(Waits, sampler=False)
for one in found:
    print(f"{'ok ' if one.passed else 'BAD'} {one.name:<45} {one.value:.3g} (must be {one.limit})")
assert all(one.passed for one in found)
assert len(found) > 15

# %% [markdown]
# ## A mistake
#
# Scale for rate, a lost constant, a sum that should be a mean: such mistakes give numbers that look like any other.
# Here the evidence loses the prior's constant.

# %%
Wrong = write(SOURCE.replace("+ self.a * np.log(self.b) - later.a", "- later.a"))
caught = [one for one in bz.check(Wrong, sampler=False) if not one.passed]
for one in caught:
    print(f"BAD {one.name:<45} {one.value:.3g} (must be {one.limit})")
assert "candidate identity" in [one.name for one in caught]

# %% [markdown]
# ## It works, on all methods
#
# Nothing else has to be written: fits, comparisons, predictions and the command line work on the new model.

# %%
Waits = write(SOURCE)
minutes = bz.example(bz.find("gaussian_mixture"), "faithful")["Y"][:, 1]  # between eruptions of Old Faithful
waits = bz.read(Waits, {"minutes": minutes})
model = Waits.weak(waits)
table = bz.compare(model, waits, methods=["exact", "map", "laplace", "nuts"], seed=1).set_index("fit")
table[["kind", "mean", "sd", "mcse_mean", "error_sd", "error_mcse", "log_evidence", "status"]]

# %% tags=["hide-cell"]
assert (table["status"] == "ok").all()
assert abs(table.loc["nuts", "error_mcse"]) < 4.4
assert np.isclose(1 / table.loc["exact", "mean"], minutes.mean(), rtol=0.01)

# %% [markdown]
# ## Right, and not true
#
# All methods agree, up to their errors. What they agree on is a constant rate of eruptions. Data sets made by the
# fitted model tell that Old Faithful is not like that: it is far more regular than chance.

# %%
tree = bz.fit(model, waits, "exact", seed=1)
checks = bz.predictive_check(tree, ["mean", "standard deviation", "minimum"], seed=1)
checks[["observed", "mean", "q025", "q975", "p_value", "mcse"]]

# %% tags=["hide-cell"]
assert checks.loc["standard deviation", "p_value"] < 0.01 or checks.loc["standard deviation", "p_value"] > 0.99
assert 0.05 < checks.loc["mean", "p_value"] < 0.95

# %%
bz.plot_predictive_check(tree, ["mean", "standard deviation", "minimum"], seed=1)

# %% [markdown]
# The contract says that the mathematics of a file agrees with itself; predictive checks and comparisons say whether
# the model has to do with the world. bayeszoo makes both, and takes neither for the other. What a model must, should
# and may have is in [the contract](../guide/contract.md).
