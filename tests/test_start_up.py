"""Libraries that a command, and the import of bayeszoo, do not load, as each slows every start."""

import inspect
import json
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.cli import terminal
from bayeszoo.model.capabilities import is_exact
from tests.quick import quick_first

EXACT_FIT = ["fit", "beta_bernoulli", "--method", "exact"]
DERIVED_FIT = ["fit", "linear_regression", "--method", "exact"]  # with sigma, which has a closed form too
HEAVY = """
import sys, bayeszoo
assert 'pytensor' not in sys.modules
from bayeszoo.cli.app import main
try: main()
except SystemExit: pass
slow = {'pytensor', 'arviz', 'arviz_stats', 'nutpie', 'matplotlib', 'numba', 'sklearn.base'}
print(sorted(slow & set(sys.modules)), file=sys.stderr)
"""


def run(code, *arguments):
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)


@pytest.mark.parametrize(
    "arguments",
    quick_first(
        [EXACT_FIT, DERIVED_FIT, ["fit", "normal_inverse_wishart", "--set", "Psi0=[[1,2],[2,1]]"], ["list"]], 2
    ),
)
def test_exact_answers_do_not_wait_for_slow_libraries_and_pipes_get_no_colours(arguments):
    done = run(HEAVY, *arguments)
    assert done.stderr.splitlines()[-1] == "[]"
    assert "\x1b" not in done.stdout + done.stderr
    assert max(map(len, done.stdout.splitlines() or [""])) <= terminal.WIDE


EACH = """
import json, sys
from bayeszoo.cli.app import main
slow = {'pytensor', 'arviz', 'arviz_base', 'arviz_stats', 'nutpie', 'matplotlib', 'numba', 'sklearn.base'}
for command in json.loads(sys.argv[1]):
    try: main(['fit', *command, '--method', 'exact', '--seed', '1', '--draws', '100'])
    except SystemExit as end: assert not end.code, command
    print(command[0], sorted(slow & set(sys.modules)), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def few_columns(tmp_path_factory):
    """Tables and fields with which models have an exact answer that have none by default."""
    folder, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(1)
    x, z = np.tile([[1, 1, -1, -1], [1, -1, 1, -1]], 50)
    outcomes = {
        "bayesian_lasso": x + rng.normal(size=200),
        "logistic_regression": rng.random(200) < 0.5 + x / 5,
        "poisson_regression": rng.poisson(3 + x),
        "probit_regression": rng.random(200) < 0.5 + x / 5,
        "support_vector_regression": x + rng.normal(size=200),
    }
    for name, y in outcomes.items():
        columns = np.column_stack([y, x, z][: 3 if name == "bayesian_lasso" else 2])
        header = ",".join("yxz"[: columns.shape[1]])
        np.savetxt(folder / f"{name}.csv", columns, "%.6g", ",", header=header, comments="")
    tables = {name: [str(folder / f"{name}.csv"), "--target", "y"] for name in outcomes}
    return tables | {"neural_network": ["--set", "H=1"]}  # of more units there is no exact answer


def test_no_exact_answer_waits_for_pymc_arviz_or_numba(few_columns):
    # filters of vectors at thousands of points, and sums over trees, which NumPy takes minutes for
    compiled = ["structural_series", "linear_gaussian", "regression_tree"]
    names = [name for name in bz.names() if is_exact(bz.find(name)) and name not in compiled]
    done = run(EACH, json.dumps([[name, *few_columns.get(name, [])] for name in names]))
    assert [line for line in done.stderr.splitlines() if line.split(" ")[0] in names] == [
        f"{name} []" for name in names
    ]


NOT_OF_NUTS = """
import sys
from bayeszoo.cli.app import main
try: main()
except SystemExit: pass
unused = {'arviz', 'arviz_plots', 'matplotlib', 'sklearn.base', 'formulaic.formula', 'nutpie'}
print(sorted(unused & set(sys.modules)), file=sys.stderr)
import nutpie
print(nutpie.sample.__globals__['arviz'].from_dict.__name__, file=sys.stderr)
"""


@pytest.mark.quick
def test_nuts_does_not_wait_for_libraries_that_it_does_not_use():
    done = run(NOT_OF_NUTS, *EXACT_FIT[:-1], "nuts", "--seed", "1", "--draws", "50")
    assert done.stderr.splitlines()[-2:] == ["['nutpie']", "from_dict"]  # which ArviZ still finds when it is called


@pytest.mark.parametrize("words", [["list"], ["--help"], ["fit", "--help"], ["completion", "bash"]])
def test_what_computes_nothing_does_not_wait_for_what_computes(words):
    slow = "{'scipy.special', 'scipy.linalg', 'scipy.stats', 'pandas.core', 'xarray.core', 'pymc.model'}"
    code = f"""
import atexit, sys
atexit.register(lambda: print(sorted({slow} & set(sys.modules)), file=sys.stderr))
from bayeszoo.cli.app import main
main()
"""
    assert run(code, *words).stderr.splitlines()[-1] == "[]"


LEFT = """
import inspect, sys
before = inspect.getdoc
from bayeszoo.cli.app import main
assert 'scipy.special' not in sys.modules
try: main(['list'])
except SystemExit: pass
assert inspect.getdoc is before
"""


def test_a_command_can_be_stopped_before_anything_else_is_imported():
    """What is imported first makes Ctrl-C end in one line; whatever came before it would end in a traceback."""
    lines = inspect.getsource(bz).splitlines()
    first = next(line for line in lines if line.startswith(("import ", "from ")))
    assert first.startswith("import bayeszoo.foundation.process.starting")
    assert bz.__version__ == version("bayeszoo")
    assert not hasattr(bz, "no_such_name")


def test_the_library_and_a_command_called_by_others_change_nothing_of_theirs():
    assert run(LEFT).returncode == 0
