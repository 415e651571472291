//! `y = a + b x` by least squares.

/// Constant, slope, squared correlation, and the slope's standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    pub constant: f64,
    pub slope: f64,
    pub r2: f64,
    /// With more than two points.
    pub slope_error: Option<f64>,
}

/// `None` with fewer than two different x.
pub fn fit(points: &[(f64, f64)]) -> Option<Fit> {
    let n = points.len() as f64;
    let mean = |f: fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let sum = |f: &dyn Fn(f64, f64) -> f64| points.iter().map(|p| f(p.0 - x, p.1 - y)).sum::<f64>();
    let (sxx, sxy, syy) = (sum(&|a, _| a * a), sum(&|a, b| a * b), sum(&|_, b| b * b));
    if !(points.len() >= 2 && sxx > 0.0) {
        return None;
    }
    let slope = sxy / sxx;
    let r2 = if syy > 0.0 { sxy * sxy / (sxx * syy) } else { 1.0 };
    let residual = (syy - slope * sxy).max(0.0);
    let slope_error = (n > 2.0).then(|| (residual / (n - 2.0) / sxx).sqrt());
    Some(Fit { constant: y - slope * x, slope, r2, slope_error })
}

/// The lowest and the highest slope when one of several y is taken at each x. The slope is `sum (x - mean) y / sxx`, so that the smallest
/// or the largest y of each x gives them.
pub fn slope_range(points: &[(f64, Vec<f64>)]) -> Option<(f64, f64)> {
    let mean = points.iter().map(|p| p.0).sum::<f64>() / points.len() as f64;
    let taken = |rising: bool| -> Option<f64> {
        let of = |(x, ys): &(f64, Vec<f64>)| {
            let largest = (*x > mean) == rising;
            let y = ys.iter().copied().reduce(|a, b| if (b > a) == largest { b } else { a })?;
            Some((*x, y))
        };
        Some(fit(&points.iter().filter_map(of).collect::<Vec<_>>())?.slope)
    };
    Some((taken(false)?, taken(true)?))
}

/// Mean and standard deviation.
pub fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_and_its_scatter_measured() {
        let exact = fit(&[(1.0, 5.0), (2.0, 3.0), (4.0, -1.0)]).unwrap();
        assert!((exact.slope + 2.0).abs() < 1e-12 && (exact.constant - 7.0).abs() < 1e-12 && (exact.r2 - 1.0).abs() < 1e-12);
        // By hand: x = 0, 1, 2; y = 0, 1, 1: slope 1/2, constant 1/6, r^2 = 3/4, residual 1/6 over one degree of freedom, sxx = 2.
        let f = fit(&[(0.0, 0.0), (1.0, 1.0), (2.0, 1.0)]).unwrap();
        assert!((f.slope - 0.5).abs() < 1e-12 && (f.constant - 1.0 / 6.0).abs() < 1e-12);
        assert!((f.r2 - 0.75).abs() < 1e-12 && (f.slope_error.unwrap() - (1.0f64 / 12.0).sqrt()).abs() < 1e-12);
        let two = [(0.0, vec![0.0, 0.5]), (1.0, vec![1.0]), (2.0, vec![1.0, 2.0])];
        let (low, high) = slope_range(&two).unwrap();
        assert!((low - 0.25).abs() < 1e-12 && (high - 1.0).abs() < 1e-12);
        assert!(fit(&[(1.0, 2.0)]).is_none() && fit(&[(1.0, 2.0), (1.0, 3.0)]).is_none());
    }
}
