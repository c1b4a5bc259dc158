"""`bz.fit` from Python: a class stands for its weakly informative prior, and progress is shown if asked."""

import numpy as np

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
