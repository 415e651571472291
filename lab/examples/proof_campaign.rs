//! Tries to break the certified lower bounds: thousands of fits of small structured chains, each bound attacked by twenty restarts,
//! each result checked by `verify`.
//!
//! `cargo run --release -p metastate-lab --example proof_campaign -- OUT.jsonl [--large] [--counts FOLDER] [--family NAME]`
//!
//! OUT.jsonl gets one line for each chain and lambda, with P up to 30 states, for `benches/proof/convex.py`. `--counts` takes a folder
//! of tables `from,to,count` (`benches/proof/taxi_slices.py` makes some). Exit code 1 when a bound is false or a result refused.

use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use metastate::{Mat, Operator};
use rayon::prelude::*;

#[path = "../../crates/metastate/tests/proof/mod.rs"]
mod proof;

use proof::attack::{Effort, Fit, Outcome, attack, shares};
use proof::families::{self, Instance};

/// Up to this number of states P is written out for the convex solver.
const WRITTEN_STATES: usize = 30;
/// Above this number of states, fewer lambdas.
const LARGE_STATES: usize = 500;
const SHARES_OF_LARGE: [f64; 3] = [0.5, 0.1, 0.01];

/// A chain, and what became of it; or the words of a panic.
type Attacked<'a> = (&'a Instance, Result<Vec<Outcome>, String>);

struct Options {
    out: String,
    large: bool,
    counts: Option<String>,
    family: Option<String>,
}

fn options() -> Result<Options, String> {
    let mut options = Options { out: String::new(), large: false, counts: None, family: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--large" => options.large = true,
            "--counts" => options.counts = Some(value()?),
            "--family" => options.family = Some(value()?),
            _ => options.out = word,
        }
    }
    if options.out.is_empty() { Err("name the file for the details".into()) } else { Ok(options) }
}

/// Every table of a folder, in the order of their names.
fn from_folder(folder: &str) -> Result<Vec<Instance>, String> {
    let listing = std::fs::read_dir(folder).map_err(|e| format!("{folder}: {e}"))?;
    let mut files: Vec<_> = listing.filter_map(|entry| entry.ok()).map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "csv"));
    files.sort();
    let read = |file: &std::path::PathBuf| {
        let table = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        families::from_csv("counts", file.file_stem().unwrap_or_default().to_string_lossy().into_owned(), &table)
    };
    files.iter().map(read).collect()
}

fn main() -> Result<(), String> {
    let options = options()?;
    let mut instances = families::small();
    if options.large {
        instances.extend(families::large());
    }
    if let Some(folder) = &options.counts {
        instances.extend(from_folder(folder)?);
    }
    if let Some(family) = &options.family {
        instances.retain(|instance| instance.family == family);
    }

    let clock = Instant::now();
    // Large ones one after the other, each with all threads; small ones side by side.
    let (large, small): (Vec<_>, Vec<_>) = instances.iter().partition(|instance| instance.chain.states() > LARGE_STATES);
    let mut file = std::io::BufWriter::new(std::fs::File::create(&options.out).map_err(|e| format!("{}: {e}", options.out))?);
    let mut keep = |(instance, outcomes): &Attacked| -> Result<(), String> {
        let lines: String = outcomes.iter().flatten().map(|outcome| line(instance, outcome) + "\n").collect();
        file.write_all(lines.as_bytes()).and_then(|()| file.flush()).map_err(|e| format!("{}: {e}", options.out))
    };
    let mut results: Vec<Attacked> = small.into_par_iter().with_max_len(1).map(|instance| (instance, survive(instance))).collect();
    results.iter().try_for_each(&mut keep)?;
    for instance in large {
        let attacked = (instance, survive(instance));
        keep(&attacked)?;
        results.push(attacked);
    }

    let panics: Vec<_> = results.iter().filter_map(|(instance, r)| r.as_ref().err().map(|e| (&instance.name, e))).collect();
    let outcomes: Vec<&Outcome> = results.iter().flat_map(|(_, r)| r.iter().flatten()).collect();
    let clean = report(&outcomes) && panics.is_empty();
    panics.iter().for_each(|(name, why)| println!("PANIC {name}: {why}"));
    println!("\n{} chains, {:.0} s", results.len(), clock.elapsed().as_secs_f64());
    if clean { Ok(()) } else { Err("a bound is false, or an honest result was refused".into()) }
}

/// A panic is a finding, too.
fn survive(instance: &Instance) -> Result<Vec<Outcome>, String> {
    let states = instance.chain.states();
    let shares = if states > LARGE_STATES { &SHARES_OF_LARGE[..] } else { shares(states) };
    let clock = Instant::now();
    let outcomes = catch_unwind(AssertUnwindSafe(|| attack(instance, shares, &Effort::full(states)))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default()
    });
    eprintln!("{:7.1} s  {}", clock.elapsed().as_secs_f64(), instance.name);
    outcomes
}

