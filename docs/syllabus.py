"""Write the page that leads from the sections of the documents to what shows them, from the table beside it.

python docs/syllabus.py
"""

import csv
from pathlib import Path

DOCS = Path(__file__).parent
TABLE, PAGE = DOCS / "syllabus.csv", DOCS / "guide" / "syllabus.md"
NAMES = {
    "W4400": "the course notes of STAT W4400",
    "CS725": "the lecture notes of CS725, Machine Learning",
    "MU1": "notes on Murphy (2012), first part",
    "MU2": "notes on Murphy (2012) and The Elements of Statistical Learning, second part",
    "ML blog": "bllguo.github.io",
}
"""The documents, in the order of the page."""
INTRODUCTION = """# Syllabus: from the documents to the zoo

What in bayeszoo shows each section of five sets of notes, in their order. Formulas that they print wrongly:
[misprints](../misprints.md). The table is `docs/syllabus.csv`; a test holds that every model, verb, notebook and page
named exists, and these are run by other tests.
"""


def rows() -> list[dict[str, str]]:
    """Return the table, a mapping of its columns each row."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def link(name: str, kind: str) -> str:
    """Return the link to what shows a section."""
    if kind == "page":
        return f"[{name.partition('#')[2].replace('-', ' ') or name.removesuffix('.md')}]({name})"
    if kind == "function":
        return f"[`bz.{name}`](python.md)"
    target = {"model": f"../models/{name}.md", "notebook": f"../notebooks/{name}.ipynb", "verb": "command_line.md"}
    return f"[`{f'bayeszoo {name}' if kind == 'verb' else name}`]({target[kind]})"


def page() -> str:
    """Return the page: a table for each document."""
    parts = [INTRODUCTION]
    for document, about in NAMES.items():
        own = [row for row in rows() if row["document"] == document]
        lines = [f"| {row['section']} | {row['kind']} {link(row['shown by'], row['kind'])} |" for row in own]
        parts.append("\n".join([f"## {document}: {about}\n", "| section | shown by |", "|---|---|", *lines]) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
