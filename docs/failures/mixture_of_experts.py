"""A switch whose sharpness only the prior knows.

What breaks: Nitrogen oxides rise with the equivalence ratio up to .93 and fall above it, and no run contradicts that.
The likelihood then grows, ever more slowly, as the gate gets sharper, and has no maximum.

How it looks: `mle` is refused and names the feature. `map` and `nuts` have a gate, but how steep it is follows the
prior: with five times the prior standard deviation the gate is more than twice as steep. The lines hardly move.

What to do: Read where the gate switches, and not how sharply. Where sharpness matters set `tau` from what is known, or
fit with two values and see what changes.
"""

import numpy as np

import bayeszoo as bz

Experts = bz.find("mixture_of_experts")
rows = bz.example(Experts)
try:
    bz.fit(Experts.weak(rows), rows, "mle", seed=1)
    refused = False
except bz.NumericalError as error:
    refused = True
    print(error)

steep, lines = [], []
for tau in (5.0, 25.0):
    tree = bz.fit(Experts.weak_with(rows, {"tau": tau}), rows, "map", seed=1)
    gate, w = (tree["posterior"][name].to_numpy()[0, 0] for name in ("gate", "w"))
    steep.append(np.ptp(gate[1]))
    lines.append(np.sort(w[:, 1]))
    print(f"tau {tau:g}: log odds of the gate change by {steep[-1]:.0f} a unit of E, slopes {lines[-1].round(2)}")

assert refused
assert steep[1] > 2 * steep[0]
assert np.allclose(lines[0], lines[1], rtol=0.05)
