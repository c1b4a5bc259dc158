"""The page with sliders holds the numbers of the closed form, for each prior and number of rows."""

import html
import itertools
import json
import re
from base64 import b64decode
from contextlib import contextmanager

import numpy as np
import pytest
from scipy import stats

import bayeszoo as bz
from bayeszoo.model.base import fields_of
from bayeszoo.report.explore import em as steps
from bayeszoo.report.explore import page as pages
from bayeszoo.report.explore.answers import NEXT_ROW
from tests.refusals import raises

COIN, NORMAL = bz.find("beta_bernoulli"), bz.find("normal_gamma")
TOSSES = [1, 0, 1, 1, 0, 0, 1]
OF_PARAMETERS = ("mean", "sd", "q025", "q975", "map")  # in the order in which the script reads them


@pytest.fixture(autouse=True)
def few_places(monkeypatch):
    """Five places of each slider: a state of the page takes some milliseconds."""
    monkeypatch.setattr(pages, "STEPS", {1: 9, 2: 5, 3: 3, 4: 3})


SCHOOLS = {"y": [28.0, 8.0, -3.0], "se": [15.0, 10.0, 16.0], "group": ["A", "B", "C"]}


@pytest.fixture(scope="module")
def schools():
    """The page of three schools: 27 priors and up to three rows, each by quadrature."""
    kind = bz.find("normal_means")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "STEPS", {3: 3})
        return pages.tables(kind(m0=0, s0=10, t0=5), bz.read(kind, SCHOOLS))


def unpacked(content):
    """Yield the places of the sliders, the number of rows, and the numbers that the page's script shows for them."""
    width = 1 + len(OF_PARAMETERS) * len(content["names"]) + len(NEXT_ROW)
    numbers = np.frombuffer(b64decode(content["numbers"]), "<f8").reshape(-1, len(content["counts"]), width)
    heads = ["log_evidence", *(f"{key}[{name}]" for name in content["names"] for key in OF_PARAMETERS)]
    heads += [f"next {key}" for key in NEXT_ROW]
    places = itertools.product(*(range(len(field["values"])) for field in content["fields"]))
    for place, by_count in zip(places, numbers, strict=True):
        for count, row in zip(content["counts"], by_count, strict=True):
            yield place, count, dict(zip(heads, row.tolist(), strict=True))


def test_every_place_of_the_sliders_has_the_numbers_of_beta_distributions():
    content = pages.tables(COIN(a=2, b=1), bz.read(COIN, TOSSES))
    fields = {field["name"]: field["values"] for field in content["fields"]}
    assert content["counts"] == list(range(8))
    assert [field["values"][field["start"]] for field in content["fields"]] == [2.0, 1.0]
    every = list(unpacked(content))
    assert len(every) == 5 * 5 * 8
    for (i, j), n, numbers in every[::7]:
        a, b = fields["a"][i], fields["b"][j]
        law = stats.beta(a + sum(TOSSES[:n]), b + n - sum(TOSSES[:n]))
        assert numbers["mean[theta]"] == pytest.approx(law.mean(), rel=1e-12)
        np.testing.assert_allclose([numbers["q025[theta]"], numbers["q975[theta]"]], law.ppf([0.025, 0.975]), rtol=1e-9)
        prior = stats.beta(a, b)
        evidence = prior.logpdf(0.3) + sum(np.log([0.7, 0.3][y]) for y in TOSSES[:n]) - law.logpdf(0.3)
        assert numbers["log_evidence"] == pytest.approx(evidence, abs=1e-9)
        assert numbers["next mean"] == pytest.approx(law.mean(), rel=1e-12)


def test_curves_are_densities_in_bins_of_their_peaks():
    data = bz.read(COIN, TOSSES)
    content = pages.tables(COIN(a=2, b=1), data)
    (low, high), bins = content["ends"][0], content["bins"]
    heights = np.frombuffer(b64decode(content["heights"]), np.uint8).reshape(5, 5, 8, bins)
    peaks = np.frombuffer(b64decode(content["peaks"]), "<f8").reshape(5, 5, 8)
    edges = np.linspace(low, high, bins + 1)
    exact = np.diff(stats.beta(2 + 4, 1 + 3).cdf(edges)) / np.diff(edges)
    np.testing.assert_allclose(heights[2, 2, 7] / 255 * peaks[2, 2, 7], exact, atol=exact.max() / 500)
    likelihood = np.frombuffer(b64decode(content["likelihood"]), np.uint8).reshape(8, bins)[7] / 255
    middles = (edges[1:] + edges[:-1]) / 2
    expected = middles**4 * (1 - middles) ** 3
    np.testing.assert_allclose(likelihood, expected / expected.max(), atol=1 / 500)


