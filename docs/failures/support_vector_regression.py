"""Noise that is known, and is not what it is.

What breaks: `eps` and `rate` are fields, not parameters: the width of the noise is given. Where the rows are far
noisier than that, the posterior of the line is far too narrow, and no chain or certificate can say so.

How it looks: The fit passes its gate, as it is the posterior of the model. Intervals of the slope leave the truth out
much more often than they should; residuals are many times `eps + 1 / rate`.

What to do: Look at the residuals or the predictive check. Take `rate` from the rows, as the weak defaults do, or
compare the evidence of several.
"""

import numpy as np

import bayeszoo as bz

SVR = bz.find("support_vector_regression")
rng = np.random.default_rng(0)
missed = {"given": 0, "of the rows": 0}
for _ in range(20):
    x = rng.standard_normal(40)
    data = bz.read(SVR, {"y": 2 * x + rng.laplace(0, 10.0, 40), "x": x}, target="y")
    for name, model in (("given", SVR(tau=10.0)), ("of the rows", SVR.weak(data))):
        tree = bz.fit(model, data, "exact", seed=1, draws=10)
        low, high = tree["exact"]["w"].sel(term="x", statistic=["q025", "q975"]).to_numpy()
        missed[name] += not low < 2 < high
for name, count in missed.items():
    print(f"noise {name}: {count} of 20 intervals of 95% leave the slope out")

assert missed["given"] >= 5
assert missed["of the rows"] <= 4
