"""The bugs that a careful reviewer would fear in regressions with a link, and the identity that must catch each."""

from dataclasses import replace

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.contract import concave
from bayeszoo.contract.case import Case
from bayeszoo.distributions.priors import Gamma
from bayeszoo.families.glm.links import Logit, Terms
from bayeszoo.families.glm.negative_binomial import NegativeBinomial
from bayeszoo.model.outer import integration

COUNTS = bz.find("negative_binomial_regression")
LOGISTIC = bz.find("logistic_regression")
MODEL = LOGISTIC(tau=3.0, s0=5.0, center=70.0, scale=7.0)


class SteeperSlope(Logit):
    def terms(self, eta, outcome, size):
        value, slope, curvature = super().terms(eta, outcome, size)
        return Terms(value, slope * 1.001, curvature)


class SharperCurvature(Logit):
    def terms(self, eta, outcome, size):
        value, slope, curvature = super().terms(eta, outcome, size)
        return Terms(value, slope, curvature * 1.001)


class Shifted(Logit):
    def log_density(self, eta, outcome, size):
        return super().log_density(eta + 1e-4, outcome, size)


def with_link(monkeypatch, link):
    right = LOGISTIC.concave
    monkeypatch.setattr(LOGISTIC, "concave", lambda self, data: replace(right(self, data), link=link))


def case():
    return Case(MODEL, bz.example(LOGISTIC, "challenger"))


@pytest.mark.parametrize("check", ["concave_density", "concave_derivatives", "certified_mode", "integrated_evidence"])
def test_every_identity_holds_of_what_is_right(check):
    assert getattr(concave, check)(case()).passed


@pytest.mark.parametrize(
    ("link", "check"),
    [
        (SteeperSlope(), "concave_derivatives"),
        (SteeperSlope(), "certified_mode"),
        (SharperCurvature(), "concave_derivatives"),
        (Shifted(), "concave_density"),
        (Shifted(), "integrated_evidence"),
    ],
)
def test_wrong_derivatives_and_densities_are_caught(monkeypatch, link, check):
    with_link(monkeypatch, link)
    assert not getattr(concave, check)(case()).passed


def test_a_prior_of_another_width_is_caught(monkeypatch):
    right = LOGISTIC.concave

    def wider(self, data):
        rows = right(self, data)
        return replace(rows, sd=rows.sd * 1.001, design=rows.design * 1.001)

    monkeypatch.setattr(LOGISTIC, "concave", wider)
    assert not concave.concave_density(case()).passed


class Sharper(NegativeBinomial):
    def terms(self, eta, outcome, size):
        value, slope, curvature = super().terms(eta, outcome, size)
        return Terms(value, slope, curvature * 1.001)


class OtherMean(NegativeBinomial):
    def log_density(self, eta, outcome, size):
        return super().log_density(eta + 1e-4, outcome, size)

    def terms(self, eta, outcome, size):
        return super().terms(eta + 1e-4, outcome, size)


def dispersed():
    return Case(COUNTS(tau=0.7, s0=2.0, m0=2.5, a0=3.0, b0=1.5), bz.example(COUNTS))


@pytest.mark.parametrize("check", ["concave_density", "concave_derivatives", "certified_mode"])
def test_every_identity_holds_given_the_dispersion(check):
    assert getattr(concave, check)(dispersed()).passed


@pytest.mark.parametrize(
    ("link", "check"),
    [
        (Sharper, "concave_derivatives"),
        (OtherMean, "concave_density"),
        (OtherMean, "certified_mode"),
    ],
)
def test_wrong_derivatives_and_densities_given_the_dispersion_are_caught(monkeypatch, link, check):
    monkeypatch.setattr(COUNTS, "concave", lambda self, data, phi: self.linked(link(phi), data))
    assert not getattr(concave, check)(dispersed()).passed


def test_a_prior_of_the_dispersion_that_is_not_the_declared_is_caught(monkeypatch):
    monkeypatch.setattr(COUNTS, "profiled", property(lambda self: {"phi": Gamma(self.a0, 1.001 * self.b0)}))
    assert not concave.concave_density(dispersed()).passed


def test_an_evidence_that_lacks_a_volume_is_caught(monkeypatch):
    right = integration.AboutMode.log_density
    monkeypatch.setattr(integration.AboutMode, "log_density", lambda self, points: right(self, points) + np.log(1.001))
    assert not concave.integrated_evidence(case()).passed