@pytest.mark.slow  # 81 priors of four fields
def test_two_parameters_have_their_marginals():
    data = bz.read(NORMAL, {"y": [1.0, 4.0, 2.0]})
    model = NORMAL.weak(data)
    content = pages.tables(model, data)
    assert [field["name"] for field in content["fields"]] == list(fields_of(model))
    fits = {
        tuple(place): numbers
        for place, n, numbers in unpacked(content)
        if n == 3 and place in {(1, 1, 1, 1), (2, 1, 1, 1)}
    }
    moved = model.replaced(mu0=content["fields"][0]["values"][2])
    for chosen, place in ((model, (1, 1, 1, 1)), (moved, (2, 1, 1, 1))):
        tree = bz.fit(chosen, data, "exact", seed=1, groups=[])
        for name in content["names"]:
            assert fits[place][f"mean[{name}]"] == pytest.approx(float(bz.summarize(tree)[name]["mean"]), rel=1e-9)
        assert fits[place]["log_evidence"] == pytest.approx(bz.facts(tree)["log_evidence"], abs=1e-9)


@pytest.mark.slow  # 108 quadratures
def test_groups_of_a_hierarchy_are_those_of_the_exact_fit(schools):
    kind = bz.find("normal_means")
    groups = np.frombuffer(b64decode(schools["groups"]), "<f8").reshape(3, 3, 3, 4, 3, 3)
    answers = {(tuple(place), n): numbers for place, n, numbers in unpacked(schools)}
    assert schools["raw"] == {"name": "theta", "labels": ["A", "B", "C"], "estimates": SCHOOLS["y"]}
    for place, n in (((1, 1, 1), 3), ((0, 2, 1), 2)):
        fields = {f["name"]: f["values"][i] for f, i in zip(schools["fields"], place, strict=True)}
        tree = bz.fit(
            kind(**fields), {name: values[:n] for name, values in SCHOOLS.items()}, "exact", seed=1, groups=[]
        )
        summary, numbers = bz.summarize(tree), answers[place, n]
        assert numbers["log_evidence"] == pytest.approx(bz.facts(tree)["log_evidence"], abs=1e-6)
        for name in ("mu", "tau"):
            assert numbers[f"mean[{name}]"] == pytest.approx(float(summary[name]["mean"]), rel=1e-5)
            assert numbers[f"q975[{name}]"] == pytest.approx(float(summary[name]["q975"]), rel=1e-4)
        np.testing.assert_allclose(groups[(*place, n)][:n, 0], summary["theta"]["mean"], rtol=1e-5)
        np.testing.assert_allclose(groups[(*place, n)][:n, 2], summary["theta"]["q975"], rtol=1e-4)
        assert np.isnan(groups[(*place, n)][n:]).all()


@pytest.mark.browser
def test_a_browser_draws_the_groups_of_a_hierarchy(schools, monkeypatch, tmp_path):
    monkeypatch.setattr(pages, "tables", lambda *_: schools)
    kind = bz.find("normal_means")
    page = bz.explore(kind(m0=0, s0=10, t0=5), bz.read(kind, SCHOOLS), tmp_path / "page.html")
    groups = np.frombuffer(b64decode(schools["groups"]), "<f8").reshape(3, 3, 3, 4, 3, 3)
    with opened(page) as browser:
        dots = browser.find_elements("css selector", "circle.pooled")
        assert [float(dot.get_attribute("data-mean")) for dot in dots] == groups[1, 1, 1, 3, :, 0].tolist()
        browser.find_element("id", "reset").click()
        assert not browser.find_elements("css selector", "circle.pooled")
        browser.find_element("id", "next").click()
        assert len(browser.find_elements("css selector", "circle.raw")) == 1
        heads = [head.text for head in browser.find_elements("css selector", "#numbers tr:first-child th")]
    assert heads == ["", "mean", "sd", "2.5%", "97.5%"]


MIXTURE = bz.find("gaussian_mixture")
TWO = [0.1, 0.4, 0.5, 0.7, 0.9, 4.6, 4.8, 5.0, 5.1, 5.3, 5.9]


@pytest.fixture(scope="module")
def mixture():
    data = bz.read(MIXTURE, TWO)
    model = MIXTURE(K=2, alpha=2.0, m0=[2.5], kappa0=0.1, nu0=5.0, Psi0=[[1.5]])
    content = steps.tables(model, data)
    numbers = np.frombuffer(b64decode(content["numbers"]), "<f8")
    return model, data, content, numbers.reshape(content["starts"], content["steps"], 7)


def log_joint(numbers):
    """By SciPy, of weight, mean and standard deviation of each component."""
    weights, means, sds = numbers.reshape(2, 3).T
    rows = np.log(stats.norm(means, sds).pdf(np.array(TWO)[:, None]) @ weights).sum()
    prior = stats.dirichlet([2.0, 2.0]).logpdf(weights / weights.sum())
    prior += stats.invgamma(2.5, scale=0.75).logpdf(sds**2).sum() + stats.norm(2.5, sds / 0.1**0.5).logpdf(means).sum()
    return rows + prior


def test_steps_of_em_climb_the_log_joint_density_to_the_mode(mixture):
    model, data, _, numbers = mixture
    for start in range(2):
        for step in (0, 1, 5, 60):
            own = numbers[start, step]
            assert own[0] == pytest.approx(log_joint(own[1:]), abs=1e-9)
    assert np.diff(numbers[..., 0], axis=1).min() > -1e-9
    tree = bz.fit(model, data, "map", seed=1)
    assert numbers[:, -1, 0].max() == pytest.approx(bz.facts(tree)["log_joint"], abs=1e-6)


