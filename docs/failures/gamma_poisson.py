"""Counts that vary more than Poisson's.

What breaks: A Poisson's variance is its mean. Earthquakes come in active and quiet years: the variance of their
yearly counts is more than twice the mean. The posterior of the rate is then too narrow, and exactly computed all the
same.

How it looks: Nothing in the fit shows it: closed form, NUTS and gate agree. A posterior predictive check of the
standard deviation and of the lag-1 autocorrelation does.

What to do: Give the rate states of its own (`hmm_poisson`), and compare.
"""

import bayeszoo as bz

years = bz.example(bz.find("hmm_poisson"), "earthquakes")["y"]
Counts = bz.find("gamma_poisson")
tree = bz.fit(Counts.weak(bz.read(Counts, years)), years, "exact", seed=1)
checks = bz.predictive_check(tree, seed=1)
print("status:", tree.attrs["status"])
print(
    checks.filter(regex="deviation|lag-1", axis=0)[["observed", "q025", "q975", "p_value", "mcse"]].round(3).to_string()
)

assert tree.attrs["status"] == "ok"
assert checks.loc["standard deviation", "p_value"] < 0.01
