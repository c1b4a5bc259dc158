"""Two raters who agree by chance.

What breaks: Two raters of yes and no have a table of four cells, three of them free. The model has five free
parameters: the share of the classes, and two chances of each rater. Raters who both say yes often agree often, and know
nothing.

How it looks: Maximum likelihood is refused, as the likelihood has more free parameters than the tables of the ratings
have free cells. A posterior hangs on the prior: `stay` says that raters are mostly right, and where they agree by
chance they are believed. It is `stay`, too, that gives the classes their names: to the likelihood classes that are
exchanged are the same.

What to do: Ask a third rater, or the same ones again, and let more of them rate the same items.
"""

import numpy as np

import bayeszoo as bz

DawidSkene = bz.find("dawid_skene")
rng = np.random.default_rng(0)
items, truth = np.arange(200), rng.integers(0, 2, 200)
rows = {"item": [], "rater": [], "label": []}
for rater, accuracy in (("a", 0.9), ("b", 0.8), ("c", 0.85)):
    right = rng.random(200) < accuracy
    rows["item"] += items.tolist()
    rows["rater"] += [rater] * 200
    rows["label"] += np.where(truth == right, "yes", "no").tolist()
refused = []
for raters in (2, 3):
    data = bz.read(DawidSkene, {name: column[: 200 * raters] for name, column in rows.items()})
    try:
        bz.fit(DawidSkene(K=2), data, "mle", seed=1)
        print(f"{raters} raters: one maximum")
    except bz.NumericalError as error:
        refused.append(raters)
        print(f"{raters} raters: {error}")

assert refused == [2]
