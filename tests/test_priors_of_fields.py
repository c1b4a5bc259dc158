"""`bayeszoo fit --prior FIELD=PRIOR`: a field becomes a parameter, as by `bz.over`."""

import json

import pytest

import bayeszoo as bz
from tests.refusals import raises

SPEEDS = ("fit", "gaussian_mean", "--set", "m0=850", "--set", "s0=100", "--seed", "1", "--json")


def test_a_field_with_a_prior_is_integrated_over(run):
    """As by bz.over in Python; the usual method is then the exact one."""
    code, out, err = run(*SPEEDS, "--prior", "sigma=LogUniform(1, 1000)")
    assert code == 0, err
    answer = json.loads(out)
    over = bz.over(bz.find("gaussian_mean")(m0=850, s0=100), {"sigma": "LogUniform(1, 1000)"})
    tree = bz.fit(over, method="exact", seed=1)
    assert answer["method"] == "exact"
    mean = float(bz.summarize(tree)["sigma"]["mean"])
    assert answer["parameters"]["sigma"]["mean"] == pytest.approx(mean, rel=1e-6)


@pytest.mark.parametrize(
    ("model", "law", "code"),
    [
        ("gaussian_mean", "x=HalfNormal(1)", "over x"),
        ("gaussian_mean", "sigma=Normal(0, 1)", "sigma"),
        ("poisson_regression", "center=Normal(0, 1)", "closed-form"),
        ("gaussian_process", "scale=HalfNormal(1)", "amplitude, length, sigma"),
    ],
)
def test_what_cannot_be_a_parameter_is_refused(run, model, law, code):
    status, _, err = run("fit", model, "--prior", law)
    assert status == 2
    assert code in err


def test_other_commands_refuse_it(run):
    status, _, err = run("empirical", "gaussian_mean", "--over", "sigma", "--prior", "sigma=HalfNormal(1)")
    assert status == 2
    assert "bayeszoo fit" in err


@pytest.mark.parametrize(("field", "step"), [("length", "priors="), ("scale", "bayeszoo empirical")])
def test_a_process_says_what_takes_its_fields(field, step):
    with raises(bz.InputError, "no_closed_form", step):
        bz.over(bz.find("gaussian_process")(), {field: "HalfNormal(1)"})
