"""More classes than the answers can tell apart.

What breaks: Two yes/no features have a table of four cells, three of them free. Two classes have five free parameters:
many pairs of classes fit the table equally well, and nothing in the rows says which is right.

How it looks: Maximum likelihood is refused, as the likelihood has more free parameters than the table has free cells. A
posterior is wide, and hangs on the prior.

What to do: Ask more questions, or fewer classes: three yes/no features are the least for two classes.
"""

import numpy as np

import bayeszoo as bz

LatentClass = bz.find("latent_class")
rng = np.random.default_rng(0)
kind = rng.integers(0, 2, 300)
answers = {name: np.where(rng.random(300) < np.where(kind, 0.8, 0.3), "yes", "no") for name in ("a", "b", "c", "d")}
refused = []
for features in (["a", "b"], ["a", "b", "c", "d"]):
    data = bz.read(LatentClass, {name: answers[name] for name in features})
    try:
        bz.fit(LatentClass(K=2), data, "mle", seed=1)
        print(f"{len(features)} features: one maximum")
    except bz.NumericalError as error:
        refused.append(len(features))
        print(f"{len(features)} features: {error}")

assert refused == [2]
