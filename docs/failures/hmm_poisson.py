"""Too few states for a drift.

What breaks: A chain with two rates describes years that are active or quiet. A rate that drifts is cut into steps,
the more the longer the series.

How it looks: Nothing in the fit: it passes its gate. The number of states that the criteria choose grows with the
length of the series, and forecasts return to the long-run mean at once.

What to do: Compare numbers of states, and look at the smoothed means; a drift wants a state-space model, which is not
in the zoo yet.
"""

import numpy as np

import bayeszoo as bz

Chain = bz.find("hmm_poisson")
drift = np.random.default_rng(0).poisson(np.linspace(5, 40, 160))
chosen = {}
for rows in (40, 160):
    some = bz.read(Chain, drift[:: 160 // rows][:rows] if rows == 160 else drift[:40])
    table = bz.select(bz.components(Chain.weak_with(some, {"K": 1}), (1, 2, 3, 4)), some, loo=False).set_index("model")
    chosen[rows] = table["bic"].idxmin()
    print(f"{rows} rows: BIC chooses {chosen[rows]}")

assert chosen[160] > chosen[40]
