"""Many optima, each with other topics.

What breaks: The posterior of a topic model has many modes, far apart, and which of them a method finds depends on
where it starts. Words near the border of two topics go to either.

How it looks: Of twenty restarts none reaches the best bound twice, and their bounds differ by many nats. The fit is to
be read with caution, and `bz.topics` gives the caveat with the topics.

What to do: Judge by prediction (`bz.document_scores`), which needs no single topic; look at topics as one solution of
many; take few topics, and long chains by `gibbs`, whose stability is shown beside each topic.
"""

import json

import bayeszoo as bz

Topics = bz.find("lda")
papers = bz.example(Topics)
first = bz.fit(Topics(K=5), papers, "vb", seed=1)
facts = json.loads(first.attrs["facts"])
print(f"status: {first.attrs['status']}")
print(f"{facts['reached_the_best']} of {facts['restarts']} restarts reached the best bound")
print("the best five bounds:", [round(bound, 1) for bound in facts["maxima"][:5]])
print("topics:", bz.topics(first).attrs["caveat"])

assert first.attrs["status"] == "caution"
assert facts["reached_the_best"] == 1
