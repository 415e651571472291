//! Chains at the edge of numbers: whatever a fit accepts becomes a folder that every command reads, that holds no NaN where a number is promised, and that
//! `verify` accepts. Whatever it does not accept ends in a sentence.

use metastate_report::npz::npy_bytes;
use serde_json::Value;

use crate::chance::Chance;
use crate::doors;
use crate::watch::Outcome;

/// Where the files of a case lie.
pub struct Bench {
    place: tempfile::TempDir,
}

/// A chain and the options of its fit.
struct Case {
    input: String,
    counts: bool,
    words: Vec<String>,
}

impl Bench {
    /// An empty folder.
    pub fn new() -> Result<Bench, String> {
        Ok(Bench { place: tempfile::tempdir().map_err(|e| e.to_string())? })
    }

    fn text(&self, name: &str) -> String {
        self.place.path().join(name).display().to_string()
    }

    /// One case.
    pub fn case(&self, seed: u64, case: u64) -> Outcome {
        let mut chance = Chance::new(seed, case);
        let made = self.chain(&mut chance);
        let out = self.text("out");
        let mut words: Vec<&str> = vec!["fit", &made.input];
        words.extend(made.words.iter().map(String::as_str));
        words.extend(["--out", &out]);
        let end = doors::run(&words);
        let told = words[2..words.len() - 2].join(" ");
        let mut outcome = Outcome { kind: format!("exit {}", end.code), ..Outcome::default() };
        match end.code {
            0 => self.check(&made, &told, &mut outcome),
            1 => outcome.wrong.push(format!("ends with 1: {} ({told})", end.told)),
            2 => {}
            code => outcome.wrong.push(format!("ends with {code}: {} ({told})", end.told)),
        }
        if !outcome.wrong.is_empty() {
            let kept = std::env::temp_dir().join(format!("metastate-extreme-{case}"));
            let _ = std::fs::copy(&made.input, &kept);
            outcome.wrong.push(format!("the input is {}", kept.display()));
        }
        for entry in std::fs::read_dir(self.place.path()).into_iter().flatten().flatten() {
            let _ = if entry.path().is_dir() { std::fs::remove_dir_all(entry.path()) } else { std::fs::remove_file(entry.path()) };
        }
        outcome
    }

    /// Every command reads the result, and nothing in it is less than a number.
    fn check(&self, made: &Case, told: &str, outcome: &mut Outcome) {
        let (out, assigned) = (self.text("out"), self.text("assigned.csv"));
        let mut commands = vec![vec!["verify", &out], vec!["report", &out], vec!["forecast", &out, "--steps", "1,100"]];
        if made.counts {
            commands.push(vec!["assign", &out, &made.input, "--as", "counts", "--out", &assigned]);
        }
        for words in commands {
            let end = doors::run(&words);
            if end.code != 0 {
                outcome.wrong.push(format!("{} ends with {}: {} ({told})", words[0], end.code, end.told));
            }
        }
        outcome.wrong.extend(less_than_numbers(std::path::Path::new(&out)).map(|what| format!("{what} ({told})")));
    }

    /// A chain of a few states, of one of many kinds.
    fn chain(&self, chance: &mut Chance) -> Case {
        let d = 2 + chance.below(7);
        let pattern = chance.below(10);
        let scale = *chance.of(&[0, 0, 1, 2, 3, 4]);
        let unit = match scale {
            0 => 1.0,
            1 => 10f64.powf(600.0 * chance.share() - 300.0),
            2 => 5e-324 * (1.0 + chance.below(1000) as f64),
            3 => 1e15,
            _ => 1e300 / 64.0,
        };
        let mut p = vec![0.0; d * d];
        let duplicated: Vec<f64> = (0..d).map(|_| 0.1 + chance.share()).collect();
        for (i, j) in (0..d).flat_map(|i| (0..d).map(move |j| (i, j))) {
            let far = 10f64.powf(-20.0 * chance.share());
            p[i * d + j] = match pattern {
                0 => 1.0 + chance.below(30) as f64,
                1 => {
                    if j == (i + 1) % d {
                        1.0
                    } else {
                        0.0
                    }
                }
                2 => f64::from(u8::from(i == j)),
                3 => {
                    if i < d / 2 {
                        f64::from(u8::from(j < d / 2))
                    } else {
                        f64::from(u8::from(j >= d / 2))
                    }
                }
                4 => duplicated[j],
                5 => duplicated[(i / 2 + j) % d],
                6 => {
                    if i == 0 {
                        f64::from(u8::from(j == 0))
                    } else {
                        1.0 + (i + j) as f64
                    }
                }
                7 => far,
                8 => {
                    if chance.once_in(3) {
                        1.0
                    } else {
                        0.0
                    }
                }
                _ => {
                    if i % 2 == j % 2 {
                        20.0
                    } else {
                        chance.share()
                    }
                }
            };
        }
        let spread = chance.once_in(5);
        let row_scale: Vec<f64> = (0..d).map(|_| if spread { 10f64.powf(100.0 * chance.share() - 50.0) } else { 1.0 }).collect();
        let counts = !chance.once_in(4);
        let input = if counts { self.counts(&p, d, unit, &row_scale) } else { self.matrix(&mut p, d) };
        let mut words: Vec<String> = Vec::new();
        let mut add = |more: &[&str]| words.extend(more.iter().map(|w| (*w).to_owned()));
        if !counts {
            add(&["--as", "matrix"]);
        }
        options(chance, counts, d, &mut add);
        Case { input, counts, words }
    }

