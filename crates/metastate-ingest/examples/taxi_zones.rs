//! Taxi trips with coordinates become zones of a city. The same as `examples/python/taxi_zones.ipynb`.
//!
//! `cargo run --release -p metastate-ingest --example taxi_zones TRIPS.parquet`, with the columns pickup_lon, pickup_lat, dropoff_lon, dropoff_lat.

use metastate::solve::Silent;
use metastate::{Data, Estimate, FitOptions, fit};
use metastate_ingest::{CellSize, Data as Read, InputSettings, read};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("name a file of trips")?;
    let column = |name: &str| Some(name.to_owned());
    let settings = InputSettings {
        from_lon: column("pickup_lon"),
        from_lat: column("pickup_lat"),
        to_lon: column("dropoff_lon"),
        to_lat: column("dropoff_lat"),
        cell: CellSize::Degrees(0.005),
        min_share: 1e-3,
        ..InputSettings::default()
    };
    let Read::Counts(counted) = read(&[file], &settings, &mut metastate_ingest::Silent)?.data else {
        return Err("these are no trips".into());
    };
    let data = Data::from_counts(&counted.counts, &Estimate::default())?;
    let model = fit(&data, &FitOptions::default(), &mut Silent)?;
    println!("{} zones of {} cells", model.rank(), data.chain().states());
    for (zone, (size, mass)) in model.zones.sizes.iter().zip(&model.zones.masses).enumerate() {
        println!("zone {}: {size} cells, {:.1} % of the trips begin there", zone + 1, 100.0 * mass);
    }
    Ok(())
}
