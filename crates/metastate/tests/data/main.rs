//! From data to chain: counting, estimating, checking, drawing. Small cases are worked out by hand.

mod chain;
mod counts;
mod simulate;

use metastate::{Csr, Mat};

/// All entries of a sparse matrix.
fn dense(csr: &Csr) -> Mat {
    let mut m = Mat::zeros(csr.rows(), csr.cols());
    csr.triplets().for_each(|(i, j, x)| m[(i as usize, j as usize)] = x);
    m
}

/// Row-major matrix of a few rows.
fn mat(rows: &[&[f64]]) -> Mat {
    Mat::from_vec(rows.len(), rows[0].len(), rows.concat()).unwrap()
}

fn assert_close(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    for (k, (x, y)) in a.iter().zip(b).enumerate() {
        assert!((x - y).abs() <= tolerance, "entry {k}: {x} against {y}");
    }
}

/// The same call under 1, 2 and 8 threads.
fn with_threads<T: Send + PartialEq + std::fmt::Debug>(f: impl Fn() -> T + Sync) -> T {
    let run = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(&f);
    let one = run(1);
    assert!(one == run(2), "two threads differ from one");
    assert!(one == run(8), "eight threads differ from one");
    one
}
