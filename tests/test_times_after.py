"""The times of rows to come: those of pandas, and none where the steps are not known to be equal."""

import pandas as pd
import pytest

import bayeszoo as bz
from bayeszoo.data.inputs.sequences.times import times_after
from tests.refusals import raises

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


def test_large_numbers_keep_the_digits_that_tell_them_apart():
    """Milliseconds since 1970 were printed as 1.70406720001e+12, three times."""
    assert times_after([str(1704067200000 + i) for i in range(6)], 2) == ["1704067200006", "1704067200007"]
    assert times_after([str(1e9 + i / 10) for i in range(6)], 2) == ["1000000000.6", "1000000000.7"]
    assert times_after(["1e-9", "2e-9", "3e-9"], 1) == ["4e-09"]
    assert times_after([str(0.1 * i) for i in range(1, 7)], 2) == ["0.7", "0.8"]


@pytest.mark.parametrize(("frequency", "form"), [("h", "%Y-%m-%d %H:%M:%S"), ("min", "%Y-%m-%dT%H:%M")])
def test_times_of_day_go_on_as_those_of_pandas(frequency, form):
    every = pd.date_range("2024-02-28 22:57", periods=9, freq=frequency).strftime(form).tolist()
    assert times_after(every[:6], 3) == every[6:]


def read(times):
    return bz.read(bz.find("local_level"), pd.DataFrame({"t": times, "y": range(len(times))}), column="y", time="t")


@pytest.mark.parametrize("start", ["2024-01-01 00:00", "2024-03-30 22:00"])
@pytest.mark.parametrize("frequency", ["h", "7min", "100ms"])
@pytest.mark.parametrize("form", ["%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S.%f+01:00"])
def test_times_of_one_day_are_even(start, frequency, form):
    """They were refused as repeated: all have one day of the month."""
    every = pd.date_range(start, periods=9, freq=frequency).strftime(form).tolist()
    assert times_after(read(every[:6]).reading["times"]["values"], 3) == every[6:]


def test_days_of_a_zone_are_those_of_its_clock():
    """Midnights in Berlin were shown as 23:00 of the day before, and the days to come were a day early."""
    every = pd.date_range("2024-03-29", periods=8, freq="D", tz="Europe/Berlin")
    values = read(every[:5]).reading["times"]["values"]
    assert values == [f"2024-03-{day}" for day in (29, 30, 31)] + ["2024-04-01", "2024-04-02"]
    assert times_after(values, 3) == ["2024-04-03", "2024-04-04", "2024-04-05"]
    as_text = read(every.strftime("%Y-%m-%d %H:%M:%S%z"))  # offsets differ, midnights do not
    assert len(as_text.reading["times"]["values"]) == 8


def test_hours_of_a_zone_across_a_change_of_its_clock_are_in_utc():
    every = pd.date_range("2024-03-30 22:00", periods=9, freq="h", tz="Europe/Berlin")
    values = read(every[:6]).reading["times"]["values"]
    assert values[0] == "2024-03-30T21:00:00Z"
    assert times_after(values, 3) == every[6:].tz_convert("UTC").strftime("%Y-%m-%dT%H:%M:%SZ").tolist()
    read([str(time) for time in every])


@pytest.mark.parametrize("start", ["2023-10-29", "2023-10-30", "2023-12-31"])
def test_a_day_that_short_months_lack_goes_on_by_months(start):
    """As pandas adds months to one date."""
    every = [str((pd.Timestamp(start) + pd.DateOffset(months=i)).date()) for i in range(12)]
    assert times_after(every[:6], 6) == every[6:]
    data = {"t": pd.to_datetime(every), "y": range(12)}
    bz.read(bz.find("local_level"), pd.DataFrame(data), column="y", time="t")  # even steps


def test_numbers_that_are_dates_do_not_go_on_to_dates_that_do_not_exist():
    assert times_after(["202410", "202411", "202412"], 1) == []  # not 202413
    assert times_after(["20240129", "20240130", "20240131"], 1) == []
    assert times_after(["20240101", "20240102", "20240103"], 2) == ["20240104", "20240105"]
    assert times_after(["202499", "202500", "202501"], 1) == ["202502"]


def test_times_in_messages_are_as_in_the_table_and_rounding_is_no_gap():
    table = pd.DataFrame({"t": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-05"]), "y": [1.0, 2.0, 3.0]})
    model = bz.find("local_level")
    with pytest.raises(bz.InputError, match="2024-01-05 is 3 times as far") as error:
        bz.read(model, table, column="y", time="t")
    assert error.value.code == "uneven_times"
    bz.read(model, {"t": [1e9 + i / 10 for i in range(6)], "y": range(6)}, column="y", time="t")


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


@pytest.mark.parametrize("step", [1, 100])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_nanoseconds_are_told_apart(step, zone):
    """They were refused as repeated: times were rounded to microseconds, and float64 has too few digits of them."""
    every = pd.date_range("2024-02-28 22:57", periods=9, freq=f"{step}ns", tz=zone, unit="ns")
    values = read(every[:6]).reading["times"]["values"]
    assert pd.to_datetime(times_after(values, 3)).tolist() == every[6:].tolist()
    uneven = every[[0, 1, 2, 4, 5, 6]]
    with raises(bz.InputError, "uneven_times", "5"):
        read(uneven)
    assert times_after([str(time)[:29].replace(" ", "T") for time in uneven], 3) == []
    with raises(bz.InputError, "repeated_times", "2024"):
        read(every[[0, 1, 1, 2]])


def test_milliseconds_of_a_zone_are_told_apart():
    """Times of day with a zone were cut to seconds."""
    every = pd.date_range("2024-02-28 22:57", periods=9, freq="100ms", tz="Europe/Berlin")
    values = read(every[:6]).reading["times"]["values"]
    assert pd.to_datetime(times_after(values, 3)).tolist() == every[6:].tz_convert("UTC").tolist()


def test_days_before_nanoseconds_begin_stay_days():
    every = [f"1500-01-{day:02}" for day in range(1, 10)]
    assert times_after(read(every[:6]).reading["times"]["values"], 3) == every[6:]
