"""Lines that collapse on two rows.

What breaks: The likelihood of a mixture of lines has no upper bound. A line through any two rows has errors of 0 there;
as its noise shrinks, the density of these rows grows without limit, and the other lines answer for the rest.

How it looks: From some starts maximum likelihood climbs towards such a line. They are told apart by their noise and by
the rows that they hold, and are refused as the answer. Of five rows nothing else is left, and the fit is refused.

What to do: Use `map` or `gibbs`: the prior of the noise variance bounds the density. Or ask fewer lines of few rows.
"""

import numpy as np

import bayeszoo as bz

Mixture = bz.find("mixture_of_regressions")
rows = {"y": [0.1, 1.9, 4.2, 5.9, 40.0], "x": [0.0, 1.0, 2.0, 3.0, 4.0]}
try:
    bz.fit(Mixture(K=2), rows, "mle", seed=1)
    refused = False
except bz.NumericalError as error:
    refused = True
    print(error)

tree = bz.fit(Mixture(K=2), rows, "map", seed=1)
noise = np.sqrt(tree["posterior"]["sigma2"].to_numpy()[0, 0])
print(f"by map the noise has the standard deviations {noise.round(2)}")

assert refused
assert noise.min() > 0.1
