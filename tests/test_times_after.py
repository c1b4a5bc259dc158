"""The times of rows to come: those of pandas, and none where the steps are not known to be equal."""

import pandas as pd
import pytest

import bayeszoo as bz
from bayeszoo.data.inputs.sequences.times import times_after

FORMATS = {"D": "%Y-%m-%d", "7D": "%Y-%m-%d", "MS": "%Y-%m", "ME": "%Y-%m-%d", "QS": "%Y-%m", "2MS": "%Y-%m-%d"}


@pytest.mark.parametrize("frequency", FORMATS)
def test_dates_go_on_as_those_of_pandas(frequency):
    every = pd.date_range("2023-11-05", periods=20, freq=frequency).strftime(FORMATS[frequency]).tolist()
    assert times_after(every[:15], 5) == every[15:]


def test_days_of_the_month_go_on_by_months():
    every = [f"{year}-{month:02}-15" for year in (2023, 2024) for month in range(1, 13)]
    assert times_after(every[:12], 12) == every[12:]


def test_numbers_go_on_by_their_step():
    assert times_after(["1960", "1961", "1962"], 2) == ["1963", "1964"]
    assert times_after(["0.5", "0.75", "1"], 1) == ["1.25"]
    assert times_after(["-2", "-1", "0"], 1) == ["1"]


@pytest.mark.parametrize(
    "values", [["2024-01-01", "2024-01-02"], ["1", "2", "4"], ["a", "b", "c"], ["3", "2", "1"], []]
)
def test_there_are_no_times_where_the_step_is_not_known(values):
    assert times_after(values, 2) == []


def test_a_forecast_has_the_times_of_each_sequence():
    model = bz.find("hmm_poisson")
    table = {"y": [1, 2, 9, 8, 1, 3, 2, 9], "day": [1, 2, 3, 4, 11, 12, 13, 14], "who": ["a"] * 4 + ["b"] * 4}
    data = bz.read(model, table, column="y", sequence="who")
    frame = bz.forecast(bz.fit(model.weak(data), data, "map", seed=1), 2)
    assert frame["day"].tolist() == ["5", "6", "15", "16"]
    assert frame["sequence"].tolist() == ["a", "a", "b", "b"]
