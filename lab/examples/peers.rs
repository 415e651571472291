//! Our side of the comparisons in `benches/peers`: k-means and the truncated SVD on arrays that the script wrote.
//!
//! `peers kmeans POINTS.npy CLUSTERS REPLICATES` and `peers svd FOLDER RANK` (`data.npy`, `indices.npy`, `indptr.npy` of a sparse
//! matrix by rows). One line of JSON each.

use std::fs::File;
use std::io::BufReader;
use std::time::Instant;

use metastate::aggregate::{KMeans, WeightedChain, kmeans};
use metastate::workspace::singular::{TruncatedSvd, truncated_svd};
use metastate::{Csr, Mat, SparseOperator};

fn array<T: npyz::Deserialize>(path: &str) -> (Vec<u64>, Vec<T>) {
    let npy = npyz::NpyFile::new(BufReader::new(File::open(path).unwrap())).unwrap();
    (npy.shape().to_vec(), npy.into_vec().unwrap())
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |i: usize| arguments[i].parse::<usize>().unwrap();
    match arguments[1].as_str() {
        "kmeans" => {
            let (shape, data) = array::<f64>(&arguments[2]);
            let points = Mat::from_vec(shape[0] as usize, shape[1] as usize, data).unwrap();
            let clock = Instant::now();
            let settings = KMeans { clusters: number(3), replicates: number(4), passes: 300, seed: 0 };
            let found = kmeans(&points, &vec![1.0; points.rows()], &settings).unwrap();
            println!("{{\"seconds\": {}, \"inertia\": {:?}}}", clock.elapsed().as_secs_f64(), found.inertia);
        }
        "svd" => {
            let folder = &arguments[2];
            let (_, values) = array::<f64>(&format!("{folder}/data.npy"));
            let indices: Vec<u32> = array::<i32>(&format!("{folder}/indices.npy")).1.into_iter().map(|j| j as u32).collect();
            let indptr: Vec<usize> = array::<i64>(&format!("{folder}/indptr.npy")).1.into_iter().map(|i| i as usize).collect();
            let d = indptr.len() - 1;
            let a = SparseOperator::new(Csr::from_parts(d, d, indptr, indices, values).unwrap(), Vec::new()).unwrap();
            let ones = vec![1.0; d];
            let clock = Instant::now();
            let found = truncated_svd(&WeightedChain { p: &a, weights: &ones }, &TruncatedSvd::new(number(3), 0));
            println!(
                "{{\"seconds\": {}, \"values\": {:?}, \"converged\": {}}}",
                clock.elapsed().as_secs_f64(),
                found.values,
                found.converged
            );
        }
        other => panic!("kmeans or svd, not {other}"),
    }
}
