"""Documents of more than one topic.

What breaks: Each document has one topic, and its words are independent draws from it. Words of real documents come in
clumps, so that a further component always explains some more of them.

How it looks: Bound and evidence grow with the number of components, and the probabilities of the components are 0 or
1 to many digits: hundreds of words, each taken for independent evidence.

What to do: Read components as descriptions, not as kinds. Where a document may have several topics, use `lda`.
"""

import bayeszoo as bz

Mixture = bz.find("multinomial_mixture")
papers = bz.example(Mixture)
fits = {K: bz.fit(Mixture(K=K), papers, "vb", seed=1) for K in (1, 2, 3)}
bounds = {K: bz.compare([tree]).iloc[0] for K, tree in fits.items()}
for K, row in bounds.items():
    print(f"K = {K}: ELBO {row['elbo']:.1f}, {row['status']}")
assigned = bz.assign(bz.fit(Mixture(K=2), papers, "map", seed=1))
sure = (assigned["expected_loss"] < 1e-6).sum()
print(f"documents assigned with an expected loss below 1e-6: {sure} of {len(assigned)}")

assert bounds[1]["elbo"] < bounds[2]["elbo"]
assert sure > len(assigned) / 2