/// Prints the tables; true when nothing was false or refused.
fn report(outcomes: &[&Outcome]) -> bool {
    let fits = || outcomes.iter().flat_map(|o| o.fits.iter());
    let count = |f: &dyn Fn(&Fit) -> bool| fits().filter(|fit| f(fit)).count();
    let total = fits().count();
    let false_bounds: Vec<(&Outcome, &Fit)> = outcomes.iter().flat_map(|o| o.false_bounds().map(move |fit| (*o, fit))).collect();
    let false_checker: Vec<(&Outcome, &Fit)> = outcomes.iter().flat_map(|o| o.false_checker_bounds().map(move |fit| (*o, fit))).collect();
    let refused: Vec<(&Outcome, &Fit)> = outcomes.iter().flat_map(|o| o.refused().map(move |fit| (*o, fit))).collect();
    let wrong: Vec<&&Outcome> = outcomes.iter().filter(|o| o.lambda_max_wrong_by().is_some()).collect();

    by_family(outcomes);
    println!("\nproblems {}, fits {total}, of them with default settings {}", outcomes.len(), count(&|fit| fit.mode == "default"));
    println!("FALSE bounds {}, false bounds of the checker {}", false_bounds.len(), false_checker.len());
    println!("REFUSED {} {:?}", refused.len(), tally(refused.iter().flat_map(|(_, fit)| why_refused(fit))));
    println!("lambda_max wrong at {} of {}", wrong.len(), outcomes.iter().filter(|o| o.share > 1.0).count());
    let loose = outcomes.iter().filter(|o| o.share == 0.9 && o.lambda_max_too_large()).count();
    println!("lambda_max perhaps too large by a tenth at {loose}");
    println!(
        "proven {} ({:.1} %)",
        count(&|fit| fit.lower_bound.is_some()),
        100.0 * count(&|fit| fit.lower_bound.is_some()) as f64 / total as f64
    );
    println!("certified {}", count(&|fit| fit.status == "certified"));
    let more_columns = outcomes.iter().flat_map(|o| o.fits.iter().map(move |fit| fit.rank > o.states)).filter(|more| *more).count();
    println!("more columns than states {more_columns}");
    println!("status {:?}", tally(fits().map(|fit| fit.status.to_string())));
    println!("proof {:?}", tally(fits().map(|fit| fit.proof.clone())));
    println!("mode {:?}", tally(fits().map(|fit| fit.mode.to_string())));

    let mut worst: Vec<_> = false_bounds.iter().collect();
    let beyond = |(o, fit): &(&Outcome, &Fit)| (fit.lower_bound.unwrap_or(f64::NAN) - o.best) / o.best;
    worst.sort_by(|a, b| beyond(b).total_cmp(&beyond(a)));
    worst.iter().for_each(|(o, fit)| {
        let bound = fit.lower_bound.unwrap_or(f64::NAN);
        let (gap, excess) = (fit.certified_gap.unwrap_or(f64::NAN), (bound - o.best) / o.best);
        println!(
            "FALSE {} at {:?} (lambda {:e}), {}: {} by {}, bound {bound:.12e} rank {} gap {gap:.1e}; feasible {:.12e} rank {} ({}): beyond by {excess:.1e}",
            o.name, o.share, o.lambda, fit.mode, fit.status, fit.proof, fit.rank, o.best, o.best_rank, o.best_from
        );
    });
    false_checker.iter().for_each(|(o, fit)| {
        println!("FALSE CHECKER {} at {:?}, {}: {:.12e} > {:.12e}", o.name, o.share, fit.mode, fit.checker_bound, o.best);
    });
    refused.iter().for_each(|(o, fit)| {
        let checks = fit.refused.iter().map(|c| format!("{}: {:.9e} for {:.9e}", c.name, c.reported, c.recomputed));
        let words: Vec<String> = checks.chain(fit.failed.clone()).collect();
        println!("REFUSED {} at {:?} (lambda {:e}), {}: {}", o.name, o.share, o.lambda, fit.mode, words.join("; "));
    });
    wrong.iter().for_each(|o| {
        let gain = o.lambda_max_wrong_by().unwrap_or(0.0);
        println!("LAMBDA_MAX {} at {:?} (lambda {:e}): rank {} beats one by {gain:.1e}", o.name, o.share, o.lambda, o.best_rank);
    });
    false_bounds.is_empty() && false_checker.is_empty() && refused.is_empty() && wrong.is_empty()
}

