"""Names of options and commands of other tools: each hint is a command line that exists."""

import shlex

import pytest
from cyclopts.exceptions import UnknownCommandError, UnknownOptionError

from bayeszoo.cli.app import ELSEWHERE, app

FILLED = {
    "COLUMN": "y",
    "COLUMN,COLUMN": "x,z",
    "FIT": "fit.nc",
    "N": "3",
    "SIZE": "0.1",
    "MODEL": "ridge",
    "DATA": "rows.csv",
}


def parsed(line):
    return app.parse_args(line, exit_on_error=False, print_error=False)


@pytest.mark.parametrize("hint", sorted(set(ELSEWHERE.values())))
def test_each_hint_is_a_command_line(hint):
    words = [FILLED.get(word, word) for word in shlex.split(hint.removeprefix("bayeszoo "))]
    parsed(words if hint.startswith("bayeszoo ") else ["fit", "ridge", *words])


@pytest.mark.parametrize("name", ELSEWHERE)
def test_no_name_is_one_of_ours(name):
    line, error = (["fit", "ridge", name, "y"], UnknownOptionError) if name[0] == "-" else ([name], UnknownCommandError)
    with pytest.raises(error):
        parsed(line)
