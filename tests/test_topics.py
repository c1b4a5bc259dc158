"""Words of topics and topics of documents, from fits of topic models."""

import json

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.cli.verbs.rows import topics_command
from bayeszoo.errors import InputError, Untrustworthy

TOPICS = np.array([[0.5, 0.3, 0.2, 0, 0, 0], [0, 0, 0, 0.5, 0.3, 0.2]])
WORDS = ["ant", "bee", "cat", "day", "eve", "fog"]


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(1)
    return rng.multinomial(60, rng.dirichlet([0.5, 0.5], 40) @ TOPICS)


@pytest.fixture(scope="module")
def tree(counts):
    return bz.fit(bz.find("lda")(K=2, alpha=0.5, eta=0.5), {"counts": counts, "word": WORDS}, "gibbs", seed=1)


@pytest.fixture(scope="module")
def saved(tree, tmp_path_factory):
    path = tmp_path_factory.mktemp("fit") / "lda.nc"
    bz.save(tree, path)
    return path


def test_planted_topics_are_found_within_their_intervals(tree):
    frame = bz.topics(tree, top=3)
    sets = [tuple(sorted(frame.loc[topic, "word"])) for topic in (1, 2)]
    assert sorted(sets) == [("ant", "bee", "cat"), ("day", "eve", "fog")]
    truth = dict(zip(WORDS, TOPICS.sum(axis=0), strict=True))
    for row in frame.itertuples():
        assert abs(row.mean - truth[row.word]) < 4.4 * row.sd
        assert row.q025 < row.median < row.q975
        assert 0 < row.mcse_mean < row.sd / 5
    assert sum(frame.attrs["shares"]) == pytest.approx(1)
    assert min(frame.attrs["stability"]) > 0.7


def test_numbers_are_those_of_the_draws(tree):
    frame = bz.topics(tree, top=6)
    draws = tree["posterior"]["topics"]
    for (topic, _), row in frame.iterrows():
        one = draws.sel(topic=topic, word=row["word"]).to_numpy()
        assert row["mean"] == pytest.approx(one.mean(), rel=1e-12)
        assert row["q975"] == pytest.approx(np.quantile(one, 0.975), rel=1e-12)
    assert np.all(np.diff(frame.loc[1, "mean"]) <= 0)


def test_documents_of_the_fit_have_their_own_proportions(tree, counts):
    frame = bz.proportions(tree)
    first = [int(frame.loc[("1", k), "mean"] > 0.5) for k in (1, 2)]
    ants = counts[0, :3].sum() > 30
    ant_topic = 1 if bz.topics(tree, 1).loc[(1, 1), "word"] in WORDS[:3] else 2
    assert first[ant_topic - 1] == int(ants)
    assert frame["mean"].groupby(level="document").sum().to_numpy() == pytest.approx(1)


def test_a_document_seen_again_as_new_gets_the_proportions_that_it_has(tree, counts):
    own, new = bz.proportions(tree), bz.proportions(tree, {"counts": counts[:8], "word": WORDS}, seed=3)
    gap = (new["mean"].to_numpy() - own["mean"].to_numpy()[:16]).reshape(8, 2)[:, 0]
    assert np.max(np.abs(gap) / own["sd"].to_numpy()[:16].reshape(8, 2)[:, 0]) < 0.5
    ratio = new["sd"].to_numpy() / own["sd"].to_numpy()[:16]
    assert np.all((ratio > 0.6) & (ratio < 1.6))


def test_new_documents_that_are_all_of_one_topic_or_empty(tree):
    new = {"counts": [[50, 30, 20, 0, 0, 0], [0, 0, 0, 0, 0, 0]], "word": WORDS}
    frame = bz.proportions(tree, new, seed=1)
    ant_topic = 1 if bz.topics(tree, 1).loc[(1, 1), "word"] in WORDS[:3] else 2
    # Dirichlet(0.5 + 100, 0.5), as topics share no word; and the prior
    assert frame.loc[("1", ant_topic), "mean"] == pytest.approx(100.5 / 101, abs=0.01)
    assert frame.loc[("2", ant_topic), "mean"] == pytest.approx(0.5, abs=0.1)
    assert frame.loc[("2", ant_topic), "sd"] == pytest.approx(np.sqrt(0.25 / 2), abs=0.05)


