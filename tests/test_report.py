"""The report: the page has every part, no withheld number, and no text of a user as markup."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import bayeszoo as bz
from bayeszoo.comparison.compare import Withheld
from bayeszoo.report import blocks, provenance
from bayeszoo.report.families import screens
from bayeszoo.report.page import page
from bayeszoo.report.page import report as door
from bayeszoo.report.verdict import verdict
from bayeszoo.results.quantities import labels
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import best, best_of_components, document
from tests.refusals import raises

EVIL = "<script>alert(1)</script>"


class Page(HTMLParser):
    """Elements with their attributes, and the text of the page."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.words, self.inside = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside.append(tag)

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        if not {"script", "style"} & set(self.inside):
            self.words.append(data)

    def attributes(self, tag, name):
        return [attrs[name] for found, attrs in self.elements if found == tag and name in attrs]

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def scripts(text):
    return re.findall(r"<script([^>]*)>(.*?)</script>", text, flags=re.DOTALL)


@pytest.fixture(scope="module")
def several(exact, at_mode):
    return page([Fit(at_mode), Fit(exact)], [Withheld("laplace", "no finite curvature")])


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    """A fit of a table whose columns and file name are markup."""
    y = np.arange(10.0) ** 1.5
    table = pd.DataFrame({EVIL: y, 'b&"onload=alert(2)': y[::-1]})
    path = tmp_path_factory.mktemp("evil") / "<img src=x onerror=alert(3)>.csv"
    table.to_csv(path, index=False)
    model = bz.find("normal_inverse_wishart")
    data = bz.read(model, path)
    return bz.fit(model.weak(data), data, "exact", seed=1)


@pytest.fixture(scope="module")
def evil_page(evil):
    return page([Fit(evil)])


@pytest.fixture
def pages(monkeypatch):
    """The attributes of the fits that pages are asked of, which here take no time to write."""
    attributes = []
    page = lambda fits, *_, **__: attributes.append([fit.tree.attrs for fit in fits]) or "<!doctype html>"  # noqa: E731
    monkeypatch.setitem(door.__globals__, "page", page)
    return attributes


@pytest.mark.quick
def test_the_page_has_every_part(several):
    shown = Page(several)
    order = ["summary", "estimates", "fit", "gate", "asked", "again"]
    assert [name for name in shown.attributes("section", "id") if name != "not-here"] == order
    parts = ["the model fits", "Each row from the others", "Before the data", "checks passed", "The graph of the model"]
    assert [part for part in [*parts, "Seeds, digests, versions"] if part not in shown.text] == []
    assert {href[1:] for href in shown.attributes("a", "href")} <= set(shown.attributes("section", "id"))


def test_the_model_the_prior_the_data_and_the_numbers_are_said(several, exact):
    words = Page(several).text
    assert "lam ~ Gamma(alpha0, rate beta0)" in words
    assert "mu0 1 prior mean given" in words
    assert re.search(r"alpha0 2 \S.* given", words)
    assert "The data: 10 rows" in words
    mean, sd = (exact["exact"]["mu"].sel(statistic=name).item() for name in ("mean", "sd"))
    assert f"mu {mean:.5g} {sd:.5g}" in words
    assert f"log evidence {exact['exact'].attrs['log_evidence']:.2f}" in words
    assert "laplace no answer no finite curvature" in words
    assert exact.attrs["data_digest"] in words
    assert "model = M( mu0=1.0, kappa0=1.0, alpha0=2.0, beta0=1.0, )" in words
    assert "bz.fit(model, data, method='exact', seed=1)" in words
    assert "pymc" in words
    rows = re.findall(r"(mu|lam) (exact|map) -?[0-9.]+", words[words.index("Side by side") :])
    assert rows[:4] == [("mu", "map"), ("mu", "exact"), ("lam", "map"), ("lam", "exact")]
    (text,) = [body for attributes, body in scripts(several) if "application/json" in attributes]
    numbers = json.loads(text)
    assert numbers.keys() == {"exact", "map"}
    assert numbers["exact"]["parameters"]["mu"]["mean"] == mean


def test_a_point_has_no_densities_and_the_page_no_gap_for_them(at_mode):
    assert screens.answer([Fit(at_mode)], []) == screens.Answer()


def test_sampled_fits_have_pictures_of_their_chains(nuts):
    alts = set(Page(page([Fit(nuts)])).attributes("img", "alt"))
    names = {f"{name} of theta" for name in ("densities", "traces", "ranks")}
    assert alts >= {*names, "energy of nuts"}


def test_columns_of_words_that_are_blank_are_left_out():
    table = blocks.table(["a", "b", "note", "why"], [["x", 1.0, "", ""], ["y", 2.0, "", "late"]], words=["note", "why"])
    assert (table.columns, table.rows) == (["a", "b", "why"], [["x", "1", ""], ["y", "2", "late"]])


def test_the_fit_to_be_looked_at_is_chosen_first(several):
    elements = Page(several).elements
    choices = [attrs for tag, attrs in elements if tag == "div" and attrs.get("data-label") == "fit"]
    assert [attrs["data-first"] for attrs in choices] == ["exact", "exact"]


