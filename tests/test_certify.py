"""The certificate: lines are kept, interrupted ones are run again, and its tables count what the lines say."""

import json
from pathlib import Path

import numpy as np
import pytest

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(Path(__file__).parents[1])
    from benchmarks import cells, certificate, certify


def line(cell, **found):
    return {"cell": cell, "source": "now", **found}


def test_a_cell_with_a_line_is_not_run_again_and_one_cut_off_is(tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_text(json.dumps(line("bad/funnel/0", status="failed", missed=[])) + "\n" + '{"cell": "bad/fun')
    assert list(certify.read_lines(path)) == ["bad/funnel/0"]
    certify.run_all(["bad/funnel/0"], 1, path)
    assert list(certify.read_lines(path)) == ["bad/funnel/0"]
    assert path.read_text().endswith("\n")


@pytest.mark.parametrize(("change", "passes"), [(lambda u: u, True), (lambda u: (u - 0.5) / 1.5 + 0.5, False)])
def test_ranks_of_draws_that_are_too_wide_fail(change, passes):
    u = np.random.default_rng(1).random((300, 2))
    ranks = [{"mu": each.tolist()} for each in np.floor(100 * change(u)).astype(int)]
    p, quantities = certificate.lowest_p(ranks)
    assert quantities == 2
    assert bool(p >= certificate.LEVEL) is passes


def test_of_entries_that_not_every_simulation_has_the_first_are_taken():
    ranks = [{"z": list(range(count)), "mu": 3} for count in (4, 2, 3)]
    assert certificate.lowest_p(ranks)[1] == 3


def test_cells_of_former_engines_are_run_again_and_compared(tmp_path, monkeypatch):
    path, ranks = tmp_path / "lines.jsonl", {"status": "ok", "missed": []}
    lines = [{"cell": f"bad/funnel/{i}", "source": "before", **ranks} for i in range(2)]
    path.write_text(
        "".join(json.dumps({**each, "status": "failed"} if i else each) + "\n" for i, each in enumerate(lines))
    )
    monkeypatch.setattr(certify, "ProcessPoolExecutor", InThisProcess)
    monkeypatch.setattr(certify, "run", lambda cell: ranks)
    certify.recheck(2, 1, [], path)
    found = certify.read_lines(path)
    assert [found[f"bad/funnel/{i}"]["same"] for i in range(2)] == [True, False]
    assert "Of 2 older cells drawn at random and run again, 1 came to the same verdict." in certificate.page(found)


class InThisProcess:
    """A pool without processes."""

    def __init__(self, *args, **options):
        self.map = map

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


def test_page_counts_what_the_lines_say():
    lines = [line(f"sbc/gaussian_mean/nuts/{i}", status="ok", ranks={"mu": [i % 100]}) for i in range(100)]
    lines += [line("sbc/lda/gibbs/0", status="failed"), line("sbc/lda/gibbs/1", raised="ValueError: no")]
    lines += [line("again/ridge/0", status="ok", z=5.0), line("again/ridge/1", status="failed", z=1.0)]
    lines += [line("bad/funnel/0", status="ok", missed=["sd"]), line("bad/funnel/3", status="failed", missed=[])]
    lines += [{**line("bugs/test_x", bugs={"seen": True, "blind": False}), "source": "before"}]
    text = certificate.page({each["cell"]: each for each in lines}, lambda cell: "now")
    assert f"{len(lines)} cells so far, {len(lines) - 1} of them with today's models and engines" in text
    for row in (
        "| gaussian_mean/nuts | 100 | 0 | 0 | 1 | 1 | passed |",
        "| lda/gibbs | 2 | 1 | 1 | 0 | 1 | too few |",
        "| ridge | 2 | 1 | 0 | 1 | 5.00! |",
        "| funnel | 2 | 1 | 0 | 1 | 1 (0) |",
        "| test_x | 2 | 1 | `blind` |",
    ):
        assert row in text


def test_a_digest_is_that_of_the_own_model():
    digests = [cells.source_digest(f"sbc/{name}/nuts/{i}") for name in ("ridge", "lda") for i in (0, 1)]
    assert digests[0] == digests[1] != digests[2] == digests[3]


def test_cells_are_named_once_and_are_of_known_kinds():
    names = list(cells.cells(3))
    assert len(names) == len(set(names))
    assert {name.partition("/")[0] for name in names} == set(cells.KINDS)
    assert {"sbc/lda/gibbs/2", "again/ridge/19", "bad/Cauchy/9"} <= set(names)
