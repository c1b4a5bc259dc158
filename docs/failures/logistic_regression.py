"""A feature that separates the outcomes, so that the likelihood has no maximum.

What breaks: Where a weighted sum of features is above a threshold for every yes and below it for every no, larger
weights are always better. The estimate of maximum likelihood runs to infinity.

How it looks: `mle` refuses, and names the features that separate. The mode of the posterior exists, but its weight
grows with the width of the prior, tau, and never settles.

What to do: Keep the prior, choose tau by what odds are believable, and say that the data alone give no upper bound.
More rows near the threshold would.
"""

import numpy as np

import bayeszoo as bz

Logistic = bz.find("logistic_regression")
table = {"y": [0, 0, 0, 0, 1, 1, 1, 1], "x": [-4.0, -3, -2, -1, 1, 2, 3, 4]}
try:
    bz.fit(Logistic(), table, "mle", seed=1)
    refused = ""
except bz.NumericalError as error:
    refused = str(error)
print(refused)
assert "x separates the outcomes completely" in refused
slopes = [float(bz.fit(Logistic(tau=tau), table, "map", seed=1).posterior["w"][0, 0, 1]) for tau in (1.0, 10.0, 100.0)]
print(f"slope at the mode, tau 1, 10 and 100: {np.round(slopes, 2)}")
assert slopes[2] > 1.5 * slopes[1] > 2 * slopes[0]
