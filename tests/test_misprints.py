"""docs/misprints.md: every number that it shows is what its Python prints."""

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[1].joinpath("docs", "misprints.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```pycon\n(.*?)```", PAGE, re.S)


def test_every_number_is_what_is_printed():
    found = doctest.DocTestParser().get_doctest("".join(BLOCKS), {}, "misprints.md", None, 0)
    said: list[str] = []
    failed, tried = doctest.DocTestRunner().run(found, out=said.append)
    assert tried > 30
    assert not failed, "".join(said)


def test_each_row_of_the_table_has_its_demonstration():
    rows = re.findall(r"^\| (W4400|CS725|ML blog), ([^|]*) \|", PAGE, re.M)
    assert len(rows) == 29
    headings = " ".join(re.findall(r"^## (.*)$", PAGE, re.M))
    sections = {number for notes, where in rows if notes == "CS725" for number in re.findall(r"[\d.]+", where)}
    assert {number for number in sections if number not in headings} == set()
