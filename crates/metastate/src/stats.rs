//! Quantiles, and intervals from draws.

/// The quantile of sorted values, interpolated between the two nearest.
pub(crate) fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = q * (sorted.len() - 1) as f64;
    let (below, part) = (at.floor() as usize, at.fract());
    if part == 0.0 {
        return sorted[below];
    }
    sorted[below] + part * (sorted[(below + 1).min(sorted.len() - 1)] - sorted[below])
}

/// The interval of a published number that the draws estimate as well: the published value less the quantiles of the draws' errors, widened to contain the published value.
pub(crate) fn reflected(published: f64, truth: f64, drawn: impl Iterator<Item = f64>, confidence: f64) -> (f64, f64) {
    let (low, high) = central(drawn.map(|x| x - truth), confidence);
    ((published - high).min(published), (published - low).max(published))
}

/// The ends between which this share of the values lies, with as many values below as above.
pub(crate) fn central(values: impl Iterator<Item = f64>, confidence: f64) -> (f64, f64) {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let tail = 0.5 * (1.0 - confidence);
    (quantile(&sorted, tail), quantile(&sorted, 1.0 - tail))
}

/// Steps of Simpson's rule in a quarter of a turn.
const STEPS: usize = 2000;
/// From this many degrees of freedom on, Student's law and the normal law cannot be told apart.
const NORMAL: f64 = 500.0;

/// The quantile of Student's law, `share` between 1/2 and 1, any degrees of freedom from one on. With `t = sqrt(n) tan a` the density is `cos^(n-1) a`: its integral is a sum.
pub(crate) fn student_quantile(share: f64, freedom: f64) -> f64 {
    let n = freedom.clamp(1.0, NORMAL);
    let h = 0.5 * std::f64::consts::PI / STEPS as f64;
    let density = |a: f64| a.cos().max(0.0).powf(n - 1.0);
    let piece = |k: usize| {
        let a = h * k as f64;
        h / 6.0 * (density(a) + 4.0 * density(a + 0.5 * h) + density(a + h))
    };
    let half: f64 = (0..STEPS).map(piece).sum();
    let wanted = (2.0 * share - 1.0).clamp(0.0, 1.0) * half;
    let (mut below, mut k) = (0.0, 0);
    while k + 1 < STEPS && below + piece(k) < wanted {
        below += piece(k);
        k += 1;
    }
    let within = (wanted - below) / piece(k);
    n.sqrt() * (h * (k as f64 + within.clamp(0.0, 1.0))).tan()
}

#[cfg(test)]
mod tests {
    use super::student_quantile;

    #[test]
    fn students_quantiles_are_the_textbooks() {
        for (freedom, wanted) in [(1.0, 6.3138), (2.0, 2.9200), (3.0, 2.3534), (4.0, 2.1318), (10.0, 1.8125), (30.0, 1.6973), (1e9, 1.6449)]
        {
            let found = student_quantile(0.95, freedom);
            assert!((found / wanted - 1.0).abs() < 2e-3, "{freedom}: {found}, not {wanted}");
        }
        assert!((student_quantile(0.975, 2.5) - 3.558).abs() < 0.02, "{}", student_quantile(0.975, 2.5));
    }
}
