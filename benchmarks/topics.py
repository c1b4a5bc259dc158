"""Speed of topic models as ratios, all sides in one run, interleaved, medians. Never a test: machines differ.

Peers: tomotopy (collapsed Gibbs in C++), `lda` (the same in Cython), scikit-learn's and gensim's variational Bayes;
those that are not installed are named and left out. Part one is a Gibbs sweep beside tomotopy's, after burn-in, on one
core. Part two is the time to a given score: a fifth of the words of each document are held out, each system is fitted
to the others with the same priors for more and more iterations, each time from scratch, and the score is the mean log
probability of a word held out, of those that training has, at the system's own estimates of proportions and topics: of
Gibbs sampling those of its last state. The score to be reached is within TOLERANCE of tomotopy's after TARGET sweeps on
the same split. All times are of the processor, each system on one thread.

Run it with `python benchmarks/topics.py [federalist] [reuters]`; the Reuters corpus comes with `lda`.
"""

import importlib
import logging
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import scipy
from threadpoolctl import threadpool_limits

import bayeszoo as bz
from bayeszoo.data.read import read
from bayeszoo.families.documents.scores import split_words
from bayeszoo.families.documents.topic_model import TopicChain

SEEDS = (1, 2, 3)
LADDER = {"Gibbs": (10, 25, 50, 100, 200, 400), "VB": (2, 5, 10, 20, 40, 80)}
TARGET, TOLERANCE = 100, 0.01
REPEATS = 11
CORPORA = {"federalist": (10, 0.1, 0.1), "reuters": (20, 0.1, 0.01)}
"""Topics, alpha and eta."""

Arrays = dict[str, np.ndarray]
Estimates = tuple[np.ndarray, np.ndarray]
"""Proportions (D, K) and topics (K, V)."""


def found(name: str) -> Any:
    """Import a peer, or return None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


PEERS = {name: found(name) for name in ("tomotopy", "lda", "sklearn.decomposition", "gensim.models")}


class Task:
    """A corpus to be fitted, by words of which none is missing, with priors and a seed."""

    def __init__(self, train: Arrays, K: int, alpha: float, eta: float, seed: int) -> None:
        self.train, self.K, self.alpha, self.eta, self.seed = train, K, alpha, eta, seed
        self.shape = len(train["document"]), len(train["word"])
        self.matrix = scipy.sparse.csr_matrix((train["counts"], (train["doc"], train["term"])), shape=self.shape)

    def chain(self) -> TopicChain:
        """Return our Gibbs sampler, started."""
        priors = np.full(self.K, self.alpha), np.full(self.shape[1], self.eta)
        return TopicChain(self.train, *priors, np.random.default_rng(self.seed))

    def tomotopy(self) -> Any:
        """Return tomotopy's model with its documents."""
        made = PEERS["tomotopy"].LDAModel(k=self.K, alpha=self.alpha, eta=self.eta, seed=self.seed)
        made.optim_interval = 0  # the priors stay
        for row in self.matrix:
            made.add_doc([str(v) for v in np.repeat(row.indices, row.data)])
        return made


def normalized(table: Any) -> np.ndarray:
    """Return rows that add up to 1."""
    return np.asarray(table) / np.asarray(table).sum(axis=1, keepdims=True)


# each takes a task and a number of iterations, and returns what is timed and what then reads the estimates


def our_gibbs(task: Task, iterations: int) -> tuple[Callable[[], Any], Callable[[Any], Estimates]]:
    """Collapsed Gibbs sampling of bayeszoo."""

    def run() -> TopicChain:
        chain = task.chain()
        chain.sweep(iterations)
        return chain

    def estimates(chain: TopicChain) -> Estimates:
        (doc, term), K = (np.repeat(task.train[name], task.train["counts"]) for name in ("doc", "term")), task.K
        in_document = np.bincount(doc * K + chain.topic, minlength=task.shape[0] * K).reshape(-1, K)
        of_word = np.bincount(term * K + chain.topic, minlength=task.shape[1] * K).reshape(-1, K)
        return normalized(in_document + task.alpha), normalized(of_word.T + task.eta)

    return run, estimates


