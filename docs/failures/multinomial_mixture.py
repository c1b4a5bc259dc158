"""Documents of more than one topic.

What breaks: Each document has one topic, and its words are independent draws from it. Words of real documents come in
clumps, of which a further component explains some.

How it looks: The bound goes up by hundreds of nats with a second component and by tens with a third; but then several
optima are nearly as good, and the gate refuses the fit. The probabilities of the components are 0 or 1 to many
digits: hundreds of words, each taken for independent evidence.

What to do: Read components as descriptions, not as kinds. Where a document may have several topics, use `lda`.
"""

import json

import bayeszoo as bz

Mixture = bz.find("multinomial_mixture")
papers = bz.example(Mixture)
fits = {K: bz.fit(Mixture(K=K), papers, "vb", seed=1) for K in (1, 2, 3)}
bounds = {K: json.loads(tree.attrs["facts"])["elbo"] for K, tree in fits.items()}
for K, tree in fits.items():
    print(f"K = {K}: best bound {bounds[K]:.1f}, {tree.attrs['status']}")
assigned = bz.assign(bz.fit(Mixture(K=2), papers, "map", seed=1))
sure = (assigned["expected_loss"] < 1e-6).sum()
print(f"documents assigned with an expected loss below 1e-6: {sure} of {len(assigned)}")

assert bounds[1] + 100 < bounds[2] < bounds[3]
assert fits[3].attrs["status"] == "failed"
assert sure > len(assigned) / 2