def test_curves_of_components_add_up_to_the_mixture(mixture):
    _, _, content, numbers = mixture
    parts = np.frombuffer(b64decode(content["parts"]), np.uint8).reshape(6, 61, 3, content["bins"]) / 255
    np.testing.assert_allclose(parts[:, :, 0] + parts[:, :, 1], parts[:, :, 2], atol=2 / 255)
    low, high = content["ends"]
    x = low + (np.arange(content["bins"]) + 0.5) * (high - low) / content["bins"]
    weights, means, sds = numbers[1, 3, 1:].reshape(2, 3).T
    density = stats.norm(means, sds).pdf(x[:, None]) @ weights
    np.testing.assert_allclose(parts[1, 3, 2] / parts[1, 3, 2].max(), density / density.max(), atol=0.02)


def test_em_is_stepped_through_one_column_alone(tmp_path):
    data = {"x": [1.0, 2.0, 5.0], "z": [0.0, 1.0, 2.0]}
    with raises(bz.InputError, "wrong_columns"):
        bz.explore(MIXTURE, data, tmp_path / "page.html")


@pytest.mark.browser
def test_a_browser_steps_through_em(mixture, tmp_path):
    model, data, _, numbers = mixture
    page = bz.explore(model, data, tmp_path / "page.html")
    with opened(page) as browser:
        browser.find_element("id", "next").click()
        shown = [row.text.split() for row in browser.find_elements("css selector", "#numbers tr")]
        assert [float(cell) for cell in shown[1][1:]] == pytest.approx(numbers[0, 1, 1:4], rel=1e-4)
        browser.find_element("id", "reset").click()
        browser.find_element("id", "all").click()
        last = browser.find_elements("css selector", "#numbers tr")[-1].text.split()[-1]
        assert float(last) == pytest.approx(numbers[1, -1, 0], rel=1e-4)
        assert browser.execute_script("return document.body.scrollWidth <= window.innerWidth")


def test_the_command_writes_one_file_that_fetches_nothing(run, written, tmp_path):
    file = written("won\n" + "\n".join(map(str, TOSSES)) + "\n", "<b>&.csv")
    path = tmp_path / "page.html"
    code, _, err = run("explore", "beta_bernoulli", file, "--set", "a=2", "--set", "b=1", "-o", str(path))
    assert code == 0, err
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=|https?://(?!www.w3.org/2000/svg)", text)
    assert "default-src 'none'" in html.unescape(text)
    assert "<b>&" not in text
    content = json.loads(re.search(r'id="content">(.*?)</script>', text, re.DOTALL)[1])
    assert content["rows"] == 7
    assert run("explore", "beta_bernoulli", file, "-o", str(path))[0] == 2  # not without --overwrite


@pytest.mark.parametrize("verb", ["explore", "prequential"])
def test_notes_about_the_table_are_printed_once(verb, run, written, tmp_path):
    file = written("won\nyes\nno\nyes\n")
    output = ("-o", str(tmp_path / "page.html")) if verb == "explore" else ()
    code, _, err = run(verb, "beta_bernoulli", file, "--positive", "yes", *output)
    assert (code, err.count("note: column 'won'")) == (0, 1), err


def test_models_without_a_closed_form_of_few_numbers_are_refused(tmp_path):
    with raises(bz.InputError, "no_closed_form"):
        bz.explore(bz.find("lda"), None, tmp_path / "page.html")
    with raises(bz.InputError, "too_many_parameters"):
        bz.explore(bz.find("dirichlet_multinomial"), ["a", "b", "c"], tmp_path / "page.html")
    with raises(bz.InputError, "wrong_suffix"):
        bz.explore(COIN, TOSSES, tmp_path / "page.txt")


@contextmanager
def opened(page):
    """A page in a browser as wide as a phone."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "window-size=390,900"):
        options.add_argument(f"--{flag}")
    with webdriver.Chrome(options=options) as browser:
        browser.get(page.as_uri())
        yield browser


@pytest.mark.browser
def test_a_browser_shows_the_numbers_of_python(tmp_path):
    """The sliders are moved by keys, as a reader without a mouse does."""
    from selenium.webdriver.common.keys import Keys

    page = bz.explore(COIN(a=2, b=1), TOSSES, tmp_path / "page.html")
    with opened(page) as browser:
        first, _, rows = browser.find_elements("css selector", "#sliders input")
        first.send_keys(Keys.ARROW_RIGHT)
        rows.send_keys(Keys.ARROW_LEFT)
        shown = [row.text.split() for row in browser.find_elements("css selector", "#numbers tr")]
        assert browser.execute_script("return document.body.scrollWidth <= window.innerWidth")
        browser.find_element("id", "reset").click()
        about = browser.find_element("id", "about").text
    law = stats.beta(4 + sum(TOSSES[:6]), 1 + 6 - sum(TOSSES[:6]))
    assert [float(cell) for cell in shown[1][1:3]] == pytest.approx([law.mean(), law.std()], rel=1e-4)
    assert about.startswith("0 of 7 rows")
