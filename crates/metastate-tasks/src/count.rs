//! `metastate count`: only the reading, into a file that can be merged with others.

use std::path::{Path, PathBuf};

pub use metastate_ingest::sql::Answer;
use metastate_ingest::sql::{self, Dialect};
use metastate_ingest::{Data, InputSettings, ShardOf, write_counts};
use serde::Serialize;

use crate::args::{CountCommand, SqlDialect};
use crate::error::{CliError, Result};
use crate::place;
use crate::progress::Reporter;
use crate::stop::{Doing, Stopper};
use crate::watch::WatchReading;
use metastate_report::{Claim, LedgerRecord};

/// What was counted.
#[derive(Debug, Serialize)]
pub struct Counted {
    out: String,
    read_as: String,
    states: usize,
    transitions: f64,
    nonzeros: usize,
    /// Which part of how many, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<String>,
    rows: u64,
    rows_counted: u64,
    ledger: Vec<LedgerRecord>,
    hints: Vec<String>,
}

impl Counted {
    /// For people.
    pub fn describe(&self) -> String {
        let of = self.shard.as_ref().map_or_else(String::new, |part| format!(" (shard {part})"));
        let mut text = format!(
            "{}\n{} states, {} transitions, {} pairs of {} rows{of}\n",
            self.read_as, self.states, self.transitions, self.nonzeros, self.rows
        );
        self.ledger.iter().for_each(|e| text += &format!("  left out, {}: {} {}\n", e.reason, e.count, e.unit));
        self.hints.iter().for_each(|hint| text += &format!("hint: {hint}\n"));
        text + &format!("written to {}", self.out)
    }
}

/// The query that counts where the data lie.
#[derive(Debug, Serialize)]
pub struct Query {
    /// What it is written for.
    dialect: &'static str,
    /// Its text.
    pub sql: String,
}

/// The query for `--print-sql`.
pub fn query(command: &CountCommand, answer: Answer) -> Result<Query> {
    let dialect = match command.count.dialect {
        SqlDialect::Duckdb => Dialect::DuckDb,
        SqlDialect::Spark => Dialect::Spark,
        SqlDialect::Postgres => Dialect::Postgres,
        SqlDialect::Bigquery => Dialect::BigQuery,
    };
    let sql = sql::query(&command.input.inputs, &crate::inputs::settings(&command.input)?, dialect, answer)?;
    Ok(Query { dialect: dialect.name(), sql })
}

/// Counts and writes.
pub fn run(command: &CountCommand, reporter: &mut Reporter, stopper: &Stopper) -> Result<Counted> {
    place::keep(&command.count.out, place::inputs(&command.input))?;
    check_name(&command.count.out)?;
    let _claim = check_place(&command.count.out, command.count.force, &place::inputs(&command.input))?;
    stopper.doing(Doing::Reading);
    let part = command.count.shard.as_deref().map(str::parse::<ShardOf>).transpose();
    let part = part.map_err(|e| CliError::bad("E-CLI-ARGUMENT", format!("--shard: {e}")))?;
    let settings = InputSettings { part, ..crate::inputs::settings(&command.input)? };
    let ingested = metastate_ingest::read(&command.input.inputs, &settings, &mut WatchReading { reporter, stopper })?;
    stopper.doing(Doing::Working);
    let Data::Counts(counted) = ingested.data else {
        return Err(CliError::bad("E-CLI-ARGUMENT", "the input is a transition matrix; there is nothing to count")
            .remedy("give it to `metastate fit` as it is, or say --as counts"));
    };
    let state = stopper.lock();
    write_counts(&command.count.out, &counted, &ingested.inputs, &settings)?;
    drop(state);
    reporter.clear();
    Ok(Counted {
        out: command.count.out.display().to_string(),
        read_as: ingested.read_as,
        states: counted.counts.states(),
        transitions: counted.counts.transitions(),
        nonzeros: counted.counts.csr().nonzeros(),
        shard: part.map(|p| p.to_string()),
        rows: counted.rows,
        rows_counted: counted.kept,
        ledger: LedgerRecord::list(counted.counts.ledger()),
        hints: ingested.hints,
    })
}

/// Endings that promise another format than the one written.
const OTHER_FORMATS: [&str; 10] = ["csv", "tsv", "txt", "json", "jsonl", "ndjson", "npy", "npz", "mtx", "gz"];

/// A name that ends in `.csv` would be taken for a table of text by whatever reads it next.
fn check_name(out: &Path) -> Result<()> {
    let ending = out.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
    if OTHER_FORMATS.contains(&ending.as_str()) {
        return Err(CliError::bad(
            "E-CLI-ARGUMENT",
            format!("a counts file is Parquet, which also keeps what was left out, and this name ends in .{ending}"),
        )
        .at(out.display().to_string())
        .remedy(format!("--out {}", out.with_extension("parquet").display())));
    }
    Ok(())
}

/// A file is replaced only when that is asked for, an input never. What comes back keeps the place for this run.
pub fn check_place(out: &Path, force: bool, read: &[PathBuf]) -> Result<Claim> {
    place::keep(out, read.to_vec())?;
    let claim = Claim::file(out)?;
    if out.is_dir() {
        return Err(CliError::bad(
            "E-CLI-EXISTS",
            "there is a folder at this place, and a file is to be written; a folder is never replaced by a file",
        )
        .at(out.display().to_string())
        .remedy("name a file with --out"));
    }
    if out.symlink_metadata().is_ok() && !force {
        return Err(CliError::exists(out));
    }
    Ok(claim)
}
