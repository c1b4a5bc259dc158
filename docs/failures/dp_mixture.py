"""More rows, more clusters, and one true group.

What breaks: All rows are of one normal distribution. A Dirichlet process opens a small cluster now and then,
however many rows there are: the posterior of the number of clusters does not settle at one (Miller and Harrison 2013).

How it looks: The expected number of clusters rises with the rows. The density is fine all the same.

What to do: Read the density, which rows are together, and which is alone. For a number of components compare
`gaussian_mixture` with one, two and three: `bayeszoo select -c gaussian_mixture --components 1-3`.
"""

import numpy as np
from scipy import stats

import bayeszoo as bz

DP = bz.find("dp_mixture")
prior = {"m0": (0.0,), "kappa0": 0.5, "nu0": 4.0, "Psi0": ((2.0,),)}
expected, one = [], []
for rows in (3, 6, 9):
    y = stats.norm.ppf((np.arange(rows) + 0.5) / rows)  # as a normal distribution would spread them
    number = bz.enumerate_posterior(DP(K=25, alpha=1.0, **prior), {"y": y}).number_of_components
    expected.append(number @ np.arange(26))
    one.append(number[1])
    print(f"{rows} rows of one normal: {expected[-1]:.2f} clusters expected, one cluster has probability {one[-1]:.2f}")

assert expected[0] < expected[1] < expected[2]
assert one[0] > one[1] > one[2]
