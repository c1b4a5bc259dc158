"""A polynomial beyond its data.

What breaks: Inside the data a polynomial of degree eight looks as good as a line. Outside it goes where its highest
power goes.

How it looks: The predictive standard deviation grows from less than two to thirty within a tenth of the range. The
evidence and the leave-one-out score fall with the degree.

What to do: `bz.select(bz.polynomials(model, range(9)))`, and believe the wide interval.
"""

import numpy as np

import bayeszoo as bz

Line = bz.find("linear_regression")
x = np.linspace(0, 10, 30)
y = 3 + 2 * x + np.random.default_rng(0).normal(0, 1.5, 30)
data = bz.read(Line, {"x": x, "y": y}, target="y")
models = bz.polynomials(Line.weak(data), (1, 8))
for name, model in models.items():
    tree = bz.fit(model, data, "exact", seed=1)
    inside, outside = bz.predict(tree, {"x": [5.0, 11.0]})["sd"]
    print(f"{name}: predictive sd {inside:.2f} at x = 5, {outside:.2f} at x = 11; the data end at 10")
table = bz.select(models, data).set_index("model")
print(table[["log_evidence", "loo"]].round(2).to_string())

assert outside > 5 * inside
assert table["log_evidence"].idxmax() == "degree 1"
