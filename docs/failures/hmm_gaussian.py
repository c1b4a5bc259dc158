"""A state for a single row.

What breaks: As in a mixture, a state that holds one row, or several equal ones, has a likelihood without bound as its
standard deviation goes to 0.

How it looks: `mle` with more states than the data have: climbs that end at a spike are counted as `degenerate` and
refused. Under a prior none are.

What to do: `map`, `vb` or `nuts`, whose prior keeps the variances away from 0; and fewer states.
"""

import json

import bayeszoo as bz

Chain = bz.find("hmm_gaussian")
flow = bz.example(Chain, "nile")
for method, model in (("mle", Chain(K=4)), ("map", Chain.weak_with(flow, {"K": 4}))):
    facts = json.loads(bz.fit(model, flow, method, seed=1).attrs["facts"])
    print(f"{method}: {facts['degenerate']} of {facts['restarts']} climbs degenerate, best {facts['maxima'][0]:.2f}")
    assert (facts["degenerate"] > 0) == (method == "mle")
