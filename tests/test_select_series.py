"""Series compared with models of the same column without order: laws of the same numbers, never of others."""

import json

import numpy as np

import bayeszoo as bz
from bayeszoo.errors import InputError
from tests.refusals import raises

GAMMA, LEVEL, CHAIN = (bz.find(name) for name in ("normal_gamma", "local_level", "hmm_gaussian"))
ROWS = {"y": [4.0, 5.5, 3.0, 4.4, 6.1, 5.0, 4.7, 5.9], "sequence": [*"aaaabbbb"]}


def test_a_level_is_compared_with_a_mean_of_the_same_rows(run, written):
    table = written("y\n" + "\n".join(map(str, ROWS["y"])) + "\n", "rows.csv")
    code, out, _ = run("select", table, "-c", "normal_gamma", "-c", "local_level", "--no-loo")
    assert code == 0
    assert "withheld" not in out.split("Likelihood")[0]
    models = {"gamma": GAMMA.weak(bz.read(GAMMA, table)), "level": LEVEL.weak(bz.read(LEVEL, table))}
    frame = bz.select(models, table, loo=False).set_index("model")
    for name, model in models.items():
        own = bz.facts(bz.fit(model, table, "exact", seed=1))["log_evidence"]
        assert np.isclose(frame.loc[name, "log_evidence"], own, rtol=1e-9)


def test_a_hidden_chain_of_one_state_has_the_evidence_of_normal_gamma():
    model = GAMMA(mu0=5.0, kappa0=0.5, alpha0=1.5, beta0=2.0)
    chain = CHAIN(K=1, m0=5.0, kappa0=0.5, a0=1.5, b0=2.0)
    frame = bz.select({"gamma": model, "chain": chain}, {"y": ROWS["y"]}, loo=False).set_index("model")
    assert np.isclose(*frame["log_evidence"], rtol=1e-9)


def test_sequences_are_not_lost_where_a_model_without_order_comes_first(run, written):
    lines = [f"{y},{name}" for y, name in zip(ROWS["y"], ROWS["sequence"], strict=True)]
    table = written("y,sequence\n" + "\n".join(lines) + "\n", "rows.csv")
    code, out, _ = run(
        "select", table, "-c", "normal_gamma", "-c", "local_level m0=5 s0=2 t_q=1 t_r=1", "--no-loo", "--json"
    )
    assert code == 0
    data = bz.read(LEVEL, ROWS)
    own = bz.facts(bz.fit(LEVEL(m0=5.0, s0=2.0, t_q=1.0, t_r=1.0), data, "exact", seed=1))["log_evidence"]
    (row,) = (row for row in json.loads(out)["table"] if "local_level" in row["model"])
    assert np.isclose(row["log_evidence"], own, rtol=1e-9)


def test_other_rows_are_not_compared():
    tree = bz.fit(LEVEL.weak(bz.read(LEVEL, {"y": ROWS["y"]})), {"y": ROWS["y"]}, "exact", seed=1)
    other = bz.fit(GAMMA(), {"y": ROWS["y"][:-1]}, "exact", seed=1)
    with raises(InputError, "not_comparable"):
        bz.select({"level": tree, "gamma": other})
    gaps = {"y": [*ROWS["y"][:-1], np.nan]}
    masked = bz.read(LEVEL, gaps, missing="mask")
    tree = bz.fit(LEVEL.weak(masked), masked, "exact", seed=1)
    with raises(InputError, "not_comparable"):
        bz.select({"level": tree, "gamma": other})
