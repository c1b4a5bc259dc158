"""Words that repeat within a document.

What breaks: Words are taken to be independent given the class. In real documents a word that occurs once is likely to
occur again, and a document has a subject of its own. Each repetition is then counted as new evidence: the log odds grow
in proportion to the length of the document.

How it looks: Probabilities of long documents are 0 or 1 to many digits, also where the decision is wrong. The share of
right decisions is usually good, so that only calibration and the log score of documents left out show it.

What to do: Look at `bayeszoo classify FIT --leave-one-out`. Trust the order of the log odds, not their size. Enter
whether a word occurs rather than how often, with naive_bayes, or take `counts="negative_binomial"` with the `size` of
the highest evidence: rates of words then vary from document to document, and the log odds are smaller.
"""

import numpy as np

import bayeszoo as bz

NaiveBayesText = bz.find("naive_bayes_text")
rng = np.random.default_rng(0)
words, concentration = 20, 30.0
y = rng.integers(0, 2, 300)
usual = rng.dirichlet(np.full(words, 20.0), 2)  # words of each class, and around them those of each document
documents = np.array([rng.dirichlet(concentration * usual[k]) for k in y])
scores, wrong = {}, {}
for length in (20, 2000):
    counts = rng.multinomial(length, documents)
    table = {"author": np.array(["a", "b"])[y], **{f"w{v}": counts[:, v] for v in range(words)}}
    fit = bz.fit(NaiveBayesText(), bz.read(NaiveBayesText, table, target="author"), "exact")
    left_out = bz.classify(fit, leave_one_out=True)
    scores[length], wrong[length] = left_out.attrs["log_score_of_one"], left_out.attrs["loss_of_one"]
    sure = np.mean(left_out["expected_loss"] < 0.001)
    print(
        f"{length} words: log score {scores[length]:.2f}, wrong {wrong[length]:.2f}, "
        f"surer than 0.999 of {sure:.2f} of the documents"
    )

assert wrong[2000] < wrong[20]  # longer documents are told apart better
assert scores[2000] < scores[20] - 1  # and their probabilities are far worse
