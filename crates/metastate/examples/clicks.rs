//! Clicks between the pages of a small site become groups of pages. The same as `examples/python/clicks.ipynb`.
//!
//! `cargo run --release -p metastate --example clicks`

use metastate::solve::Silent;
use metastate::{Counts, Data, Estimate, FitOptions, Label, StateIndex, fit};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Three groups of pages; visitors mostly stay within one.
const GROUPS: [[&str; 4]; 3] =
    [["home", "about", "contact", "jobs"], ["shop", "cart", "checkout", "orders"], ["docs", "tutorial", "reference", "forum"]];
/// Share of clicks that stay in the group.
const WITHIN: f64 = 0.9;

fn main() -> metastate::Result<()> {
    let pages: Vec<&str> = GROUPS.concat();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let (mut here, mut clicks) = (0usize, Vec::new());
    for _ in 0..20_000 {
        let group = if random.random_bool(WITHIN) { here / 4 } else { random.random_range(0..3) };
        let next = 4 * group + random.random_range(0..4);
        clicks.push((here as u32, next as u32));
        here = next;
    }
    let index = StateIndex::from_labels(pages.iter().map(|p| Label::from(*p)).collect())?;
    let data = Data::from_counts(&Counts::from_pairs(index, clicks)?, &Estimate::default())?;
    let model = fit(&data, &FitOptions::default(), &mut Silent)?;
    let labels: Vec<String> = data.chain().index().labels().map(|l| l.to_string()).collect();
    for zone in 0..model.zones.clusters() as u32 {
        let of_zone: Vec<&str> = labels.iter().zip(&model.zones.labels).filter(|(_, z)| **z == zone).map(|(l, _)| l.as_str()).collect();
        println!("group {}: {}", zone + 1, of_zone.join(", "));
    }
    Ok(())
}
