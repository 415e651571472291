//! `--truth`: the true chain, brought into the order of the states.

use std::path::Path;
use std::sync::Arc;

use metastate::{Chain, DenseOperator, Label, LowRankOperator, Mat, Operator};
use metastate_ingest::side;
use metastate_report::{FileRecord, hash};

use crate::error::{CliError, Result};

/// The true P over the states of the chain.
pub fn load(text: &str, chain: &Chain) -> Result<(Arc<dyn Operator>, Vec<FileRecord>)> {
    let names: Vec<&str> = text.split(',').collect();
    let mut files = Vec::new();
    let mut matrix = |name: &str| -> Result<Mat> {
        // Read first: what is no regular file is refused before it is hashed.
        let matrix = side::matrix(Path::new(name))?;
        if let Some(at) = matrix.as_slice().iter().position(|x| !(*x >= 0.0 && x.is_finite())) {
            let (row, column, met) = (at / matrix.cols().max(1) + 1, at % matrix.cols().max(1) + 1, matrix.as_slice()[at]);
            return Err(bad(name, format!("it holds {met} in row {row}, column {column}; every entry must be zero or more")));
        }
        let (bytes, sha256) = hash::of_file(Path::new(name)).map_err(|e| bad(name, e.to_string()))?;
        files.push(FileRecord { name: name.to_owned(), role: "truth".into(), bytes, sha256 });
        Ok(matrix)
    };
    let operator: Arc<dyn Operator> = match names[..] {
        [p] => {
            let p = matrix(p)?;
            let rows = rows_of(chain, p.rows(), names[0])?;
            if p.cols() != p.rows() {
                return Err(bad(names[0], format!("it is {} x {}, not square", p.rows(), p.cols())));
            }
            sums_to_one(names[0], "row", (0..p.rows()).map(|i| p.row(i).iter().sum()))?;
            Arc::new(DenseOperator::new(Mat::from_fn(rows.len(), rows.len(), |i, j| p[(rows[i], rows[j])])))
        }
        [u, v] => {
            let (u, v) = (matrix(u)?, matrix(v)?);
            if (u.rows(), u.cols()) != (v.rows(), v.cols()) {
                return Err(bad(text, format!("U is {} x {}, V is {} x {}", u.rows(), u.cols(), v.rows(), v.cols())));
            }
            sums_to_one(names[0], "row", (0..u.rows()).map(|i| u.row(i).iter().sum()))?;
            sums_to_one(names[1], "column", (0..v.cols()).map(|j| (0..v.rows()).map(|i| v[(i, j)]).sum()))?;
            let rows = rows_of(chain, u.rows(), names[0])?;
            let pick = |m: &Mat| Mat::from_fn(rows.len(), m.cols(), |i, j| m[(rows[i], j)]);
            Arc::new(LowRankOperator::new(pick(&u), pick(&v))?)
        }
        _ => return Err(bad(text, "one or two files are needed".into())),
    };
    Ok((operator, files))
}

/// How far a sum of probabilities may be from one.
const SUM_ALLOWED: f64 = 1e-6;

/// Rows of P and of U, and columns of V, are laws.
fn sums_to_one(file: &str, what: &str, sums: impl Iterator<Item = f64>) -> Result<()> {
    match sums.enumerate().find(|(_, sum)| (sum - 1.0).abs() > SUM_ALLOWED) {
        Some((k, sum)) => Err(bad(file, format!("{what} {} sums to {sum}, not to 1", k + 1))),
        None => Ok(()),
    }
}

/// Row of each state in the truth: its label when all labels are row numbers, else its place.
fn rows_of(chain: &Chain, rows: usize, file: &str) -> Result<Vec<usize>> {
    let by_number = |label: Label| match label {
        Label::Integer(n) => usize::try_from(n).ok().filter(|n| *n < rows),
        Label::Text(_) => None,
    };
    if let Some(found) = chain.index().labels().map(by_number).collect::<Option<Vec<usize>>>() {
        return Ok(found);
    }
    if rows == chain.states() {
        return Ok((0..rows).collect());
    }
    Err(bad(file, format!("it has {rows} rows and the chain has {} states", chain.states())))
}

fn bad(file: &str, why: String) -> CliError {
    CliError::bad("E-CLI-TRUTH", format!("this cannot be used as the true chain: {why}"))
        .at(file)
        .remedy("give one square .npy of float64, or two of the same shape as U.npy,V.npy")
}