def our_vb(task: Task, iterations: int) -> tuple[Callable[[], Any], Callable[[Any], Estimates]]:
    """Variational Bayes of bayeszoo, one climb."""
    model = bz.find("lda")(K=task.K, alpha=task.alpha, eta=task.eta)

    def run() -> Any:
        q = model.vb_start(task.train, np.random.default_rng(task.seed))
        for _ in range(iterations):
            q = model.vb_m_step(model.vb_e_step(q, task.train).stats)
        return q

    return run, lambda q: (normalized(q.documents), normalized(q.words.T))


def tomotopy_gibbs(task: Task, iterations: int) -> tuple[Callable[[], Any], Callable[[Any], Estimates]]:
    """Collapsed Gibbs sampling of tomotopy on one core."""
    made = task.tomotopy()

    def run() -> Any:
        made.train(iterations, workers=1)
        return made

    def estimates(made: Any) -> Estimates:
        topics = np.empty((task.K, task.shape[1]))
        topics[:, [int(word) for word in made.used_vocabs]] = [made.get_topic_word_dist(k) for k in range(task.K)]
        return normalized([doc.get_topic_dist() for doc in made.docs]), normalized(topics)

    return run, estimates


def lda_gibbs(task: Task, iterations: int) -> tuple[Callable[[], Any], Callable[[Any], Estimates]]:
    """Collapsed Gibbs sampling of `lda`."""
    options = {"alpha": task.alpha, "eta": task.eta, "random_state": task.seed, "refresh": 10**9}
    made = PEERS["lda"].LDA(n_topics=task.K, n_iter=iterations, **options)
    table = task.matrix.toarray()
    return lambda: made.fit(table), lambda made: (made.doc_topic_, made.topic_word_)


def sklearn_vb(kind: str, task: Task, iterations: int) -> tuple[Callable[[], Any], Callable[[Any], Estimates]]:
    """Variational Bayes of scikit-learn, batch or online."""
    priors = {"doc_topic_prior": task.alpha, "topic_word_prior": task.eta}
    made = PEERS["sklearn.decomposition"].LatentDirichletAllocation(
        task.K, learning_method=kind, max_iter=iterations, random_state=task.seed, **priors
    )
    return lambda: made.fit(task.matrix), lambda made: (made.transform(task.matrix), normalized(made.components_))