    fn counts(&self, p: &[f64], d: usize, unit: f64, row_scale: &[f64]) -> String {
        let path = self.text("counts.csv");
        let mut text = String::from("from,to,count\n");
        for (k, x) in p.iter().enumerate().filter(|(_, x)| **x > 0.0) {
            text += &format!("s{},s{},{:e}\n", k / d, k % d, x * unit * row_scale[k / d]);
        }
        let _ = std::fs::write(&path, text);
        path
    }

    fn matrix(&self, p: &mut [f64], d: usize) -> String {
        let path = self.text("p.npy");
        for row in p.chunks_mut(d) {
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|x| *x = if sum > 0.0 { *x / sum } else { 1.0 / d as f64 });
        }
        let _ = std::fs::write(&path, npy_bytes(&[d, d], p));
        path
    }
}

fn options(chance: &mut Chance, counts: bool, d: usize, add: &mut dyn FnMut(&[&str])) {
    let power = |chance: &mut Chance, low: f64, high: f64| format!("{:e}", 10f64.powf(low + (high - low) * chance.share()));
    match chance.below(if counts { 7 } else { 5 }) {
        0 => add(&["--lambda", &power(chance, -300.0, 0.0)]),
        1 => add(&["--lambda", "1e-300"]),
        2 => add(&["--lambda-ratio", &power(chance, -3.0, 1.0)]),
        3 => add(&["--lambda-ratio", &power(chance, -300.0, 0.0)]),
        4 => add(&["--lambda-ratio", *chance.of(&["1", "0.999999", "10", "0.5", "0.1"])]),
        5 => add(&["--folds", "2", "--max-rank", "3", "--points", "5"]),
        _ => add(&["--rank", &(1 + chance.below(d + 1)).to_string(), "--folds", "2", "--points", "5"]),
    }
    match chance.below(8) {
        0 => add(&["--solver", "palm-bb"]),
        1 => add(&["--solver", "palm-bb", "--start-rank", &(d + chance.below(3)).to_string()]),
        2 => add(&["--weight-power", "0.5"]),
        3 => add(&["--weight-power", "0"]),
        4 if counts => add(&["--weights-by", "arrivals"]),
        5 => add(&["--clusters", &(1 + chance.below(d)).to_string()]),
        6 => add(&["--refit", "least-squares"]),
        7 => add(&["--refit", "likelihood", "--prior", *chance.of(&["0", "0.1", "1e-300", "1e300"])]),
        _ => {}
    }
    add(&["--time-limit", "5"]);
}

/// Numbers that are promised and are none.
fn less_than_numbers(folder: &std::path::Path) -> Option<String> {
    let summary: Value = std::fs::read(folder.join("summary.json")).ok().and_then(|b| serde_json::from_slice(&b).ok())?;
    for key in ["objective", "fidelity", "regularizer", "lambda", "transitions"] {
        if !summary[key].is_number() {
            return Some(format!("summary.json: {key} is {}", summary[key]));
        }
    }
    for key in ["rel_le1", "rel_le2", "ge", "rel_dg"] {
        if !summary["errors"][key].is_number() {
            return Some(format!("summary.json: errors.{key} is {}", summary["errors"][key]));
        }
    }
    for file in ["states.csv", "metastates.csv", "latent.csv", "path.csv", "ranks.csv"] {
        let Ok(text) = std::fs::read_to_string(folder.join(file)) else { continue };
        let bad = text.lines().skip(1).flat_map(|l| l.split(',')).find(|f| matches!(*f, "NaN" | "inf" | "-inf"));
        if let Some(field) = bad {
            return Some(format!("{file} holds {field}"));
        }
    }
    None
}
