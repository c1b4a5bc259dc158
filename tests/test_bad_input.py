"""Bad input for the conjugate families: one line that says what is wrong, and nothing compiled."""

import numpy as np
import pytest

import bayeszoo as bz
from tests.refusals import raises

REALS = "y\n1.5\n-2\n0.25\n"
COUNTS = "y\n3\n0\n2\n"
LABELS = "y\nred\nblue\nred\n"
PAIRS = "u,v\n1,2\n3,1\n2,2.5\n"
STEPS = "y\na\nb\na\nc\n"

FIELDS = [
    ("gaussian_mean", REALS, "s0=0", "prior sd must be > 0, got 0"),
    ("gaussian_mean", REALS, "sigma=1e101", "sd of an observation must be finite and at most 1e+100 in size"),
    ("gaussian_mean", REALS, "m0=NaN", "prior mean must be finite and at most 1e+100 in size, got nan"),
    ("gaussian_mean", REALS, "m0=null", "prior mean must be a number, got None"),
    ("gamma_poisson", COUNTS, "b=-3", "prior rate must be > 0, got -3"),
    ("dirichlet_multinomial", LABELS, "alpha=[1,0]", "prior alpha[1] must be > 0, got 0"),
    ("dirichlet_multinomial", LABELS, 'alpha=["a",1]', "prior alpha[0] must be a number, got 'a'"),
    ("dirichlet_multinomial", LABELS, "alpha=[]", "prior alpha is an empty list"),
    ("dirichlet_multinomial", LABELS, "alpha=[1,1,1]", "prior alpha has 3 entries, the data 2 of category"),
    ("markov_chain", STEPS, "alpha=[1,1]", "prior alpha has 2 entries, the data 3 x 3 of context and symbol"),
    ("markov_chain", STEPS, "alpha=[[1,1],[1]]", "prior alpha is ragged: its rows have different lengths"),
    ("markov_chain", STEPS, "alpha=[[1,1,1],[1,0,1],[1,1,1]]", "prior alpha[1][1] must be > 0, got 0"),
    ("normal_inverse_wishart", PAIRS, "nu0=1", "prior degrees of freedom nu0 must be > D - 1 = 1, got 1"),
    ("normal_inverse_wishart", PAIRS, "mu0=[1,2,3]", "prior mean mu0 has 3 entries, Psi0 is 2 x 2"),
    ("normal_inverse_wishart", PAIRS, "Psi0=1", "Psi0 must be a matrix, a list of rows, got 1"),
    ("normal_inverse_wishart", PAIRS, "Psi0=[[1,0.9],[0,1]]", "Psi0 is not symmetric: [0,1]=0.9, [1,0]=0"),
    ("normal_inverse_wishart", PAIRS, "Psi0=[[1,2],[2,1]]", "Psi0 is not positive definite (smallest eigenvalue -1)"),
    ("normal_inverse_wishart", PAIRS, "Psi0=[[1,0],[0]]", "Psi0 must be square: it has 2 rows of 2, 1"),
    ("normal_inverse_wishart", PAIRS, "Psi0=[[1,NaN],[NaN,1]]", "Psi0[0,1] must be finite"),
    # 3 x 3, where the data have 2 columns, and so has the mean
    ("normal_inverse_wishart", PAIRS, "Psi0=[[1,0,0],[0,1,0],[0,0,1]]", "Psi0 is "),
]

# What is refused of each kind of table is in the tests of inputs; here a line for each kind, as the command says it
TABLES = [
    ("gaussian_mean", "y\n1\n1e400\n", [], "column 'y', row 2: '1e400' is too large"),
    ("dirichlet_multinomial", "y,n\nred,1.5\nblue,2\n", ["--count", "n"], "column 'n', row 1: '1.5' is not a whole"),
    ("markov_chain", "from,to,count\na,b,1.5\nb,a,1\n", [], "column 'count', row 1: '1.5' is not a whole number"),
    ("normal_inverse_wishart", "u,v\n1,2\n3,x\n", [], "column 'v', row 2: 'x' is not a number; choose columns"),
    ("normal_inverse_wishart", PAIRS, ["--columns", "u,u"], "columns: 'u' appears twice"),
]


@pytest.fixture
def nothing_compiled(monkeypatch):
    """Whoever declares a model, or compiles one, fails the test."""
    import pymc as pm

    monkeypatch.setattr(pm.Model, "__init__", lambda *_, **__: pytest.fail("a PyMC model was declared"))


@pytest.fixture
def refused(run):
    """Run a command that is refused in one line, which is returned."""

    def call(*arguments):
        code, out, err = run(*arguments)
        # what was done to the data may have been said before, one line each
        lines = [line for line in err.splitlines() if not line.startswith(("note: ", "priors are scaled"))]
        assert (code, out, len(lines)) == (2, "", 1), err
        assert lines[0].startswith("error: ")
        return lines[0]

    return call


@pytest.mark.parametrize(("model", "table", "field", "message"), FIELDS, ids=[f"{f[0]}-{f[2]}" for f in FIELDS])
@pytest.mark.parametrize("prior", ["weak", "textbook"])
def test_bad_fields(refused, written, nothing_compiled, model, table, field, message, prior):
    assert message in refused("fit", model, written(table), "--set", field, "--prior", prior, "--method", "nuts")


@pytest.mark.parametrize(("model", "table", "options", "message"), TABLES)
def test_bad_tables(refused, written, nothing_compiled, model, table, options, message):
    assert message in refused("fit", model, written(table), *options)


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("normal_inverse_wishart", {"Psi0": np.diag([1.0, -1.0])}, ("not_positive_definite", "-1")),
        ("dirichlet_multinomial", {"alpha": np.array([1.0, -1.0])}, ("out_of_range", "alpha", "0", "-1")),
        ("markov_chain", {"alpha": np.ones((2, 2, 2))}, ("wrong_type",)),
        ("gaussian_mean", {"s0": 1j}, ("wrong_type",)),
        ("gaussian_mean", {"s0": np.datetime64("2020-01-01")}, ("wrong_type",)),
    ],
)
def test_models_that_cannot_be_made(name, fields, message):
    with raises(bz.InputError, *message) as caught:
        bz.find(name)(**fields)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ("y\n3\n", [], "the fit has an exposure, these rows have none"),
        ("y,exposure\n1,x\n", [], "'x' is not a number"),
        (None, ["--rows", "3"], "further rows need their exposure"),
    ],
)
def test_rows_that_cannot_be_predicted(refused, written, nothing_compiled, tmp_path, table, options, message):
    tree = bz.fit(bz.find("gamma_poisson")(), {"y": [3, 1], "exposure": [1.0, 2.0]}, "exact", seed=1)
    paths = [bz.save(tree, tmp_path / "fit.nc"), *([] if table is None else [written(table)])]
    assert message in refused("predict", *paths, *options)
