"""The stored scorecards: each model has one, it passed, and it is of the checks that there are now."""

import dataclasses
import json

import pytest

from bayeszoo.cli.verbs.check import show_stored
from bayeszoo.contract import scorecard
from bayeszoo.contract.check import applicable
from bayeszoo.errors import InputError
from bayeszoo.foundation.gate import Check
from bayeszoo.model import find as zoo
from bayeszoo.model.base import fields_of
from bayeszoo.model.capabilities import CAPABILITIES, PointMasses, has_few_outer, has_vectors, is_exact
from tests.refusals import raises

MODELS = zoo.builtin_names()
GATE = "NUTS: failed gate checks"
SAMPLER = {GATE, "NUTS: largest |z|", "NUTS: |z| of the mean log density", "NUTS: MCSE over its limit"}
SAMPLER |= {"power: |z| of sd x 1.1", "power: |z| of mean + 0.2 sd"}
GIBBS = {"Gibbs: failed gate checks", "Gibbs: largest |z|", "Gibbs: |z| of the mean log density"}
GIBBS |= {"power: |z| of a tenth of the draws at 0", "power: |z| of sd x 1.1"}
BY_ENUMERATION = {GATE, "NUTS against enumeration: largest |z|", "power: |z| of label-free quantities + 0.2 sd"}
BY_QUADRATURE = {GATE, "NUTS against quadrature: largest |z|", "power: |z| of label-free quantities + 0.2 sd"}
GIBBS_BY_ENUMERATION = {"Gibbs: failed gate checks", "Gibbs against enumeration: largest |z|"}


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_a_card_that_passed_the_checks_that_apply_now(name):
    card, model = scorecard.load(name), zoo.find(name)
    assert (card.model, card.passed, set(card.versions)) == (name, True, set(scorecard.PACKAGES))
    assert card.file_digest == scorecard.file_digest(model)  # else `python -m bayeszoo.cli.verbs.check MODEL`
    assert all(check.value is not None for check in card.checks)
    files = [item.file.removesuffix(".gz") for item in model.examples]
    assert [case["data"] for case in card.cases][-len(model.examples) :] == files
    defaults = {f.name: f.default for f in dataclasses.fields(model)}
    assert all(case["fields"].keys() == fields_of(model()).keys() for case in card.cases)
    assert card.cases[0]["fields"] != defaults
    made = dict(zip(card.checks, card.made_by, strict=True))
    identities = [identity.function for identity in applicable(model)]
    assert [by for by in card.made_by if by not in ("source", "sampler")] == identities
    reference = {
        (lambda model: is_exact(model) and not has_vectors(model)): SAMPLER,
        has_few_outer: BY_QUADRATURE,
        CAPABILITIES["Enumerable"]: BY_ENUMERATION,
    }
    expected = [names for applies, names in reference.items() if applies(model)]
    if issubclass(model, PointMasses):
        expected = [GIBBS]
    elif is_exact(model) and CAPABILITIES["Gibbs"](model):
        expected.append({name for name in GIBBS if name.startswith("Gibbs")})
    elif CAPABILITIES["Enumerable"](model) and CAPABILITIES["Gibbs"](model):
        expected.append(GIBBS_BY_ENUMERATION)
    assert {check.name for check, by in made.items() if by == "sampler"} == set().union(*expected)
    assert sum(by == "source" for by in card.made_by) == 3


def test_a_card_is_printed_with_its_date_and_versions(capsys):
    assert show_stored("beta_bernoulli") == 0
    out, _ = capsys.readouterr()
    card = scorecard.load("beta_bernoulli")
    assert card.date[:10] in out.splitlines()[0]
    assert f"pymc {card.versions['pymc']}" in out
    assert "on paris_births.csv, 1 rows: beta_bernoulli(a=1.5, b=1.9)" in out
    for check in card.checks:
        assert check.name in out


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """Where cards are written and read in a test."""
    monkeypatch.setattr(scorecard, "folder_of", lambda kind: tmp_path)
    return tmp_path


def test_save_and_load_give_back_the_card_in_json_that_every_reader_takes(stored):
    cases = ({"data": "michelson.csv", "rows": 100, "digest": "0", "fields": {"m0": 0.5}},)
    checks = (Check("units", True, 1e-15, "<= 1e-09"), Check("gradient", False, float("inf"), "<= 1e-09"))
    made_by = ("units", "gradient")
    card = scorecard.Scorecard("gaussian_mean", "2026-01-01T00:00", 3, {"pymc": "6"}, "0", cases, checks, made_by)
    (path,) = scorecard.save([card], stored)
    assert path == stored / "gaussian_mean.json"
    assert scorecard.load("gaussian_mean") == card
    assert path.read_bytes().endswith(b"}\n")
    json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)


def test_a_card_that_did_not_pass_is_stored_and_says_so(stored, capsys):
    checks = (Check("units", False, None, "x"),)
    scorecard.save([scorecard.Scorecard("gaussian_mean", "2026-01-01", 0, {}, "0", (), checks, ("u",))], stored)
    assert show_stored("gaussian_mean") == 3
    out, err = capsys.readouterr()
    assert "FAILED" in out
    assert "have changed since" in err


def test_a_model_without_a_card(stored):
    with raises(InputError, "unknown_name", "beta_bernoulli"):
        scorecard.load("beta_bernoulli")
    with raises(InputError, "unknown_model"):
        scorecard.load("../../etc")


def test_a_changed_model_file_is_noticed(stored):
    kind = zoo.find("beta_bernoulli")
    identities = tuple(identity.function for identity in applicable(kind))
    checks = tuple(Check(name, True, 0.0, "<= 0") for name in identities)
    card = scorecard.Scorecard(kind.name, "", 0, {}, scorecard.file_digest(kind), (), checks, identities)
    assert scorecard.is_current(card)
    assert not scorecard.is_current(dataclasses.replace(card, file_digest="0"))
    assert not scorecard.is_current(dataclasses.replace(card, made_by=identities[1:], checks=checks[1:]))


def test_only_statements_count():
    source = '"""Doc."""\nfrom a import b, Hint\n\ndef f(x: Hint) -> Hint:\n    """Say."""\n    return b(x, 1.0)\n'
    same = "from a import b\n\ndef f(x):\n    # why\n    return b(x, 1.0)\n"
    assert scorecard.statements(source) == scorecard.statements(same)
    for changed in (same.replace("1.0", "2.0"), same.replace("from a", "from c"), same.replace("f(x)", "f(x, y=1)")):
        assert scorecard.statements(changed) != scorecard.statements(source)
