"""Results on the command line: tables that fit the width, digits, and the next command."""

import numpy as np
import pytest

from bayeszoo.cli import terminal
from bayeszoo.cli.app import app
from bayeszoo.cli.next_command import instead
from bayeszoo.cli.options import TableOptions
from bayeszoo.foundation import check_names
from bayeszoo.foundation.gate import AGREEMENT
from bayeszoo.model import find as zoo
from bayeszoo.report.text import numbers, tables

WIDE_TABLE = (
    ["parameter", "mean", "a long head", "q", "status"],
    [["w[x y]", 0.5, 123456.789, -123456.789, "in words"]],
)


@pytest.mark.parametrize(
    ("columns", "shown", "left_out"),
    [
        (80, ["parameter", "mean", "a long head", "q", "status", "in words"], ""),
        (56, ["parameter", "mean", "a long head", "q", "status", "in words"], ""),
        (45, ["parameter", "mean", "q", "status"], "a long head"),
        (20, ["parameter", "mean"], "a long head, q, status"),
    ],
)
def test_a_table_folds_words_leaves_columns_out_and_breaks_no_number(capsys, monkeypatch, columns, shown, left_out):
    monkeypatch.setenv("COLUMNS", str(columns))
    terminal.show_table(*WIDE_TABLE, words=["status"], spare=["a long head"])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    table = lines[: len(lines) - bool(left_out)]
    assert max(map(len, table)) <= max(columns, 18)
    assert {"-1.2346e+05", "1.2346e+05"} & set(" ".join(table).split()) == {
        cell for name, cell in (("q", "-1.2346e+05"), ("a long head", "1.2346e+05")) if name not in left_out.split(", ")
    }
    assert all(word in " ".join(table) for name in shown for word in name.split())
    assert (f": {left_out} (use --json or a wider terminal)" in lines[-1]) == bool(left_out)


def test_cells_are_no_markup_and_columns_of_dashes_are_left_out(capsys):
    terminal.show_table(["name", "known", "empty"], [["[bold]x\x1b", 1.0, None]])
    out = capsys.readouterr().out
    assert "[bold]x\\x1b" in out
    assert "empty" not in out


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (0.590168, 0.0049, "0.590"),
        (0.590168, 0.0051, "0.590"),
        (1234.5678, 23.0, "1230"),
        (-0.00001, 0.0049, "0.000"),
        (2e-7, 3e-9, "2.00e-07"),
        (1e9 + 0.5, 1e-12, "1.000000000e+09"),
        (0.590168, 0.0, "0.59017"),  # exact
        (0.590168, np.nan, "0.59017"),
        (np.inf, 0.1, "inf"),
        (np.nan, 0.1, "-"),
    ],
)
def test_the_last_digit_is_of_the_order_of_the_error(value, error, shown):
    assert numbers.estimate(value, error) == shown


@pytest.mark.parametrize(
    ("typed", "step", "command"),
    [
        (
            "coins.csv --draws 10 -o a.nc",
            "try --draws 4000, or --method exact",
            "coins.csv -o a.nc --draws 4000 --overwrite",
        ),
        ("coins.csv --tune=5 --no-extend --seed 1", "try --method exact", "coins.csv --seed 1 --method exact"),
        ("coins.csv --draws 10", "try a narrower prior (--set FIELD=...)", None),
        (
            "coins.csv",
            "R-hat 2; try bayeszoo select coins.csv -c lda --components 1-4, or --method vb",
            "select coins.csv -c lda --components 1-4",
        ),
    ],
)
def test_the_next_step_is_a_whole_command_that_can_be_typed(typed, step, command):
    words, model = ["fit", "beta_bernoulli", *typed.split()], zoo.find("beta_bernoulli")
    said = instead(words, step, model, "nuts", "coins.csv", TableOptions())
    if command is None:
        assert said == ""
    else:
        assert said == f"bayeszoo {command if 'select' in command else 'fit beta_bernoulli ' + command}"
        app.parse_args(said.split()[1:], exit_on_error=False, print_error=False)


def test_the_next_command_reads_the_same_table():
    table = TableOptions(columns="a b,c", header=False)
    step = "try bayeszoo select x.csv -c ppca --components 1-4"
    said = instead(["fit"], step, zoo.find("ppca"), "nuts", "/far/x.csv", table)
    assert said == "bayeszoo select /far/x.csv -c ppca --components 1-4 --columns 'a b,c' --no-header"


