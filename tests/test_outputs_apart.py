"""Outputs of a command never overwrite the fit that it reads, nor each other."""

import pytest

import bayeszoo as bz


@pytest.fixture
def line(tmp_path):
    """A saved straight line."""
    data = {"y": [1.0, 2, 2.5, 4], "x": [0.0, 1, 2, 3]}
    return bz.save(bz.fit(bz.find("linear_regression")(), data, "exact", seed=1), tmp_path / "line.nc")


@pytest.mark.parametrize("verb", ["residuals", "predict"])
def test_a_table_does_not_take_the_place_of_a_fit(verb, run, line):
    before = line.read_bytes()
    code, out, err = run(verb, str(line), "-o", str(line), "--overwrite")
    assert (code, out) == (2, "")
    assert "names a fit" in err
    assert line.read_bytes() == before


def test_table_and_picture_have_two_names(run, line, tmp_path):
    same = str(tmp_path / "both.png")
    code, out, err = run("residuals", str(line), "-o", same, "--plot", same)
    assert (code, out) == (2, "")
    assert "both the table and the picture" in err
