"""A chain that falls apart: no single stationary distribution.

What breaks: Where no path leads from some states to the others, several distributions are stationary, and none is
*the* one.

How it looks: `bz.stationary` refuses such a matrix. The posterior of a chain with a positive prior never holds one,
and its stationary distribution exists in every draw, but is then decided by the prior's few counts: the interval runs
from 0 to 1.

What to do: Look at the counts between groups of states first; ask for the transition probabilities, which are well
determined.
"""

import bayeszoo as bz

raised = None
try:
    bz.stationary([[1.0, 0.0], [0.0, 1.0]])
except bz.NumericalError as error:
    raised = error
print("stationary:", raised)
Chain = bz.find("markov_chain")
apart = {"from": ["a", "a", "b", "b"] * 50, "to": ["a", "a", "b", "b"] * 50}
tree = bz.fit(Chain(alpha=0.1), apart, "exact", seed=1)
low, high = tree["derived"]["stationary"].isel(symbol=0).quantile([0.025, 0.975]).to_numpy()
draws = tree["posterior"].sizes["chain"] * tree["posterior"].sizes["draw"]
print(f"share of a in the long run: 95% interval from {low:.3f} to {high:.3f}, from {draws} independent draws")

assert raised is not None
assert low < 0.1
assert high > 0.9
