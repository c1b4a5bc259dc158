"""What is refused of a file at once is refused of its chunks, with the same message and the same row."""

import numpy as np
import pandas as pd
import pytest

import bayeszoo as bz
from bayeszoo.data.inputs import Inputs
from bayeszoo.data.inputs.base import Layout, Parsed
from bayeszoo.data.table.read import read_parts, read_table
from tests.reading import by_name, model_of
from tests.test_table import ACCEPTED, REFUSED

CASES = {
    f"{name}, {rows}": (*case, rows)
    for name, case in REFUSED.items()
    for rows in ([1, 2, 3, 20_000, 10**6] if len(case[0]) < 10**5 else [20_000, 10**6])
}


@by_name(("text", "message", "places", "rows"), CASES)
def test_text_that_is_refused_at_once_is_refused_in_chunks(tmp_path, text, message, places, rows):
    path = tmp_path / "data.csv"
    path.write_bytes(text.encode())
    with pytest.raises(bz.InputError) as caught:
        list(read_parts(path, rows))
    assert message in str(caught.value)
    assert caught.value.rows == places


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
@by_name(("content", "columns"), ACCEPTED)
def test_text_that_is_accepted_at_once_is_accepted_in_chunks(written, content, columns, rows):
    path = written(content)
    parts = list(read_parts(path, rows))
    assert {name: [cell for part in parts for cell in part[name].values] for name in parts[0].columns} == columns
    assert {part.rows for part in parts[:-1]} <= {rows}
    assert [part.rows for part in parts if not part.rows] == []


def refusal(path, rows=7, kind="gaussian_mean", **options):
    with pytest.raises(bz.InputError) as caught:
        bz.accumulate(bz.find(kind)(), path, rows, **options)
    return caught.value


LINES = [str(i / 10) for i in range(1, 31)]


def with_line(place, text):
    """Thirty rows of which one (counted from 1) is another."""
    return "\n".join(["y", *LINES[: place - 1], text, *LINES[place:]]) + "\n"


IN_THE_THIRD_CHUNK = {
    "a word": (with_line(17, "abc"), "column 'y', row 17: 'abc' is not a number"),
    "a hole": (with_line(17, "NA"), "column 'y': 1 missing value (row 17), of the rows up to 21; use --missing drop"),
    "too large": (with_line(17, "1e200"), "column 'y', row 17: '1e200' is too large to square"),
    "two cells": (with_line(17, "1,2"), "data.csv: row 17 has 2 fields, the header has 1"),
    "an open quote": (with_line(17, '"1'), "data.csv: quote opened in row 17 is never closed"),
    "text after a quote": (with_line(17, '"1"2'), "data.csv: row 17 has text after a closing quote"),
    "NUL": (with_line(17, "1\0"), "row 17 contains a NUL byte"),
    "latin-1": (with_line(17, "é").encode("latin-1"), "not UTF-8 at byte 67; use --encoding latin-1"),
}


@by_name(("text", "message"), IN_THE_THIRD_CHUNK)
def test_a_bad_row_has_its_number_in_the_file(written, text, message):
    error = refusal(written(text))
    assert str(error).startswith(message)
    assert error.rows == (() if "byte" in message and "row" not in message else (17,))


def test_several_bad_rows_are_counted_as_far_as_was_looked(written):
    text = "y\n" + "\n".join([*LINES[:14], "x", "1", "z", *LINES[:20]]) + "\n"
    error = refusal(written(text))
    assert str(error) == "column 'y', row 15: 'x' is not a number (and 1 more: row 17), of the rows up to 21"
    assert error.rows == (15, 17)


@pytest.mark.parametrize("rows", [1, 2, 7, 100])
def test_names_that_occur_in_different_chunks_are_data(written, rows):
    path = written("boy,3\n" + "girl,4\n" * 10 + "boy,4\n" + "girl,4\n" * 20)
    with pytest.raises(bz.InputError, match="row 1 looks like data \\('boy','3'\\)"):
        list(read_parts(path, rows))
    path.write_text("sex,at\n" + "girl,at\n" * 10 + "sex,4\n" + "girl,4\n" * 20)
    with pytest.raises(bz.InputError, match="row 1 looks like data \\('sex','at'\\)"):
        list(read_parts(path, rows))


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_a_quoted_line_end_may_lie_between_chunks(written, rows):
    path = written('a,b\n1,"x\ny"\n2,"\n\n"\n3,"u,v\n"\n4,z\n')
    cells = [cell for part in read_parts(path, rows) for cell in part["b"].values]
    assert cells == read_table(path)["b"].values == ["x\ny", "\n\n", "u,v\n", "z"]


