# %% [markdown]
# # Topics of the Federalist papers
#
# In 1787 and 1788 Hamilton, Madison and Jay wrote 85 papers for the constitution of the United States, under one
# name. This page looks for topics in them by latent Dirichlet allocation, asks how much of what is found can be
# believed, compares models by how well they foresee papers that they have not seen, and ends with the old question of
# who wrote the twelve disputed ones.

# %%
from importlib import resources

import numpy as np
import pandas as pd

import bayeszoo as bz

# %matplotlib inline
# %config InlineBackend.figure_formats = ["svg"]

Topics = bz.find("lda")
corpus = bz.example(Topics)
for note in corpus.notes:
    print(note)

# %% [markdown]
# ## Three topics, and what the gate says of them
#
# Variational Bayes runs from several starts. Their bounds differ, and none reaches the best twice: the posterior of a
# topic model has many optima. Nor can k-hat speak for the fit: of thousands of coordinates importance weights say
# nothing. So its verdict is *caution*: the numbers are shown, and what could not be checked is said beside them.

# %%
fit = bz.fit(Topics(K=3), corpus, "vb", seed=1)
print("status:", fit.attrs["status"])
assert fit.attrs["status"] == "caution"

# %%
bz.plot_topics(fit, top=8)

# %%
words = bz.topics(fit, top=8)
print(words.attrs["caveat"])
words["word"].unstack("rank")

# %% [markdown]
# War and foreign nations, the branches of government, courts and juries: sensible, and one solution of many. A second
# start finds another, and the two need not agree about single words:

# %%
other = bz.topics(bz.fit(Topics(K=3), corpus, "vb", seed=2), top=8)
shared = [[len({*words.loc[one]["word"]} & {*other.loc[two]["word"]}) for two in (1, 2, 3)] for one in (1, 2, 3)]
pd.DataFrame(shared, index=["seed 1: topic 1", "topic 2", "topic 3"], columns=["seed 2: topic 1", "topic 2", "topic 3"])

# %% [markdown]
# ## Does it foresee papers?
#
# What can be judged without believing in single topics is prediction. Every eighth paper is held out; half of its
# words are given, the other half are scored. This, and not the bound, is where a perplexity comes from. With one
# topic the model is the unigram model.

# %%
papers = pd.read_csv(resources.files("bayeszoo.models.data") / "federalist.csv.gz")
reading = {"text": "text", "document": "number", "stop_words": "english", "min_documents": 3, "max_share": 0.5}
held_out = papers.index % 8 == 7
seen = bz.read(Topics, papers[~held_out], **reading)
unseen = papers[held_out]

scores = {}
for K in (1, 2, 3, 5):
    tree = bz.fit(Topics(K=K), seen, "vb", seed=1)
    found = bz.document_scores(tree, unseen, text="text", document="number", stop_words="english")
    scores[K] = {name: found.attrs[name] for name in ("log_score", "mcse", "perplexity", "mcse_perplexity")}
    scores[K]["status of the fit"] = tree.attrs["status"]
scores = pd.DataFrame(scores).T.infer_objects().rename_axis("topics")
scores

# %% tags=["hide-cell"]
assert scores.loc[5, "perplexity"] < scores.loc[1, "perplexity"]

# %% [markdown]
# A score is the mean log probability of a word in nats, with its Monte Carlo error. It judges the draws as they are,
# so it is given also where topics are withheld.
#
# ## Who wrote the disputed papers?
#
# Topics say what a paper is about, which is not who wrote it. Mosteller and Wallace (1964) looked at words that say
# nothing: *upon*, *while*, *whilst*. A mixture with two components for the counts of 14 of them is told nothing of
# authors.

# %%
Mixture = bz.find("multinomial_mixture")
style = bz.example(Mixture)
hands = bz.fit(Mixture(K=2), style, "map", seed=1)
assigned = bz.assign(hands)
author = pd.read_csv(resources.files("bayeszoo.models.data") / "federalist_words.csv")["author"].to_numpy()
pd.crosstab(author, assigned["component"].to_numpy(), rownames=["author"], colnames=["component"])

# %%
component = assigned["component"].to_numpy()
(hamilton,) = np.unique(component[author == "hamilton"])
(madison,) = np.unique(component[author == "madison"])
assert hamilton != madison
assert (component[author == "hamilton or madison"] == madison).all()

# %% [markdown]
# All papers by Hamilton are in one component, all by Madison in the other, and with these all twelve disputed ones. So
# are those by Jay: what the words tell apart is Hamilton from the others. The estimate is plugged in, and the model
# takes words for independent: the split is worth more than the digits of its probabilities.
