"""`bz.fit` from Python: a class stands for its weakly informative prior, and progress is shown if asked."""

import numpy as np
import pandas as pd
import pytest

import bayeszoo as bz
from bayeszoo.foundation.process.progress import ProgressLine
from tests.refusals import raises


def test_a_class_is_fitted_with_its_weak_prior():
    M, y = bz.find("gaussian_mean"), [850.0, 740.0, 900.0]
    tree = bz.fit(M, y, "exact", seed=1)
    assert bz.view(tree).model == M.weak(bz.read(M, y))
    assert bz.view(tree).notes[-1] == "priors are scaled to the data"
    same = bz.fit(M.weak(bz.read(M, y)), y, "exact", seed=1)
    assert np.array_equal(tree["posterior"]["mu"], same["posterior"]["mu"])
    of_textbook = bz.fit(bz.find("beta_bernoulli"), [1, 0], "exact", seed=1)
    assert not any("scaled" in note for note in bz.view(of_textbook).notes)


def test_what_is_no_model_is_refused_by_name(written):
    with raises(bz.InputError, "not_a_model"):
        bz.fit(3, [1.0])
    mean = bz.find("gaussian_mean")
    total = bz.accumulate(mean(), written("y\n1\n2\n"))
    with raises(bz.InputError, "needs_rows"):
        bz.fit(mean, total, "exact")


def test_progress_is_shown_if_asked_and_what_is_written_over_leaves_nothing(capsys):
    data = {"counts": [[3, 1, 0], [4, 0, 1], [0, 2, 5], [1, 1, 6]], "word": list("abc")}
    mixture = bz.find("multinomial_mixture")
    bz.fit(mixture(), data, "em", seed=1)
    assert capsys.readouterr() == ("", "")
    bz.fit(mixture(), data, "em", seed=1, progress=True)
    out, err = capsys.readouterr()
    assert (out, err.rsplit("\r", 2)[1].strip()) == ("", "")
    assert " of 20" in err
    line = ProgressLine()
    line.progress("sampling", 1, 100)
    line.say("done")
    assert capsys.readouterr().err == "\rsampling: 1 of 100\rdone              \n"


ROWS = {"y": [1.0, 2.5, 2.0, 4.0], "x": [0.5, 1.0, 2.0, 3.0]}
OF_INSTANCES = {
    "bayesbag": lambda: bz.bayesbag(bz.find("normal_gamma"), ROWS["y"]),
    "code": lambda: bz.code(bz.find("beta_bernoulli"), [0, 1]),
    "compare": lambda: bz.compare(bz.find("beta_bernoulli"), [0, 1]),
    "components": lambda: bz.components(bz.find("gaussian_mixture"), [1, 2]),
    "empirical_bayes": lambda: bz.empirical_bayes(bz.find("ridge"), ROWS, over="tau"),
    "evidence_grid": lambda: bz.evidence_grid(bz.find("ridge"), ROWS, over={"tau": (1, 2)}),
    "full_bayes": lambda: bz.full_bayes(bz.find("ridge"), ROWS, over="tau"),
    "held_out": lambda: bz.held_out(bz.find("lda")),
    "lasso_path": lambda: bz.lasso_path(bz.find("bayesian_lasso"), ROWS),
    "over": lambda: bz.over(bz.find("ridge"), {"tau": "LogUniform(1, 2)"}),
    "stream": lambda: next(bz.stream(bz.find("beta_bernoulli"), [[0, 1]])),
    "update": lambda: bz.update(bz.find("beta_bernoulli"), [0, 1]),
    "weight_priors": lambda: bz.weight_priors(
        bz.find("ridge"), bz.read(bz.find("ridge"), ROWS), {"w[x]": "Normal(0, 1)"}
    ),
}


@pytest.mark.parametrize("ask", OF_INSTANCES.values(), ids=OF_INSTANCES)
def test_a_class_in_the_place_of_an_instance_is_named(ask):
    """Some ended in a TypeError, others said that the model had no closed form."""
    with raises(bz.InputError, "not_a_model", "the class ") as caught:
        ask()
    assert ".weak(data)" in caught.value.hint


def test_features_and_outcome_as_two_arguments_are_refused_with_the_way_to_give_them():
    x = np.array(ROWS["x"])[:, None]
    with raises(bz.InputError, "wrong_type", "(X, y)"):
        bz.fit(bz.find("ridge"), x, np.array(ROWS["y"]))
    assert bz.fit(bz.find("ridge"), (x, ROWS["y"]), "exact", seed=1, groups=()).attrs["status"] == "ok"


def test_a_single_fit_and_fits_by_name_are_no_list_of_fits():
    tree = bz.fit(bz.find("beta_bernoulli"), [0, 1], "exact", seed=1, groups=())
    for fits in (tree, {"first": tree}):
        with raises(bz.InputError, "wrong_type", "bz.compare([a, b])"):
            bz.compare(fits)


def test_names_of_columns_as_pandas_has_them():
    frame = pd.DataFrame(ROWS)
    assert bz.read(bz.find("ridge"), frame, features=frame.columns.drop("y"))["feature"].tolist() == ["x"]
    for by in (frame["x"], ["x"]):
        with raises(bz.InputError, "missing_column"):
            bz.fit_by(bz.find("normal_gamma"), frame, by=by, method="exact")


def test_a_prior_that_is_no_number_is_refused_in_one_line():
    with raises(bz.InputError, "wrong_type") as caught:
        bz.find("linear_regression")(a0=pd.Series([1.0, 2.0]))
    assert "\n" not in str(caught.value)
