"""A wide slab.

What breaks: A prior that lets the weights be huge is not a prior that says little. The wider the slab, the less of it
lies where the data are, and the surer the posterior is that terms are out (Lindley 1957; Bartlett 1957).

How it looks: The posterior passes its gate. Of five measurements that are probably in, three are out when `V0` is a
million times as large, though nothing in the data has changed. Of a term that is in, the weight moves little.

What to do: Leave `V0` out: it is then 1, worth one observation (Kass and Wasserman 1995). Where inclusion matters, fit
with several, and say how it depends on `V0`.
"""

import numpy as np

import bayeszoo as bz

Spike = bz.find("spike_slab_regression")
data = bz.example(Spike)
names = ("sex", "bmi", "bp", "s1", "s5")
included, weight = [], []
print("V0     P(in):", *(f"{name:>6s}" for name in names), "   w[bmi] if in")
for V0 in (0.1, 1.0, 100.0, 1e6):
    tree = bz.fit(Spike.weak(data).replaced(V0=V0, pi=0.5), data, "exact", seed=1)
    probabilities = tree["exact"]["included"].sel(statistic="mean")
    included.append([float(probabilities.sel(slope=name)) for name in names])
    weight.append(float(tree["exact"]["w"].sel(statistic="mean", term="bmi") / included[-1][1]))
    print(f"{V0:<12g}", *(f"{p:6.3f}" for p in included[-1]), f"{weight[-1]:11.2f}")

assert included[1][0] > 0.9 > 0.5 > included[3][0]
assert np.ptp(weight) / weight[1] < 0.35
