"""No success yet, and a prior that is unbounded at zero.

What breaks: With `a` below one and no success the density of the probability is unbounded at 0, so it has no mode.
With `a = 1` there is a mode, on the edge: an estimate of 0 says that what has not happened cannot happen.

How it looks: `map` raises, and on the command line ends with exit code 4. At the edge the estimate is exactly 0, and
its leave-one-out score is fine because no row is a success; the next success costs infinitely many nats.

What to do: Report the mean or an interval, which exist. They are exact here.
"""

import bayeszoo as bz

Coin, nothing = bz.find("beta_bernoulli"), {"y": [0] * 20}
raised = None
try:
    bz.fit(Coin(a=0.5, b=0.5), nothing, "map", seed=1)
except bz.NumericalError as error:
    raised = error
print("a = 0.5, map:", raised)
for method in ("map", "exact"):
    following = bz.predict(bz.fit(Coin(a=1, b=1), nothing, method, seed=1), {"y": [1]}).iloc[0]
    print(f"a = 1, {method}: P(next is a success) = {following['mean']:.4f}, log score {following['log_score']:.3f}")

assert raised is not None