def trusted(tree, components_withheld):
    """Set what a gate says, whatever so short a run passed."""
    facts = {**json.loads(tree.attrs["facts"]), "components_withheld": components_withheld}
    tree.attrs |= {"status": "ok", "facts": json.dumps(facts)}


@pytest.mark.slow
def test_what_does_not_depend_on_components_is_drawn_where_these_are_withheld():
    model, rng = bz.find("gaussian_mixture"), np.random.default_rng(0)
    rows = {"Y": rng.normal(size=(12, 1))}  # in which there are no two components
    data = bz.read(model, rows)
    tree = bz.fit(model.weak_with(data, {"K": 2}), data, "nuts", seed=1, draws=400, tune=400, extend=False)
    trusted(tree, "draws do not agree what component 1 is")
    assert [label.partition("[")[0] for label in labels(Fit(tree))] == [
        "mixture_mean",
        "mixture_sd",
        "effective_components",
    ]
    shown = Page(page([Fit(tree)]))
    alts = shown.attributes("img", "alt")
    assert any(alt.startswith("densities of mixture_mean") for alt in alts)
    assert not any("weights" in alt or "means[" in alt for alt in alts)
    assert f"{float(tree['posterior']['weights'][..., 0].mean()):.5g}" not in shown.text


@pytest.mark.slow
def test_a_point_is_looked_at_before_draws_of_which_nothing_is_shown():
    model, data = bz.find("hmm_poisson"), [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]
    point = bz.fit(model(K=2), data, "map", seed=1)
    drawn = bz.fit(model(K=2), data, "nuts", seed=1, draws=400, tune=200, extend=False)
    trusted(drawn, "because")
    fits = [Fit(drawn), Fit(point)]
    assert best(fits) is best_of_components(fits) is fits[1]
    trusted(drawn, "")
    assert best(fits[::-1]) is fits[0]


def test_the_verdict_in_words(exact, nuts):
    good, sampled = (verdict("fit", document(Fit(tree))) for tree in (exact, nuts))
    assert (good.state, good.headline, sampled.state) == ("ok", "exact", "ok")
    assert re.match(r"The chains agree \(R-hat at most 1\.0\d*\), the draws are worth at least \d+", sampled.words)


def asked_of(kind, checks, **facts):
    """What `summary.document` says, as far as a verdict is made of it."""
    checks = {name: {"value": value, "passed": True, "limit": ""} for name, value in checks.items()}
    run = {"status": "ok", "kind": kind, "method": "map", "facts": facts, "gate": {"checks": checks}}
    return run | {"k_hat": facts.get("k_hat"), "parameters": {}, "derived": {}}


@pytest.mark.parametrize(
    ("check", "value", "said"),
    [
        ("small_step_gain", -1e-9, "and no small step from it gains."),
        ("stationary_distance", 2e-7, "and a Newton step would move it by 2e-07 sd."),
        ("kkt_violation", 1e-12, "and it violates the conditions of optimality (KKT) by 1e-12."),
        ("restarts", 7, "and 7 restarts reached it, the highest maximum found"),
        ("another", 1.0, "The mode was found."),
    ],
)
def test_of_a_point_only_what_was_checked_is_said(check, value, said):
    found = verdict("map", asked_of("point estimate", {check: value}))
    assert said in found.words
    assert ("no small step" in found.words) == (check == "small_step_gain")


def test_the_verdict_says_the_worst_of_all_and_what_is_withheld():
    found = verdict("nuts", asked_of("sampled", {"r_hat": 1.0}, components_withheld="because"))
    assert (found.state, found.headline) == ("approximate", "sampled well, but not on single components")
    checks = {"r_hat": 1.002, "derived: r_hat": 1.006, "ess_bulk": 900.0, "derived: ess_bulk": 500.0, "divergences": 0}
    words = verdict("nuts", asked_of("sampled", checks)).words
    assert "R-hat at most 1.006" in words
    assert "at least 500 independent" in words
    assert "0 divergent transitions" in words


def test_what_is_withheld_stays_withheld():
    tree = bz.fit(bz.find("beta_bernoulli")(2, 3), [1, 0, 1], "nuts", seed=1, draws=100, tune=100, extend=False)
    assert tree.attrs["status"] == "failed"
    shown = Page(page([Fit(tree)]))
    for said in ("not to be trusted (failed)", "draws: 100 (must be >= 400)", "The estimates are withheld."):
        assert said in shown.text
    assert not any(alt.startswith("densities") for alt in shown.attributes("img", "alt"))
    assert f"{float(tree['posterior']['theta'].mean()):.5g}" not in shown.text


@pytest.mark.slow
def test_the_same_fits_give_the_same_page(evil, evil_page):
    assert page([Fit(evil)]) == evil_page


