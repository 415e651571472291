//! What stands after FROM: tables by their names, or files where the engine reads them.

use super::Dialect;
use crate::codes::Code;
use crate::error::{IngestError, Result};

/// Where rows come from.
pub(super) struct Table {
    pub dialect: Dialect,
    /// After FROM.
    pub from: String,
    /// All columns are texts, as in CSV files.
    pub texts: bool,
    /// Several tables or files.
    pub many: bool,
}

#[derive(PartialEq, Clone, Copy)]
enum SourceKind {
    Name,
    Parquet,
    Csv,
}

impl Table {
    /// The tables behind these inputs, with the columns that are needed.
    pub fn new(inputs: &[String], columns: &[String], dialect: Dialect) -> Result<Self> {
        let refuse = |sentence: String, input: &str, remedy: &str| {
            Err(IngestError::new(Code::Option, sentence).column("--print-sql").value(input).remedy(remedy))
        };
        let mut kinds = Vec::new();
        for input in inputs {
            let Some(kind) = kind(input) else {
                return refuse(format!("{} cannot read this input", dialect.name()), input, "name a table, or Parquet or CSV files");
            };
            match (kind, dialect) {
                (SourceKind::Parquet | SourceKind::Csv, Dialect::Postgres | Dialect::BigQuery) => {
                    return refuse(
                        format!("a query of {} reads tables, and this is a file", dialect.name()),
                        input,
                        "name the table that holds its rows",
                    );
                }
                (SourceKind::Csv, Dialect::Spark) => {
                    let remedy = "make a view of it first, CREATE TEMPORARY VIEW trips USING csv OPTIONS (path '...', header 'true'), and name the view";
                    return refuse("Spark reads the header of a CSV file only through a view".to_owned(), input, remedy);
                }
                _ => kinds.push(kind),
            }
        }
        let Some(&first) = kinds.first() else {
            return Err(IngestError::new(Code::Option, "no table was named").remedy("name at least one table or file"));
        };
        if kinds.iter().any(|k| *k != first) {
            return refuse("tables, Parquet and CSV files are mixed".to_owned(), &inputs[0], "write one query for each kind");
        }
        let many = inputs.len() > 1 || inputs.iter().any(|i| i.contains(['*', '?', '[']));
        let list = || inputs.iter().map(|i| dialect.text(i)).collect::<Vec<_>>().join(", ");
        let from = match (first, dialect) {
            (SourceKind::Parquet, Dialect::DuckDb) => format!("read_parquet([{}])", list()),
            (SourceKind::Csv, Dialect::DuckDb) => format!("read_csv([{}], header = true, all_varchar = true)", list()),
            _ => {
                let named: Vec<String> = inputs.iter().map(|i| name(i, first, dialect)).collect();
                match &named[..] {
                    [only] => only.clone(),
                    _ => {
                        let columns = columns.iter().map(|c| dialect.quoted(c)).collect::<Vec<_>>().join(", ");
                        let all: Vec<String> = named.iter().map(|n| format!("SELECT {columns} FROM {n}")).collect();
                        format!("({}) AS ms_all", all.join(" UNION ALL "))
                    }
                }
            }
        };
        Ok(Table { dialect, from, texts: first == SourceKind::Csv, many })
    }

    /// A column as a number: NULL where it is missing.
    pub fn number(&self, column: &str) -> String {
        let quoted = self.dialect.quoted(column);
        if self.texts { self.dialect.as_number(&format!("NULLIF(TRIM({quoted}), '')")) } else { self.dialect.as_number(&quoted) }
    }
}

/// Told by its name: what has the ending of a file, or lies in a folder, is one.
fn kind(input: &str) -> Option<SourceKind> {
    let plain = input.trim_end_matches(".gz").trim_end_matches(".zst");
    let ending = plain.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    match ending.as_str() {
        "parquet" | "pq" => Some(SourceKind::Parquet),
        "csv" | "tsv" => Some(SourceKind::Csv),
        "jsonl" | "ndjson" | "json" | "npy" | "npz" | "mtx" | "txt" => None,
        _ if input == "-" || input.contains(['/', '\\', '*', '?']) => None,
        _ => Some(SourceKind::Name),
    }
}

fn name(input: &str, kind: SourceKind, dialect: Dialect) -> String {
    match (kind, dialect) {
        (SourceKind::Parquet, _) => format!("parquet.{}", dialect.quoted(input)),
        (_, Dialect::BigQuery) => dialect.quoted(input), // project.dataset.table stand in one pair of quotes
        _ => input.split('.').map(|part| dialect.quoted(part)).collect::<Vec<_>>().join("."),
    }
}
