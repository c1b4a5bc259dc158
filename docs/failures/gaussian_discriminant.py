"""A class with fewer rows than features.

What breaks: A covariance of D features needs more than D rows. A class with fewer has none by maximum likelihood, and
one with a few more has a covariance that is far too narrow in some direction.

How it looks: The maximum-likelihood estimate is refused, by name of the class. With the prior there is an answer, but
in the directions that the rows do not fill it is the prior's scale matrix that decides.

What to do: Tie the covariances (`covariance="tied"`) or make them diagonal, and compare by leave-one-out scores; or
give a prior scale that is known from elsewhere.
"""

import numpy as np

import bayeszoo as bz

Discriminant = bz.find("gaussian_discriminant")
rng = np.random.default_rng(0)
y = np.array(["common"] * 60 + ["rare"] * 5)
rows = {f"x{j}": rng.normal(2.0 * (y == "rare"), 1.0) for j in range(6)}
data = bz.read(Discriminant, {"kind": y, **rows}, target="kind")
try:
    bz.fit(Discriminant.weak(data), data, "mle")
    refused = False
except bz.NumericalError as error:
    refused = True
    print(f"full, mle: {error}")

scores = {}
for kind in ("full", "tied"):
    model = Discriminant.weak(data).replaced(covariance=kind)
    table = bz.classify(bz.fit(model, data, "exact"), leave_one_out=True)
    scores[kind] = table.attrs["log_score_of_one"]
    print(f"{kind}, exact: log score of a row left out {scores[kind]:.3f}")

assert refused
assert scores["tied"] > scores["full"]