def test_a_user_can_write_no_markup(evil_page):
    assert EVIL not in evil_page
    assert "<img src=x" not in evil_page
    shown = Page(evil_page)
    assert EVIL in shown.text  # it is there, as words
    assert len(scripts(evil_page)) == 2
    assert all(attrs.keys() <= {"src", "alt"} for tag, attrs in shown.elements if tag == "img")
    assert not any(name.startswith("on") for _, attrs in shown.elements for name in attrs)
    (body,) = [body for attributes, body in scripts(evil_page) if "application/json" in attributes]
    assert "<" not in body
    assert EVIL in json.loads(body)["exact"]["parameters"]["mu"]["coords"]["column"]
    for source in shown.attributes("img", "src"):
        image = ElementTree.fromstring(unquote(source.partition(",")[2]))
        assert set(source) & set("\"'<>&#\n") == set()
        tags = {element.tag.rpartition("}")[2] for element in image.iter()}
        assert tags & {"svg", "script", "foreignObject", "iframe"} == {"svg"}


def test_only_our_own_script_and_style_may_run(several):
    elements = Page(several).elements
    (policy,) = [attrs["content"] for _, attrs in elements if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    (script,) = [body for attributes, body in scripts(several) if not attributes]
    (style,) = re.findall(r"<style>(.*?)</style>", several, flags=re.DOTALL)
    for text, kind in ((script, "script-src"), (style, "style-src")):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy


def test_nothing_is_fetched(several):
    shown = Page(several)
    sources = [attrs[name] for _, attrs in shown.elements for name in ("src", "srcset", "data") if name in attrs]
    assert sources
    assert [source for source in sources if not source.startswith("data:image/svg+xml,")] == []
    assert all(href.startswith(("#", "data:,")) for tag in ("a", "link") for href in shown.attributes(tag, "href"))
    assert re.findall(r"@import|url\(", several) == []


def test_the_file_is_written_whole_or_not_at_all(exact, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("mine")
    monkeypatch.setattr(door.__globals__["screens"], "answer", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        bz.report(exact, path, overwrite=True)
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]


def test_what_has_no_page_is_refused_first(exact, nuts, tmp_path, monkeypatch):
    monkeypatch.setitem(door.__globals__, "page", lambda *_: pytest.fail("work was done"))
    (tmp_path / "mine.html").touch()
    for fits, name, code in (
        *((exact, name, "wrong_suffix") for name in ("report.txt", "report")),
        (exact, "none/report.html", "no_such_file"),
        (exact, "mine.html", "file_exists"),
        ([exact, nuts], "report.html", "not_comparable"),
        ([], "report.html", "no_data"),
    ):
        with raises(bz.InputError, code):
            bz.report(fits, tmp_path / name)


def test_the_command_writes_a_page(run, exact, pages, tmp_path):
    fit, path = bz.save(exact, tmp_path / "fit.nc"), tmp_path / "report.html"
    code, out, err = run("report", fit, "-o", path)
    assert (code, out, f"wrote {path}" in err, path.read_text()) == (0, "", True, "<!doctype html>")
    assert [[attrs["method"] for attrs in trees] for trees in pages] == [["exact"]]
    for fits, message in (([fit], "exists"), ([], "give saved fits, or --all")):
        code, _, err = run("report", *fits, "-o", path)
        assert (code, message in err) == (2, True)


def test_compare_writes_a_page_and_draws_all_fits_over_each_other(run, pages, tmp_path):
    path, plot = tmp_path / "report.html", tmp_path / "overlay.png"
    words = ["compare", "beta_bernoulli", "--methods", "exact,map", "--seed", 1]
    code, out, err = run(*words, "--report", path, "--plot", plot)
    assert (code, "Estimates" in out, f"wrote {path}" in err, f"wrote {plot}" in err) == (0, True, True, True)
    assert [[attrs["method"] for attrs in trees] for trees in pages] == [["exact", "map"]]
    assert all("command" in attrs and attrs["prior"] == "weak" for attrs in pages[0])
    assert plot.read_bytes().startswith(b"\x89PNG")
    for option in (["--report", path], ["--plot", plot]):
        code, _, err = run(*words, *option)
        assert (code, "exists" in err) == (2, True)
    assert run(*words, "--plot", tmp_path / "overlay.gif")[0] == 2


def test_every_model_gets_a_page_by_one_command(run, pages, tmp_path):
    chosen = ["gamma_poisson", "markov_chain"]
    words = ["report", "--all", "--methods", "exact", "-o", tmp_path, "--models"]
    code, _, err = run(*words, ",".join(chosen))
    assert code == 0, err
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{name}.html" for name in chosen]
    assert [trees[0]["model"] for trees in pages] == chosen
    code, _, err = run(*words, "gamma_poisson")
    assert (code, "exists" in err) == (2, True)


def test_a_topic_model_shows_its_topics_and_no_states(topics):
    tree = topics.copy()
    trusted(tree, "draws do not agree what topic 1 is")
    left_out = []
    assert [block.kind for block in screens.answer([Fit(tree)], left_out).beside] == ["skipped"]
    assert "draws do not agree what topic 1 is" in left_out[0].reason
    trusted(tree, "")
    assert provenance.data_line(Fit(tree)) == "8 rows of dict"  # documents; there are more cells
    (words,) = screens.answer([Fit(tree)], []).beside
    assert len(words.rows) == 2
    assert "ant" in str(words.rows)