def gensim_vb(task: Task, iterations: int) -> tuple[Callable[[], Any], Callable[[Any], Estimates]]:
    """Online variational Bayes of gensim, so many passes."""
    corpus = [list(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in task.matrix]
    priors = {"alpha": [task.alpha] * task.K, "eta": task.eta, "id2word": {v: str(v) for v in range(task.shape[1])}}
    options = {"num_topics": task.K, "passes": iterations, "random_state": task.seed, "eval_every": None}

    def run() -> Any:
        return PEERS["gensim.models"].LdaModel(corpus, **priors, **options)

    return run, lambda made: (normalized(made.inference(corpus)[0]), normalized(made.get_topics()))


SYSTEMS: dict[str, tuple[str, str | None, Callable[..., Any]]] = {
    "tomotopy Gibbs": ("Gibbs", "tomotopy", tomotopy_gibbs),
    "bayeszoo Gibbs": ("Gibbs", None, our_gibbs),
    "bayeszoo VB": ("VB", None, our_vb),
    "lda Gibbs": ("Gibbs", "lda", lda_gibbs),
    "scikit-learn batch VB": ("VB", "sklearn.decomposition", partial(sklearn_vb, "batch")),
    "scikit-learn online VB": ("VB", "sklearn.decomposition", partial(sklearn_vb, "online")),
    "gensim online VB": ("VB", "gensim.models", gensim_vb),
}


def corpus(name: str) -> Arrays | None:
    """Return a corpus as cells, or None when what it comes with is not installed."""
    if name == "federalist":
        return dict(read(bz.find("lda")()))
    if PEERS["lda"] is None:
        return None
    datasets = importlib.import_module("lda.datasets")
    table, words = datasets.load_reuters(), np.array(datasets.load_reuters_vocab())
    doc, term = np.nonzero(table)
    names = np.array([f"r{d + 1}" for d in range(len(table))])
    return {"counts": table[doc, term].astype(np.int64), "doc": doc, "term": term, "document": names, "word": words}


def without_unknown(train: Arrays, held: Arrays) -> tuple[Arrays, Arrays]:
    """Leave out the words that training does not have."""
    known = np.bincount(train["term"], minlength=len(train["word"])) > 0
    codes, made = np.cumsum(known) - 1, []
    for one in (train, held):
        cells = {name: one[name][known[one["term"]]] for name in ("counts", "doc", "term")}
        made.append({**one, **cells, "term": codes[cells["term"]], "word": one["word"][known]})
    return made[0], made[1]


def score(estimates: Estimates, held: Arrays) -> float:
    """Return the mean log probability of a word held out, in nats."""
    proportions, topics = estimates
    p = np.einsum("ck,kc->c", proportions[held["doc"]], topics[:, held["term"]])
    return float(held["counts"] @ np.log(p) / held["counts"].sum())


def sweeps(data: Arrays, K: int, alpha: float, eta: float) -> None:
    """Print the time of a sweep beside tomotopy's."""
    task = Task(data, K, alpha, eta, 1)
    ours, theirs = task.chain(), task.tomotopy()
    ours.sweep(50)
    theirs.train(50, workers=1)
    times = np.empty((REPEATS, 2))
    for i in range(REPEATS):
        for j, call in enumerate((partial(ours.sweep, 20), partial(theirs.train, 20, workers=1))):
            start = time.process_time()
            call()
            times[i, j] = (time.process_time() - start) / 20
    mine, peer = np.median(times, axis=0) * 1e3
    print(
        f"sweep, K={K:<4d} {mine:8.2f} ms  tomotopy {peer:8.2f} ms  ratio {mine / peer:6.3f}  target <= 1.5", flush=True
    )


def to_a_score(data: Arrays, K: int, alpha: float, eta: float) -> None:
    """Print for each system the time to the score of tomotopy, or of ours without it, and the last score."""
    systems = {name: made for name, made in SYSTEMS.items() if made[1] is None or PEERS[made[1]] is not None}
    rows: dict[str, list[tuple[int, int, float, float]]] = {name: [] for name in systems}
    for seed in SEEDS:
        train, held = without_unknown(*split_words(data, 0.2, np.random.default_rng(seed)))
        task = Task(train, K, alpha, eta, seed)
        for rung in range(len(LADDER["VB"])):
            for name, (kind, _, prepare) in systems.items():
                run, estimates = prepare(task, LADDER[kind][rung])
                start = time.process_time()
                made = run()
                taken = time.process_time() - start
                rows[name].append((seed, LADDER[kind][rung], taken, score(estimates(made), held)))
    goals = {row[0]: row[3] - TOLERANCE for row in rows[next(iter(rows))] if row[1] == TARGET}
    print(f"score to be reached: {median(goals.values()):.4f} nats a word, the median of {len(goals)} splits")
    for name, found in rows.items():
        report(name, found, goals)


def report(name: str, rows: list[tuple[int, int, float, float]], goals: dict[int, float]) -> None:
    """Print the median over seeds of the time to the score, and the score and time at the end of the ladder."""
    firsts = [min((row[2] for row in rows if row[0] == s and row[3] >= goals[s]), default=np.inf) for s in SEEDS]
    most = max(row[1] for row in rows)
    ends, seconds = ([row[i] for row in rows if row[1] == most] for i in (3, 2))
    reached = f"reached by {sum(map(np.isfinite, firsts))} of {len(SEEDS)}, median {median(firsts):8.3f} s"
    scores = f"{median(ends):.4f} ({min(ends):.4f} to {max(ends):.4f}), perplexity {np.exp(-median(ends)):.0f}"
    print(f"{name:24s} {reached}; after {most} iterations {median(seconds):8.3f} s: {scores}", flush=True)


def main(names: list[str]) -> None:
    """Run all of it on the corpora."""
    logging.disable(logging.WARNING)  # of lda and gensim, which report each step
    if missing := [name.partition(".")[0] for name, peer in PEERS.items() if peer is None]:
        print(f"not installed, and left out: {', '.join(missing)}")
    for name in names or list(CORPORA):
        data, (K, alpha, eta) = corpus(name), CORPORA[name]
        if data is None:
            print(f"{name}: needs the package lda")
            continue
        print(f"{name}: {len(data['document'])} documents, {len(data['word'])} words, {data['counts'].sum()} tokens")
        for topics in (5, 20, 100) if PEERS["tomotopy"] is not None else ():
            sweeps(data, topics, alpha, eta)
        to_a_score(data, K, alpha, eta)


if __name__ == "__main__":
    with threadpool_limits(1):
        main(sys.argv[1:])
