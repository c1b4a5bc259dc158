"""The README is run: its Python, its commands, and the model it shows."""

import doctest
import re
import shlex
import sys
from pathlib import Path

import pytest

import bayeszoo as bz
from bayeszoo import models
from bayeszoo.cli.app import main
from bayeszoo.model import find as zoo
from bayeszoo.report.describe import in_brief

ROOT = Path(__file__).parents[1]
SCRATCH = Path(__file__).parent / "scratch_models"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON, MODEL = re.findall(r"```python\n(.*?)```", README, re.S)
(SESSION,) = re.findall(r"```pycon\n(.*?)```", README, re.S)
CONSOLE = re.findall(r"```console\n(.*?)```", README, re.S)


@pytest.fixture(autouse=True)
def example_model(monkeypatch):
    monkeypatch.setattr(models, "__path__", [*models.__path__, str(SCRATCH)])
    zoo.find.cache_clear()
    yield
    zoo.find.cache_clear()
    sys.modules.pop("bayeszoo.models.error_precision", None)


def test_the_python_runs():
    import matplotlib.pyplot as plt

    names: dict = {}
    exec(PYTHON, names)
    plt.close("all")
    assert names["tree"].attrs["status"] == "ok"
    assert names["posterior"] == names["Coin"](a=2 + 3, b=2 + 2)


def test_the_session_prints_what_is_shown():
    found = doctest.DocTestParser().get_doctest(SESSION, {"bz": bz}, "README.md", None, 0)
    said: list[str] = []
    failed, tried = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(found, out=said.append)
    assert tried > 15
    assert not failed, "".join(said)


def test_the_table_of_models_is_right():
    rows = re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", README[: README.index("## On your own table")], re.M)
    assert rows
    for name, about, data in rows:
        model = zoo.find(name)
        assert about in in_brief(model)["about"]
        assert data == ", ".join(f"`{item.name}`" for item in model.examples)


def test_the_model_is_the_one_that_passes_the_contract():
    assert (SCRATCH / "error_precision.py").read_text() == MODEL


def plain(text):
    """Leave out what differs between runs or machines: seconds, summaries of draws, trailing blanks, empty lines."""
    text = re.sub(r"(stationary\[\w+\]) .*", r"\1", re.sub(r"(, seed \d+), .* s$", r"\1", text, flags=re.M))
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def commands(block):
    """Yield each command of a block with the output shown for it."""
    for part in block.split("$ ")[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def write(command):
    """Do what ``printf 'text' > file`` does."""
    _, text, _, name = shlex.split(command)
    Path(name).write_text(text.encode().decode("unicode_escape"))


@pytest.mark.parametrize("block", CONSOLE, ids=range(len(CONSOLE)))
def test_the_commands_print_what_is_shown(block, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("coins.csv").write_text("y\n1\n0\n1\n1\n0\n1\n1\n1\n")
    for command, shown in commands(block):
        if command.startswith("printf"):
            write(command)
            continue
        with pytest.raises(SystemExit) as stop:
            main(shlex.split(re.sub(r" 2?> .*", "", command))[1:])
        out, err = capsys.readouterr()
        assert stop.value.code == (2 if shown.startswith("error:") else 0)
        if "nuts" not in command and ">" not in command:  # draws and rounding errors differ between machines
            assert plain(shown) == plain(out + err)