def test_words_that_the_fit_does_not_know_are_counted(tree):
    new = {"document": ["x", "x", "x"], "word": ["ant", "unheard", "bee"], "count": [5, 2, 1]}
    frame = bz.proportions(tree, new, document="document", word="word", count="count")
    assert any("2 of 8 words" in note for note in frame.attrs["notes"])


def test_a_fit_that_did_not_pass_shows_its_topics_only_when_told_to(counts):
    model = bz.find("lda")(K=2, alpha=0.5, eta=0.5)
    bad = bz.fit(model, {"counts": counts, "word": WORDS}, "gibbs", seed=1, draws=20, tune=1, extend=False)
    with pytest.raises(Untrustworthy, match=r"estimates are withheld: .*untrusted=True"):
        bz.topics(bad)
    with pytest.raises(Untrustworthy):
        bz.proportions(bad)
    assert "gate did not pass" in bz.topics(bad, 2, untrusted=True).attrs["caveat"]
    figure = bz.plot_topics(bad, 3, untrusted=True)
    assert [panel.get_title().partition(":")[0] for panel in figure.axes[:2]] == ["topic 1", "topic 2"]
    assert "NOT TO BE TRUSTED" in figure.get_suptitle()


def test_refuses_in_one_line(tree, counts):
    mixture = bz.fit(bz.find("multinomial_mixture")(K=2), method="vb", seed=1)
    coin = bz.fit(bz.find("beta_bernoulli")(), [0, 1, 1], "exact")
    one = {"counts": counts[:1], "word": WORDS}
    assert len(bz.topics(mixture, 3)) == 6  # but it has no proportions
    assert bz.predict(tree, one).index.names == ["document", "topic"]
    for call, message in (
        (lambda: bz.proportions(mixture), "has no proportions"),
        (lambda: bz.topics(tree, 0), "0 words of each topic were asked for, but the vocabulary has 6"),
        (lambda: bz.topics(tree, 7), "7 words of each topic were asked for, but the vocabulary has 6"),
        (lambda: bz.predict(tree, 3), "predicts the topics of other documents"),
        (lambda: bz.document_scores(tree, one, how="elbo"), "'completion' or 'left-to-right'"),
        (lambda: bz.document_scores(coin, [0]), "cannot infer the topics of other documents"),
    ):
        with pytest.raises(InputError, match=message):
            call()


def test_command_prints_saves_and_draws(saved, tmp_path, capsys):
    topics_command(saved, top=2, output=tmp_path / "t.csv", plot=tmp_path / "t.png")
    out = capsys.readouterr().out
    assert "stability" in out
    assert "ant, bee" in out
    assert (tmp_path / "t.csv").read_text().startswith("topic,rank,word,mean,sd,q025,median,q975,mcse_mean")
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
    topics_command(saved, documents=True)
    assert "+-" in capsys.readouterr().out
    topics_command(saved, top=2, as_json=True)
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 4


def test_documents_are_scored_as_by_their_topics(tree):
    new = {"counts": [[30, 18, 12, 0, 0, 0], [10, 6, 4, 10, 6, 4]], "word": WORDS}
    whole, half = (bz.document_scores(tree, new, how=how, seed=1) for how in ("left-to-right", "completion"))
    assert whole["words"].tolist() == [60, 40]
    assert half["words"].tolist() == [30, 20]
    # all words of one topic, whose probabilities are near those of the words themselves: entropy 1.03 nats a word
    assert half["log_score"].iloc[0] / 30 == pytest.approx(-1.03, abs=0.25)
    assert half.attrs["perplexity"] == pytest.approx(np.exp(-half["log_score"].sum() / 50))
    assert np.all(whole["bound"] <= whole["log_score"] + 3 * whole["mcse"])
    assert whole.attrs["perplexity_bound"] >= whole.attrs["perplexity"] - 3 * whole.attrs["mcse_perplexity"]


def test_command_scores_new_documents(saved, tmp_path, capsys):
    path = tmp_path / "new.csv"
    path.write_text("document,word,count\nx,ant,6\nx,bee,4\ny,day,5\ny,fog,5\n")
    topics_command(saved, str(path), score="completion")
    assert "Log score of a word" in capsys.readouterr().out
    with pytest.raises(InputError, match="--score needs other documents"):
        topics_command(saved, score="completion")
