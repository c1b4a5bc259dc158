"""The report in a real browser: Chromium without a screen, driven by Selenium; `make test-browser`."""

import json
import shutil
from contextlib import contextmanager

import pandas as pd
import pytest

import bayeszoo as bz

pytestmark = pytest.mark.browser
EVIL = "<script>alert(1)</script>"
FLAGS = "headless=new no-sandbox disable-dev-shm-usage disable-gpu disable-quic no-first-run "
FLAGS += "disable-background-networking disable-component-update disable-sync window-size=1280,900"


@pytest.fixture(scope="module")
def browser():
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or pytest.fail("chromium is not installed")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    for flag in FLAGS.split():
        options.add_argument(f"--{flag}")
    driver = shutil.which("chromedriver") or pytest.fail("chromedriver is not installed")
    made = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield made
    made.quit()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A page about two fits of a table whose first column is called a script."""
    values = [1.2, 0.3, 2.2, 1.9, 0.7, 1.1, 1.6, 0.2, 2.4, 1.0]
    table = pd.DataFrame({EVIL: values, '"><img src=x onerror=alert(2)>': values[::-1], "c": [y**2 for y in values]})
    model = bz.find("normal_inverse_wishart")
    data = bz.read(model, table)
    fits = [bz.fit(model.weak(data), data, method, seed=1) for method in ("map", "exact")]
    return bz.report(fits, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture
def opened(browser, path):
    browser.get_log("performance")
    browser.get_log("browser")
    browser.get(path.as_uri())
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
    browser.requests = [params["request"]["url"] for params in sent]
    return browser


@contextmanager
def emulated(browser, name, settings, after):
    """Let the browser emulate something, and then no longer."""
    browser.execute_cdp_cmd(f"Emulation.{name}", settings)
    try:
        yield
    finally:
        browser.execute_cdp_cmd(f"Emulation.{after[0]}", after[1])


def find(browser, selector):
    return browser.find_elements("css selector", selector)


def column(table, place):
    return [row.find_elements("css selector", "th, td")[place].text for row in table]


def test_the_page_renders_without_a_word_on_the_console(opened, path):
    assert opened.get_log("browser") == []
    assert find(opened, "h1")[0].text == "normal_inverse_wishart"
    sizes = opened.execute_script("return Array.from(document.images).map(i => [i.complete, i.naturalWidth])")
    assert sizes
    assert all(complete and width > 50 for complete, width in sizes)


def test_nothing_is_asked_of_any_network(opened, path):
    assert path.as_uri() in opened.requests
    assert [url for url in opened.requests if url != path.as_uri() and not url.startswith("data:")] == []


def test_a_column_that_is_called_a_script_is_words(opened):
    from selenium.common.exceptions import NoAlertPresentException

    with pytest.raises(NoAlertPresentException):
        _ = opened.switch_to.alert
    assert EVIL in find(opened, "main")[0].text
    assert len(find(opened, "script")) == 2
    assert find(opened, "img[src='x']") == []


def test_a_script_that_got_in_would_not_run(opened):
    opened.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s)"
    )
    assert opened.execute_script("return window.ran === undefined")
    assert any("Content Security Policy" in entry["message"] for entry in opened.get_log("browser"))


def test_a_table_is_sorted_by_a_click(opened):
    table = find(opened, "#estimates > .table table.sortable")[-1]
    head = next(one for one in table.find_elements("css selector", "thead th") if one.text == "estimate")
    place = [one.text for one in table.find_elements("css selector", "thead th")].index("estimate")

    def shown():
        rows = table.find_elements("css selector", "tbody tr")
        return [float(cell) for cell in column(rows, place) if cell not in ("-", "")]

    before = shown()
    assert before != sorted(before)
    head.find_element("css selector", "button").click()
    assert (shown(), head.get_attribute("aria-sort")) == (sorted(before), "ascending")
    head.find_element("css selector", "button").click()
    assert (shown(), head.get_attribute("aria-sort")) == (sorted(before, reverse=True), "descending")


def test_the_best_fit_is_chosen_first(opened):
    from selenium.webdriver.support.ui import Select

    for anchor in ("#gate >", "#estimates"):
        select = Select(find(opened, f"{anchor} .choice select")[0])
        assert select.first_selected_option.get_attribute("textContent") == "exact"
        assert [one.get_attribute("data-name") for one in find(opened, f"{anchor} .choice > .shown")] == ["exact"]


def test_intervals_are_unfolded_and_chosen(opened):
    from selenium.webdriver.support.ui import Select

    (intervals,) = (one for one in find(opened, "#gate details") if "Intervals" in one.text)
    intervals.find_element("css selector", "summary").click()
    choice = intervals.find_element("css selector", ".choice")
    select = Select(choice.find_element("css selector", "select"))
    names = [option.text for option in select.options]
    assert names == ["mu", "Sigma"]

    def shown():
        options = choice.find_elements("css selector", ".option")
        return [one.get_attribute("data-name") for one in options if one.is_displayed()]

    assert shown() == names[:1]
    select.select_by_index(1)
    assert shown() == names[1:]


def test_without_script_everything_is_shown(browser, path):
    name = "setScriptExecutionDisabled"
    with emulated(browser, name, {"value": True}, (name, {"value": False})):
        browser.get(path.as_uri())
        assert find(browser, "select") == []
        options = find(browser, ".option")
        assert len(options) > 4
        browser.execute_script("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        assert all(one.is_displayed() for one in options)


def test_on_paper_everything_is_shown_and_no_control(opened):
    with emulated(opened, "setEmulatedMedia", {"media": "print"}, ("setEmulatedMedia", {"media": ""})):
        seen = "return Array.from(document.querySelectorAll('.option')).every((one) => one.checkVisibility())"
        assert opened.execute_script(seen)
        assert not any(one.is_displayed() for one in find(opened, ".chooser, nav"))


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_its_window(opened, width):
    window = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    with emulated(opened, "setDeviceMetricsOverride", window, ("clearDeviceMetricsOverride", {})):
        assert opened.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_are_readable_by_day_and_by_night(opened, scheme):
    """The contrast of body text is at least 7, as WCAG 2 asks for at its highest level."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    colours = opened.execute_script(
        "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor].map(c => c.match(/[0-9]+/g))"
    )

    def luminance(colour):
        parts = [int(one) / 255 for one in colour[:3]]
        red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted(map(luminance, colours))
    assert (high + 0.05) / (low + 0.05) >= 7
    assert (luminance(colours[1]) < 0.5) == (scheme == "dark")
