"""Few groups, and the best value of their spread.

What breaks: Groups that differ, but of few rows each. The likelihood is highest at a standard deviation of 0 in a good
part of all samples, and always takes the spread for known.

How it looks: The maximum of the likelihood says that the groups are all alike, and gives each the same chance. The
posterior says how much they may differ.

What to do: NUTS, which averages over all that the data leave open; and the interval of sd, not its best value.
"""

import numpy as np

import bayeszoo as bz

Intercepts = bz.find("logistic_intercepts")
group, yes = np.repeat(list("abcdef"), 5), []
for successes in (1, 2, 2, 3, 3, 2):
    yes += [1] * successes + [0] * (5 - successes)
data = bz.read(Intercepts, {"y": yes, "group": group})
best = bz.fit(Intercepts, data, "mle", seed=1)["posterior"]["sd"].item()
print(f"sd = {best:.3f} maximizes the likelihood")
sd = bz.fit(Intercepts, data, "nuts", seed=1)["posterior"]["sd"]
low, high = np.quantile(sd, [0.025, 0.975])
print(f"NUTS: sd is between {low:.2f} and {high:.2f} with probability 0.95")

assert best == 0
assert high > 1
