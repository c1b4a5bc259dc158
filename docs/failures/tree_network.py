"""Features that depend on two others at once.

What breaks: In a tree each feature depends on one other. Where it takes two together, as whether two switches are
alike, each pair by itself looks independent, and no tree has a reason for any edge.

How it looks: The evidence of the trees is about that of independent features, and far below that of a table of all
combinations. The prediction of the third feature is no better than its share.

What to do: `bayeszoo trees` prints the three evidences side by side: where the table wins, join the features that
belong together into one, or model the outcome given both with `logistic_regression` and an interaction.
"""

import numpy as np

import bayeszoo as bz

rng = np.random.default_rng(0)
first, second = rng.integers(0, 2, (2, 400))
alike = np.where(rng.random(400) < 0.9, first == second, first != second)
labels = np.array(["no", "yes"])
rows = {"first": labels[first], "second": labels[second], "alike": labels[alike.astype(int)]}
Tree = bz.find("tree_network")
answer, data = bz.trees(rows), bz.read(Tree, rows)
print(f"trees {answer.log_evidence:.1f}, independent {answer.log_evidence_independent:.1f}")
print(f"a table of all combinations {answer.log_evidence_saturated:.1f}")
fit = bz.fit(Tree.weak(data), data, "exact", seed=1)
guess = bz.complete(fit, {"first": ["yes"], "second": ["yes"], "alike": [""]}, missing="mask")["probability"]
print(f"alike, of a yes and a yes: {guess.iloc[1]:.2f}, and {np.mean(alike[first & second == 1]):.2f} of them are")

assert guess.iloc[1] < 0.65
assert answer.log_evidence < answer.log_evidence_independent + 3
assert answer.log_evidence_saturated > answer.log_evidence + 50