def test_missing_values_are_dropped_and_counted(written):
    path = written("y,a\n" + "\n".join(["1,2", "NA,3", "4,5", ",", "6,NA", "7,9", "NA,1", "NA,2", "3,NA"]) + "\n")
    Ridge = bz.find("ridge")
    whole = bz.read(Ridge, path, missing="drop")
    assert whole.notes[0] == "6 rows with missing values dropped (rows 2, 4, 5, 7, 8, ...)"
    for rows in (1, 2, 4, 9):
        found = bz.accumulate(Ridge(), path, rows, missing="drop")
        assert whole.notes[0] in found.notes
        assert found.rows == 3
        assert Ridge().log_evidence(found.stats) == pytest.approx(Ridge().log_evidence(Ridge().statistics(whole)))
    sizes = [chunk.rows for chunk in bz.read_chunks(Ridge, path, 2, missing="drop")]
    assert sizes == [1, 1, 1, 0, 0]


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_a_file_without_a_value_is_refused(written, rows):
    error = refusal(written("y\nNA\nNA\nNA\n"), rows, missing="drop")
    assert "has no values" in str(error) or "there are no observations" in str(error)


def test_rows_of_no_trials_are_no_observations(written):
    path = written("successes,trials\n0,0\n1,2\n0,0\n")
    Coin = bz.find("beta_bernoulli")
    found = [bz.accumulate(Coin(), path, rows) for rows in (1, 2, 3)]
    assert {(one.stats.successes, one.stats.failures, one.rows) for one in found} == {(1, 1, 3)}
    assert len({one.digest for one in found}) == 1
    assert "there are no observations" in str(refusal(written("successes,trials\n0,0\n0,0\n"), 1, "beta_bernoulli"))


def test_counts_that_add_up_to_too_much_over_the_chunks(written):
    text = "y\n" + f"{2**52}\n" * 3
    assert "has a sum above 2**53" in str(refusal(written(text), 1, "gamma_poisson"))
    assert "has a sum above 2**53" in str(refusal(written(text), 3, "gamma_poisson"))


NOT_IN_CHUNKS = {
    "positive": ("beta_bernoulli", "y\nyes\nno\nyes\n", {"positive": "yes"}, "--positive needs all rows"),
    "counts of labels": ("beta_bernoulli", "y,n\n1,2\n0,3\n1,4\n", {"column": "y", "count": "n"}, "--count needs all"),
    "labels": ("dirichlet_multinomial", "v\na\nb\na\n", {}, "the categories must be known .* with --categories"),
    "labels or counts": ("dirichlet_multinomial", "v,w\n1,2\n3,4\n5,6\n", {}, "only all rows together show whether"),
    "columns of counts": ("dirichlet_multinomial", "v,w\n1,2\n3,4\n", {"columns": "v,w"}, "--columns needs all"),
    "symbols": ("markov_chain", "from,to\na,b\nb,a\n", {}, "the symbols must be known before"),
    "order": ("markov_chain", "from,to\na,b\nb,a\n", {"symbols": "a,b"}, "use --order 1"),
    "a sequence": ("markov_chain", "s\na\nb\n", {"symbols": "a,b", "order": 1}, "a sequence of symbols cannot be cut"),
}


@by_name(("kind", "text", "options", "message"), NOT_IN_CHUNKS)
def test_what_only_all_rows_together_tell(written, kind, text, options, message):
    path = written(text, "bad.csv")
    with pytest.raises(bz.InputError, match=message):
        list(bz.read_chunks(bz.find(kind), path, 1, **options))


class Drifting(Inputs):
    """Labels that are found in each chunk by itself."""

    name, options, layout = "y", frozenset(), Layout(("label",), coded={"y": "label"})

    def _parse(self, table, missing, options, like):
        labels, codes = np.unique(table["y"].values, return_inverse=True)
        return Parsed({"y": codes, "label": labels}, {"y": "y"})


def test_labels_may_not_change_from_chunk_to_chunk(written):
    path = written("y\na\nb\na\nc\n")
    with pytest.raises(bz.InputError, match="rows 3 to 4 have other labels, columns or types than those before them"):
        list(bz.read_chunks(model_of(Drifting()), path, 2))


@pytest.mark.parametrize("rows", [0, -1, 1.5, True, "7"])
def test_rows_of_a_chunk(written, rows):
    with pytest.raises(bz.InputError, match="the rows of a chunk must be a whole number >= 1"):
        bz.read_chunks(bz.find("ridge"), written("y,a\n1,2\n3,4\n"), rows)


def test_what_is_no_file(tmp_path, written):
    Ridge, two = bz.find("ridge"), written("y,a\n1,2\n3,4\n")
    with pytest.raises(bz.InputError, match=r"chunks are of a file, got DataFrame; bz\.read takes what is in memory"):
        bz.read_chunks(Ridge, pd.DataFrame({"y": [1, 2]}))
    with pytest.raises(bz.InputError, match="not a regular file"):
        bz.read_chunks(Ridge, tmp_path / "none.csv")
    with pytest.raises(bz.InputError, match="unknown option 'positive'"):
        next(bz.read_chunks(Ridge, two, 1, positive="yes"))
    with pytest.raises(bz.InputError, match="a model instance is needed, got ABCMeta"):
        bz.accumulate(Ridge, two)


def test_labels_of_an_updated_model_are_required(written):
    polls = bz.update(bz.find("dirichlet_multinomial")(), ["b", "c"])
    path = written("vote\na\nb\na\n", "votes.csv")
    with pytest.raises(bz.InputError, match="the data have category 'a', 'b', but the prior is for 'b', 'c'"):
        bz.accumulate(polls, path, 2, categories=["a", "b"])