@pytest.mark.parametrize(
    ("failed", "said"),
    [
        ({AGREEMENT: 8.25}, f"the estimate is withheld: failed {check_names.plain(AGREEMENT)} 8.25"),
        ({"divergences": 3, "e_bfmi": None}, "the estimate is withheld: failed divergences 3; e_bfmi -"),
        ({"r_hat": 1.5}, "the estimate is withheld: worst r_hat 1.5 of mu, ess_bulk 9 of mu; --json has all"),
        ({}, "the estimate is withheld: worst r_hat 1.5 of mu, ess_bulk 9 of mu; --json has all"),  # interrupted
    ],
)
def test_the_checks_that_failed_are_named_where_chains_mix(failed, said):
    checks = {name: {"value": value, "verdict": "failed"} for name, value in failed.items()}
    checks["draws"] = {"value": 400, "verdict": "ok"}
    assert tables.none_shown(["parameter", "ess_bulk", "r_hat"], [["mu", "9", "1.5"]], checks) == said


def test_probabilities_at_an_edge_are_0_and_small_numbers_are_not():
    tiny = {"mean": np.array([[4.5e-211, 1.0], [0.25, 0.75]])}
    rounded = tables._without_rounding(tiny, "point estimate")["mean"]
    assert rounded.tolist() == [[0, 1], [0.25, 0.75]]
    for kind, values in (("sampled", tiny["mean"]), ("point estimate", [4e-20, 3.0]), ("point estimate", -1e-20)):
        assert np.array_equal(tables._without_rounding({"mean": np.array(values)}, kind)["mean"], values)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_fit_without_a_number_for_any_parameter_is_shown(run, monkeypatch, tmp_path, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    (tmp_path / "rows.csv").write_text("y\na\nb\na\nc\n")  # of which no label can be told
    options = ("hmm_categorical", tmp_path / "rows.csv", "--method", "enumerate", "--seed", 1)
    code, out, _ = run("fit", *options, "-o", tmp_path / "fit.nc")
    assert code == 0
    assert "estimates are withheld" in out
    assert "log evidence" in out
    assert run("report", tmp_path / "fit.nc", "-o", tmp_path / "fit.html")[0] == 0
    assert "The estimates are withheld." in (tmp_path / "fit.html").read_text()


def test_a_comparison_in_which_no_method_has_an_answer_is_shown(run, tmp_path):
    (tmp_path / "rows.csv").write_text("y,a,b\n1,0,1\n2,1,0\n0,2,0\n3,1,1\n")  # whose columns are not orthogonal
    code, out, _ = run("compare", "bayesian_lasso", tmp_path / "rows.csv", "--methods", "exact", "--seed", 1)
    assert code == 4
    assert "withheld: no closed form" in out


CONTROL = "\x1b]0;owned\x07\x1b[2J\u202e"


def unseen(*texts):
    return {c for text in texts for c in text if not c.isprintable() and c != "\n"}


def test_no_label_drives_the_terminal(run, written, tmp_path):
    """Columns, groups and levels come from a table, in titles and heads as in cells."""
    flip, group = f"y{CONTROL}", f"g{CONTROL}"
    rows = "".join(f"{i % 2},{CONTROL}{'ab'[i // 4]}\n" for i in range(8))
    table = written(f"{flip},{group}\n{rows}", f"rows{CONTROL.replace('/', '')}.csv")
    fits = tmp_path / "by.nc"
    fit = ["fit", "beta_bernoulli", table, "--column", flip, "--by", group, "--method", "exact", "--seed", "1"]
    asked = [[*fit, "-o", fits], ["contrasts", fits], ["predict", fits], ["residuals", fits]]
    asked += [["predict", fits, "--column", CONTROL], ["show", CONTROL], [CONTROL], ["predict", f"{CONTROL}.nc"]]
    for command in asked:
        code, out, err = run(*command)
        assert code in (0, 2)
        assert unseen(out, err) == set()


def test_no_feature_drives_the_terminal(run, written, tmp_path):
    feature = f"x{CONTROL}"
    table = written(f"y,{feature}\n" + "".join(f"{i * i % 7},{CONTROL}{'abc'[i % 3]}\n" for i in range(12)))
    line = tmp_path / "line.nc"
    fit = ["fit", "linear_regression", table, "--target", "y", "--features", feature, "--method", "exact", "-o", line]
    for command in (fit, ["contrasts", line], ["predict", line], ["residuals", line], ["select", "-c", line]):
        code, out, err = run(*command)
        assert code in (0, 2)
        assert unseen(out, err) == set()


def test_a_line_of_output_is_one_line(capsys):
    terminal.out().print("a label\nof two lines", "another", sep="\n")
    terminal.show_table([f"name{CONTROL}", "b\nc"], [("x\ny", 1.0)], title=f"title{CONTROL}\n")
    out = capsys.readouterr().out
    assert r"a label\nof two lines" in out
    assert unseen(out) == set()
    assert r"b\nc" in out
