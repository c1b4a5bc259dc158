"""A border that is sharper than a length.

What breaks: The probability jumps from 0 to 1 at one place, and is flat to either side. One length holds everywhere:
where it is long the border is blurred, where it is short the flat parts are not known to be flat.

How it looks: The probability near the border is far from 0 and 1 though the rows there leave no doubt; with the length
of highest evidence the function swings between the rows.

What to do: Compare lengths and kernels by the evidence, and probabilities by held-out rows. Where the border is known
to be a line, logistic_regression says it with two numbers.
"""

import numpy as np

import bayeszoo as bz

Process = bz.find("gaussian_process_classification")
x = np.linspace(-1, 1, 40)
rows = {"y": (x > 0).astype(int), "x": x}
for length in (1.0, 0.1):
    tree = bz.fit(Process(amplitude=2.5, length=length), rows, "map", seed=1)
    p = bz.classify(tree, {"x": np.array([0.1, 0.5, 0.97])})["p[1]"].to_numpy()
    print(f"length {length}: probabilities {p.round(2).tolist()} at 0.1, 0.5 and 0.97, where all rows are 1")
    if length == 1.0:
        assert p[0] < 0.75

line = bz.fit(bz.find("logistic_regression")(tau=10), rows, "map", seed=1)
at_half = bz.classify(line, {"x": np.array([0.5])})["p[1]"].to_numpy()[0]
print(f"logistic regression: {at_half:.2f} at 0.5")
assert p.max() < 0.95 < at_half
