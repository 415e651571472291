"""Cuts the taxi trips of one day into tables of counts, for `proof_campaign --counts FOLDER`.

    pip install pandas pyarrow
    python benches/proof/taxi_slices.py ../shared/data/nyc_taxi_trips_2015-12-01.parquet FOLDER

Each slice is some hours of the day on cells of some size; the cells with most pick-ups become states, and trips between them counts.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

# Hours, side of a cell in degrees, states at most.
SLICES = [((0, 6), 0.02, 100), ((6, 10), 0.01, 150), ((16, 20), 0.01, 250), ((0, 24), 0.005, 500), ((0, 24), 0.002, 1000), ((0, 24), 0.001, 2000)]


def counts(trips: pd.DataFrame, hours: tuple[int, int], cell: float, most: int) -> pd.DataFrame:
    """Trips between the busiest cells; a cell that is never left is dropped until none is."""
    hour = pd.to_datetime(trips["pickup_datetime"]).dt.hour
    trips = trips[(hour >= hours[0]) & (hour < hours[1])]
    box = trips["pickup_lon"].between(-74.3, -73.6) & trips["pickup_lat"].between(40.5, 41.0)
    box &= trips["dropoff_lon"].between(-74.3, -73.6) & trips["dropoff_lat"].between(40.5, 41.0)
    trips = trips[box].astype({c: "float64" for c in ("pickup_lon", "pickup_lat", "dropoff_lon", "dropoff_lat")})
    place = lambda end: np.floor(trips[f"{end}_lon"] / cell).astype(int) * 100_000 + np.floor(trips[f"{end}_lat"] / cell).astype(int)
    moves = pd.DataFrame({"from": place("pickup"), "to": place("dropoff")})
    busy = moves["from"].value_counts(sort=True).index[:most]
    while True:
        moves = moves[moves["from"].isin(busy) & moves["to"].isin(busy)]
        left = pd.Index(moves["from"].unique())
        if len(left) == len(busy):
            break
        busy = left
    number = pd.Series(np.arange(len(busy)), index=busy)
    moves = pd.DataFrame({"from": moves["from"].map(number), "to": moves["to"].map(number)})
    return moves.value_counts().rename("count").reset_index().sort_values(["from", "to"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trips")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    trips = pd.read_parquet(options.trips)
    trips = trips[trips["service"] == "yellow"]
    options.folder.mkdir(parents=True, exist_ok=True)
    for hours, cell, most in SLICES:
        table = counts(trips, hours, cell, most)
        name = f"taxi-{hours[0]:02}-{hours[1]:02}-cell-{cell}-{table['from'].nunique()}"
        table.to_csv(options.folder / f"{name}.csv", index=False)
        print(f"{name}: {int(table['count'].sum())} trips, {len(table)} pairs")


if __name__ == "__main__":
    main()
