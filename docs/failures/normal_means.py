"""The funnel of the centred declaration.

What breaks: NUTS on the textbook's declaration, with the effects themselves as variables. Where tau is small they
must all lie within tau of mu: a funnel, whose neck is far narrower than its mouth. A step that suits the mouth is too
long for the neck, and a step that suits the neck takes for ever in the mouth.

How it looks: PyMC says that there were divergences: trajectories that flew off, most of them in the neck. The draws
shun small tau, so that its lower quantile is too high, by several times here. R-hat need not see it.

What to do: Let `bz.fit` integrate the effects out: NUTS then draws mu and tau alone, and the effects given them,
without a divergence; `exact` needs no sampler. If you extend the declaration in PyMC, take the one of
`centred=False`.
"""

import logging
import warnings

import numpy as np
import pymc as pm

import bayeszoo as bz

logging.getLogger("pymc").setLevel(logging.CRITICAL)
Means = bz.find("normal_means")
schools, model = bz.example(Means), Means(m0=0, s0=5, t0=5)
with warnings.catch_warnings(), model.declare(schools):
    warnings.simplefilter("ignore")
    centred = pm.sample(random_seed=1, chains=4, cores=1, progressbar=False, compute_convergence_checks=False)
marginal = bz.fit(model, schools, "nuts", seed=1)
exact = bz.fit(model, schools, "exact", seed=1)["exact"]["tau"].sel(statistic="q025").item()
for name, tree in (("centred", centred), ("effects integrated out", marginal)):
    stats, tau = tree["sample_stats"], np.asarray(tree["posterior"]["tau"])
    diverged, draws = int(stats["diverging"].sum()), tau.size
    print(f"{name}: {diverged} divergences in {draws} draws, 2.5% quantile of tau {np.quantile(tau, 0.025):.3f}")
print(f"exact: 2.5% quantile of tau {exact:.3f}")

assert centred["sample_stats"]["diverging"].sum() >= 5
assert marginal["sample_stats"]["diverging"].sum() == 0
assert np.quantile(centred["posterior"]["tau"], 0.025) > 2 * exact
assert marginal.attrs["status"] == "ok"
