"""Suggestions for names of models and tasks that the zoo calls otherwise, or lacks."""

import json
import re

import pytest

import bayeszoo as bz
from bayeszoo.cli.app import app
from bayeszoo.model.other_names import table
from tests.refusals import raises

ELSEWHERE = {
    *("CausalPy", "DoWhy", "PyMC", "PyTorch", "arch", "bambi", "copulas", "dynesty", "gensim", "implicit", "lifelines"),
    *("mlxtend", "networkx", "py-irt", "pyextremes", "scikit-learn", "semopy", "statsmodels"),
}
"""Libraries that the table sends people to; a model or a command that is misspelt is none of them."""
NAMES = table(tuple(bz.names()))


def test_every_name_leads_to_a_model_a_command_or_a_library():
    commands = {f"bayeszoo {name}" for name in app}
    assert {each.take for each in NAMES if each.is_here} <= {*bz.names(), *commands}
    assert {each.take for each in NAMES if not each.is_here} == ELSEWHERE


def test_what_is_said_of_a_name_mentions_models_and_commands_that_there_are():
    commands = {*app}
    for each in NAMES:
        for word in re.findall(r"`(?:bayeszoo )?([a-z_]+)[^`]*`", each.why):
            assert word in {*bz.names(), *commands, "pm", "bz", "numpyro", "factor_analyzer"}, each


def test_no_name_is_there_twice():
    letters = [re.sub(r"[^a-z0-9]", "", each.name.lower()) for each in NAMES]
    assert len(letters) == len(set(letters))


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("kmeans", "gaussian_mixture"),
        ("K Means", "gaussian_mixture"),
        ("t test", "normal_gamma"),
        ("survival", "lifelines"),
        ("kaplan", "lifelines"),
        ("cox", "lifelines"),
        ("logistc regression", "logistic_regression"),
        ("lda", "lda"),
        ("mixed models", "varying_lines"),
        ("anova", "linear_regression"),
    ],
)
def test_words_find_what_they_mean(words, first):
    assert bz.suggest(words)[0].take == first


def test_what_is_here_comes_first_and_an_answer_once():
    answers = bz.suggest("regression")
    assert 1 < len(answers) == len({each.take for each in answers}) <= 6
    assert sorted(answers, key=lambda each: not each.is_here) == answers
    assert bz.suggest("qzx") == []


def test_words_are_needed():
    for words in ("", "  ", 3):
        with raises(bz.InputError, "empty"):
            bz.suggest(words)


def test_a_model_that_is_called_otherwise_is_named_in_the_error():
    with raises(bz.InputError, "unknown_model", "gaussian_mixture"):
        bz.find("kmeans")
    with raises(bz.InputError, "unknown_model", "lifelines"):
        bz.find("survival")


def test_the_command_gives_the_same(run):
    code, out, _ = run("find", "t-test", "--json")
    assert code == 0
    assert json.loads(out)[0]["take"] == "normal_gamma"
    code, out, _ = run("find", "zzzz")
    assert (code, "bayeszoo list" in out) == (0, True)