fn why_refused(fit: &Fit) -> Vec<String> {
    fit.refused.iter().map(|check| check.name.to_string()).chain(fit.failed.clone()).collect()
}

fn tally(words: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    words.for_each(|word| *counts.entry(word).or_default() += 1);
    counts
}

fn by_family(outcomes: &[&Outcome]) {
    println!(
        "{:<18} {:>5} {:>6} {:>8} {:>7} {:>9} | {:>8} {:>8} {:>8} {:>8} | {:>8} {:>7}",
        "family", "fits", "false", "refused", "proven", "certified", "gap 50%", "75%", "90%", "most", "of fits", "s"
    );
    let mut families: Vec<&str> = Vec::new();
    outcomes.iter().for_each(|o| {
        if !families.contains(&o.family) {
            families.push(o.family)
        }
    });
    let mut rows: Vec<(&str, Vec<&Outcome>)> =
        families.iter().map(|&family| (family, outcomes.iter().copied().filter(|o| o.family == family).collect())).collect();
    rows.push(("all", outcomes.to_vec()));
    for (family, of_it) in rows {
        let fits: Vec<&Fit> = of_it.iter().flat_map(|o| &o.fits).collect();
        // Gaps of fits that were free to close them.
        let mut gaps: Vec<f64> = fits.iter().filter(|fit| fit.mode == "default").filter_map(|fit| fit.certified_gap).collect();
        gaps.sort_by(f64::total_cmp);
        let quantile = |q: f64| gaps.get(((gaps.len() as f64 - 1.0) * q).round() as usize).copied().unwrap_or(f64::NAN);
        println!(
            "{family:<18} {:>5} {:>6} {:>8} {:>7} {:>9} | {:>8.1e} {:>8.1e} {:>8.1e} {:>8.1e} | {:>8.1} {:>7.1}",
            fits.len(),
            of_it.iter().map(|o| o.false_bounds().count()).sum::<usize>(),
            of_it.iter().map(|o| o.refused().count()).sum::<usize>(),
            fits.iter().filter(|fit| fit.lower_bound.is_some()).count(),
            fits.iter().filter(|fit| fit.status == "certified").count(),
            quantile(0.5),
            quantile(0.75),
            quantile(0.9),
            quantile(1.0),
            fits.iter().map(|fit| fit.seconds).sum::<f64>(),
            of_it.iter().map(|o| o.seconds).sum::<f64>(),
        );
    }
}

fn number(x: f64) -> String {
    if x.is_finite() { format!("{x:e}") } else { "null".into() }
}

fn numbers(list: &[f64]) -> String {
    format!("[{}]", list.iter().map(|x| number(*x)).collect::<Vec<_>>().join(","))
}

fn optional(x: Option<f64>) -> String {
    x.map_or("null".into(), number)
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " "))
}

fn formed(p: &dyn Operator) -> Mat {
    let mut m = Mat::zeros(p.rows(), p.cols());
    (0..p.rows()).for_each(|i| p.row(i).for_each(p.cols(), |j, x| m[(i, j)] += x));
    m
}

/// One line of JSON: the problem, what was published, what was found.
fn line(instance: &Instance, o: &Outcome) -> String {
    let fits: Vec<String> = o
        .fits
        .iter()
        .map(|fit| {
            format!(
                r#"{{"mode":{},"status":{},"rank":{},"objective":{},"lower_bound":{},"certified_gap":{},"proof":{},"checker_bound":{},"refused":[{}],"seconds":{}}}"#,
                quoted(fit.mode),
                quoted(fit.status),
                fit.rank,
                number(fit.objective),
                optional(fit.lower_bound),
                optional(fit.certified_gap),
                quoted(&fit.proof),
                number(fit.checker_bound),
                why_refused(fit).iter().map(|w| quoted(w)).collect::<Vec<_>>().join(","),
                number(fit.seconds)
            )
        })
        .collect();
    let data = if o.states <= WRITTEN_STATES {
        let p = formed(instance.chain.p());
        let rows: Vec<String> = (0..p.rows()).map(|i| numbers(p.row(i))).collect();
        format!(r#","weights":{},"p":[{}]"#, numbers(instance.chain.weights()), rows.join(","))
    } else {
        String::new()
    };
    format!(
        r#"{{"family":{},"name":{},"states":{},"share":{},"lambda":{},"best":{},"best_rank":{},"best_from":{},"slack":{},"rank_one":{},"fits":[{}]{data}}}"#,
        quoted(o.family),
        quoted(&o.name),
        o.states,
        number(o.share),
        number(o.lambda),
        number(o.best),
        o.best_rank,
        quoted(&o.best_from),
        number(o.slack),
        number(o.rank_one),
        fits.join(",")
    )
}
