"""A component on a single row.

What breaks: The likelihood of a mixture is unbounded: a component that sits on one row and shrinks makes it as large
as you like. The best of many restarts is then the worst of answers.

How it looks: Without a rule the log likelihood jumps by tens of nats from one restart to the next, and a covariance
is singular. bayeszoo counts such climbs as `degenerate`, refuses them, and reports the best of the others.

What to do: A prior on the covariances (`map`, `vb`, `nuts`), under which there is a maximum; or fewer components.
"""

import json

import bayeszoo as bz

Mixture = bz.find("gaussian_mixture")
speeds = bz.example(Mixture, "galaxies")
for method, model in (("mle", Mixture(K=5)), ("map", Mixture.weak_with(speeds, {"K": 5}))):
    facts = json.loads(bz.fit(model, speeds, method, seed=1).attrs["facts"])
    heights = [round(one, 2) for one in facts["maxima"][:3]]
    refused = f"{facts['degenerate']} of {facts['restarts']} climbs degenerate"
    print(f"{method}: {refused}; best of the others {heights}, reached {facts['reached_the_best']} times")
    assert (facts["degenerate"] > 0) == (method == "mle")
