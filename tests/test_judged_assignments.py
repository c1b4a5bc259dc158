"""Assignments, row by row, and divergences by approximations whose parameters are withheld are judged by themselves."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics.cluster import contingency_matrix

import bayeszoo as bz
from bayeszoo.answers import judged
from bayeszoo.answers.latent.assign import _agreement, probabilities_agree
from bayeszoo.answers.latent.assigned import Assignments
from bayeszoo.errors import Caution, Untrustworthy
from bayeszoo.inference import reference
from bayeszoo.inference.methods import vb
from bayeszoo.report.families.screens import responsibilities
from bayeszoo.results.stored import Fit
from tests.refusals import raises
from tests.test_judged import as_approximation, changed, rng


@pytest.fixture(scope="module")
def mixture():
    """A fit of two clusters measured against its own draws, of which the labels are the other way round."""

    def known(problem):
        q = vb.searched(problem, 2).best.state
        draws = problem.model.vb_posterior(q).rvs((4, 500), rng())
        wide = {**draws, "means": draws["means"] + 1.5 * (draws["means"] - draws["means"].mean(axis=(0, 1)))}
        return reference.Reference("draws of the test", {name: values[:, :, ::-1] for name, values in wide.items()})

    model = bz.find("gaussian_mixture")
    normal = np.random.default_rng(3).normal
    data = bz.read(model, np.concatenate([normal(-3, 1, (40, 1)), normal(3, 1, (25, 1))]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "reference", known)
        with pytest.warns(Caution):
            return bz.fit(model.weak(data), data, "vb", seed=1, restarts=2, groups=())


def test_assignments_are_withheld_in_rows_between_the_components_that_are_off(mixture):
    assert "parameters_withheld" in Fit(mixture).facts
    frame = bz.assign(mixture)
    far = frame["withheld"].str.endswith(judged.FAR).to_numpy()
    assert 0 < far.sum() < len(frame) / 2
    assert frame.loc[far, ["component", "expected_loss", "p[1]", "p[2]", "mcse[1]"]].isna().all(axis=None)
    assert frame.loc[~far, ["component", "expected_loss", "p[1]", "p[2]"]].notna().all(axis=None)
    assert np.isnan(frame.attrs["expected_errors"])  # of all rows
    assert f"{far.sum()} of 65 rows" in frame.attrs["judged"]
    y = Fit(mixture).data["Y"][:, 0]
    assert np.abs(y[far]).mean() < np.abs(y[~far]).mean()


def test_assignments_do_not_pass_by_components_of_other_numbers(mixture):
    """A posterior of which the components are elsewhere: no numbering mends that."""
    with raises(Untrustworthy, "withheld"):
        bz.assign(changed(mixture, means=lambda m: m + 6.0))


def test_a_probability_is_compared_in_its_tail_too(mixture):
    limits = judged.WITHIN
    each = [Assignments.of_draws(np.full((4, 10, 1, 2), [p, 1 - p])) for p in (1e-3, 1e-2, 0.48, 0.52, 0.9, 0.91)]
    agree = lambda i, j: probabilities_agree(each[i], each[j], limits).item()  # noqa: E731
    assert agree(4, 5)
    assert not agree(0, 1)
    assert not agree(1, 0)
    assert agree(2, 3)
    with raises(Untrustworthy, "withheld"):  # near, and another label
        _agreement(Fit(mixture), each[2], each[3])


def test_an_assignment_is_printed_without_what_is_of_all_rows(mixture, run, tmp_path):
    bz.save(mixture, tmp_path / "fit.nc")
    out = run("assign", tmp_path / "fit.nc")[1]
    assert "nan" not in out
    assert out.count("judged by itself") == 1


def test_k_means_is_compared_in_the_rows_whose_assignment_is_shown(mixture, run, tmp_path):
    """The rows elsewhere are counted by scikit-learn's table of labels: none that is withheld counts."""
    rows = pd.DataFrame(Fit(mixture).data["Y"], columns=["x"])
    frame = bz.assign(mixture)
    known = frame["component"].notna().to_numpy()
    answer = bz.kmeans(rows, 2, seed=1)
    table = contingency_matrix(answer.labels[known], frame["component"][known].astype(int))
    apart = known.sum() - max(np.trace(table), np.trace(table[::-1]))
    assert answer.apart(frame) == apart
    off = frame.copy()
    off.loc[known, "component"] = 3 - off.loc[known, "component"]  # other numbers
    assert answer.apart(off) == apart
    rows.to_csv(tmp_path / "rows.csv", index=False)
    bz.save(mixture, tmp_path / "fit.nc")
    out = run("kmeans", tmp_path / "rows.csv", "-K", 2, "--seed", 1, "--against", tmp_path / "fit.nc")[1]
    assert f"the fit puts {apart} of {known.sum()} rows into another cluster" in out
    assert "Withheld: probabilities of rows" in out


def rows_of(mean, seed):
    model = bz.find("normal_gamma")
    y = np.random.default_rng(seed).normal(mean, 1.0, 30)
    return bz.fit(model(), {"y": y}, "exact", seed=seed)


def shifted(tree, by):
    """Take a fit for an approximation whose means are off by some sd."""
    tree = as_approximation(tree, "mu")
    draws = tree["posterior"].to_dataset()
    name = next(name for name in draws if name.startswith("mu") or name == "mean")
    tree["posterior"] = draws.assign({name: draws[name] + by * draws[name].std()})
    return tree


def test_a_divergence_is_judged_whichever_of_the_two_fits_is_off():
    right = bz.kl(shifted(rows_of(0.0, 1), 0.0), shifted(rows_of(2.0, 2), 0.0))
    assert "judged by itself" in right.attrs["judged"]
    assert np.isfinite(right[["mean", "sd", "q025"]]).all(axis=None)
    for offs in ((2.0, 0.0), (0.0, -2.0), (2.0, -2.0)):
        with raises(Untrustworthy, "withheld"):
            bz.kl(shifted(rows_of(0.0, 1), offs[0]), shifted(rows_of(2.0, 2), offs[1]))


def test_a_divergence_of_means_that_are_off_alike_is_shown():
    both = [shifted(rows_of(0.0, 1), 2.0), rows_of(2.0, 2)]
    draws, other = both[0]["posterior"].to_dataset(), both[1]["posterior"].to_dataset()
    name = next(name for name in draws if name.startswith("mu") or name == "mean")
    shift = 2 * float(both[0]["reference_draws"][name].std())
    both[1] = shifted(both[1], shift / float(other[name].std()))
    assert np.isfinite(bz.kl(*both)["mean"]).all()


def test_the_page_has_the_rows_that_are_shown(mixture):
    frame = bz.assign(mixture)
    known = frame["component"].notna()
    assert 0 < (~known).sum() < len(frame)
    words = " ".join(block.text for block in responsibilities(Fit(mixture)).under if hasattr(block, "text"))
    assert f"of {known.sum()} labels" in words
    assert f"{(~known).sum()} of the {len(frame)} rows are withheld" in words
