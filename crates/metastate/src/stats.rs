//! Quantiles, and intervals from draws.

/// Of sorted values, between the two nearest.
pub(crate) fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = q * (sorted.len() - 1) as f64;
    let (below, part) = (at.floor() as usize, at.fract());
    if part == 0.0 {
        return sorted[below];
    }
    sorted[below] + part * (sorted[(below + 1).min(sorted.len() - 1)] - sorted[below])
}

/// The interval of a number that the draws estimate, too: the published value less the tails of the draws' errors, the published value inside.
pub(crate) fn reflected(published: f64, truth: f64, drawn: impl Iterator<Item = f64>, confidence: f64) -> (f64, f64) {
    let (low, high) = central(drawn.map(|x| x - truth), confidence);
    ((published - high).min(published), (published - low).max(published))
}

/// Between which ends this share of the values lies, as many below as above.
pub(crate) fn central(values: impl Iterator<Item = f64>, confidence: f64) -> (f64, f64) {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let tail = 0.5 * (1.0 - confidence);
    (quantile(&sorted, tail), quantile(&sorted, 1.0 - tail))
}
