//! `metastate-torture CAMPAIGN [--cases N] [--seed N]`: runs one campaign and prints what became of its cases.

use std::process::ExitCode;
use std::time::Instant;

use metastate_torture::watch::{self, Campaign};
use metastate_torture::{checkpoints, extremes, faults, folders, inputs, processes};

const CAMPAIGNS: &str = "inputs, folders, checkpoints, extremes, faults, kills, places";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, default: u64| {
        let at = words.iter().position(|w| w == name);
        at.and_then(|k| words.get(k + 1)?.parse().ok()).unwrap_or(default)
    };
    let seed = number("--seed", 1);
    if let [first, from, to, name, ..] = &words[..]
        && first == "child"
    {
        return child(name, from.parse().unwrap_or(0), to.parse().unwrap_or(0), seed);
    }
    let Some(name) = words.first().filter(|n| CAMPAIGNS.split(", ").any(|c| c == *n)) else {
        eprintln!("metastate-torture CAMPAIGN [--cases N] [--seed N]; the campaigns are {CAMPAIGNS}");
        return ExitCode::from(2);
    };
    let cases = number("--cases", 100);
    let begun = Instant::now();
    let done = match name.as_str() {
        "faults" => faults::all(number("--every", 1) as usize),
        "kills" => processes::kills(seed, cases),
        "places" => processes::places(cases),
        name => Ok(watch::parent(&[name.to_owned(), "--seed".to_owned(), seed.to_string()], cases)),
    };
    match done {
        Ok(campaign) => tell(name, seed, &campaign, begun),
        Err(e) => {
            eprintln!("{name}: {e}");
            ExitCode::from(2)
        }
    }
}

fn child(name: &str, from: u64, to: u64, seed: u64) -> ExitCode {
    let done = match name {
        "inputs" => inputs::Bench::new().map(|bench| watch::child(from, to, |k| bench.case(seed, k))),
        "folders" => folders::Bench::new().map(|bench| watch::child(from, to, |k| bench.case(seed, k))),
        "checkpoints" => checkpoints::Bench::new().map(|bench| watch::child(from, to, |k| bench.case(seed, k))),
        "extremes" => extremes::Bench::new().map(|bench| watch::child(from, to, |k| bench.case(seed, k))),
        other => Err(format!("there is no campaign {other}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(2)
        }
    }
}

/// A table of Markdown, and what must not be on standard error.
fn tell(name: &str, seed: u64, campaign: &Campaign, begun: Instant) -> ExitCode {
    println!("| {name} | cases |\n|---|---|");
    campaign.kinds.iter().for_each(|(kind, n)| println!("| {kind} | {n} |"));
    println!("| **all** | **{}** |", campaign.cases());
    println!("| must not be | {} |\n", campaign.wrong.len());
    let memory = match campaign.most_memory {
        0 => String::new(),
        bytes => format!(" The largest memory of a refusal was {:.1} MiB.", bytes as f64 / f64::from(1 << 20)),
    };
    println!("Seed {seed}, {:.0} s.{memory}", begun.elapsed().as_secs_f64());
    campaign.wrong.iter().for_each(|w| eprintln!("{name}: {w}"));
    if campaign.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
