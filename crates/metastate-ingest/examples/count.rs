//! Counts trips between two label columns and says how long it took: `count FILE FROM TO`.

use std::time::Instant;

use metastate_ingest::{Data, InputSettings, Silent, read};

fn main() -> Result<(), metastate_ingest::IngestError> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, from, to] = args.as_slice() else {
        eprintln!("usage: count FILE FROM TO");
        std::process::exit(2);
    };
    let settings = InputSettings { from: Some(from.clone()), to: Some(to.clone()), ..InputSettings::default() };
    let start = Instant::now();
    let ingested = read(std::slice::from_ref(file), &settings, &mut Silent)?;
    let seconds = start.elapsed().as_secs_f64();
    if let Data::Counts(counted) = &ingested.data {
        let counts = &counted.counts;
        println!("{} states, {} pairs, {} trips in {seconds:.2} s", counts.states(), counts.csr().nonzeros(), counts.transitions());
    }
    Ok(())
}
