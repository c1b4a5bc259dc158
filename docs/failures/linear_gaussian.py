"""A state of which rows see a part.

What breaks: Rows of a velocity say how a place changes, and never where it is. In general rows determine as many
directions of the state as the rank of C, C A, C A^2, .. (observability: Kalman 1960), and say nothing of the others.

How it looks: The place is known no better after 200 rows than before the first, however good forecasts of rows are.

What to do: read the remark on the rank, and give rows that see the rest, or a first state that is known.
"""

import numpy as np

import bayeszoo as bz

Linear = bz.find("linear_gaussian")
rng = np.random.default_rng(1)
velocity = np.cumsum(rng.normal(0, 0.1, size=200))
rows = {"places": np.cumsum(velocity), "velocities": velocity}
sd = {}
for name, C in {"places": [1, 0], "velocities": [0, 1]}.items():
    frame = bz.decode(Linear(C=C, q=0.1, r=1, m0=0, S0=25), {"y": rows[name] + rng.normal(0, 1, size=200)})
    sd[name] = frame["sd"].iloc[-1]
    print(f"200 {name}: the sd of the last place is {sd[name]:.1f}, of the first a priori 5; {frame.attrs['remarks']}")
assert sd["places"] < 1 < 5 < sd["velocities"]
