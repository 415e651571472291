"""Slices: one set of meta-states, flows for every slice, the same in memory and from the folder."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest

import metastate as ms


def trips() -> pd.DataFrame:
    """Two groups of places; in the morning everybody goes to the second, in the evening to the first."""
    rows = []
    for i in range(12):
        for j in range(12):
            for hour in (8, 18):
                drawn = 1 if hour == 8 else 0
                often = 6 + (i * 7 + j * 3) % 3 if j // 6 == drawn else (i + j) % 3
                # A third group of two places that only know each other.
                rows += [(f"p{i}", f"p{j}", dt.datetime(2015, 12, 1, hour, 5))] * often
    for hour in (8, 18):
        rows += [(f"q{a}", f"q{1 - a}", dt.datetime(2015, 12, 1, hour, 5)) for a in (0, 1) for _ in range(40)]
    return pd.DataFrame(rows, columns=["start", "end", "began"])


@pytest.fixture(scope="module")
def result() -> ms.Result:
    return ms.fit(trips(), from_column="start", to_column="end", slice="hour(began)", rank=2)


def test_flows_of_all_slices_are_all_transitions(result: ms.Result) -> None:
    assert result.slices == (8, 18)
    flows = [result.flows(h) for h in result.slices]
    assert sum(f.sum() for f in flows) == pytest.approx(1)
    assert result.profiles.shape == (len(result.states), result.rank)
    np.testing.assert_allclose(sum(result.profiles_in(h) for h in result.slices), result.profiles)
    table = result.table("slices.csv")
    assert table is not None
    np.testing.assert_allclose(np.concatenate([f.ravel() for f in flows]), [float(x) for x in table["flow"]], atol=1e-12)
    assert result.latent_chain is not None and np.allclose(result.latent_chain.sum(axis=1), 1)
    with pytest.raises(ms.InputError, match="no slice"):
        result.flows(3)


def test_the_folder_tells_the_same(result: ms.Result, tmp_path) -> None:
    result.save(tmp_path / "out")
    again = ms.load(tmp_path / "out")
    assert again.slices == result.slices
    np.testing.assert_array_equal(again.flows(18), result.flows(18))
    assert bool(ms.verify(result))


def test_zones_of_timestamps_are_told_on_their_own_clocks() -> None:
    frame = trips()
    frame["began"] = frame["began"].dt.tz_localize("UTC").dt.tz_convert("America/New_York")
    assert ms.fit(frame, from_column="start", to_column="end", slice="hour(began)", rank=2).slices == (3, 13)


def test_a_result_without_slices_says_so() -> None:
    plain = ms.fit(trips(), from_column="start", to_column="end", rank=2)
    assert plain.slices is None
    with pytest.raises(ms.InputError, match="has no slices"):
        plain.flows(8)
