//! Eigenvalues of K, which are the non-zero ones of X, and the times they stand for. Nothing is assumed reversible.

use super::{LatentChain, Structure};
use crate::linalg::{Mat, small};
use crate::solve::bootstrap::quantile;

/// One eigenvalue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mode {
    /// Real part.
    pub re: f64,
    /// Imaginary part; a complex pair stands next to each other.
    pub im: f64,
    /// Steps until the mode has faded to 1/e, `-1 / ln |lambda|`: infinite on the unit circle.
    pub timescale: f64,
    /// Steps a turn takes, `2 pi / |arg lambda|`: infinite for a positive eigenvalue.
    pub turn: f64,
}

impl Mode {
    /// `|lambda|`.
    pub fn modulus(&self) -> f64 {
        self.re.hypot(self.im)
    }

    fn new((re, im): (f64, f64), on_unit_circle: bool) -> Self {
        let modulus = re.hypot(im);
        let timescale = match modulus {
            _ if on_unit_circle => f64::INFINITY,
            0.0 => 0.0,
            m if m < 1.0 => -1.0 / m.ln(),
            // By rounding, or because sampled counts allow it.
            _ => f64::INFINITY,
        };
        let angle = im.atan2(re).abs();
        Mode { re, im, timescale, turn: if angle > 0.0 { 2.0 * std::f64::consts::PI / angle } else { f64::INFINITY } }
    }
}

/// The eigenvalues of a small matrix, largest modulus first; the first `on_unit_circle` are known to have modulus one.
pub(super) fn modes(k: &Mat, on_unit_circle: usize) -> Vec<Mode> {
    let mut values = small::eigenvalues(k).unwrap_or_default();
    // The eigenvalue 1 before others of modulus one, of a pair the positive imaginary part first.
    let key = |&(re, im): &(f64, f64)| (re.hypot(im) * 1e12).round();
    values.sort_by(|a, b| key(b).total_cmp(&key(a)).then(b.0.total_cmp(&a.0)).then(b.1.total_cmp(&a.1)));
    values.into_iter().enumerate().map(|(n, value)| Mode::new(value, n < on_unit_circle)).collect()
}

/// Between which ends the timescales lie in this share of the draws of the latent chain: one pair for each eigenvalue after the
/// first, by its place in the order of its own draw. Draws with fewer meta-states say nothing of the last ones; the pair is missing
/// (infinite on both sides) where fewer than two draws speak.
pub fn timescale_intervals(latent: &[Mat], confidence: f64) -> Vec<(f64, f64)> {
    let drawn: Vec<Vec<Mode>> = latent.iter().map(|k| modes(k, Structure::of(k).on_unit_circle())).collect();
    let most = drawn.iter().map(Vec::len).max().unwrap_or(0);
    let tail = 0.5 * (1.0 - confidence);
    (1..most)
        .map(|place| {
            let mut times: Vec<f64> = drawn.iter().filter_map(|modes| modes.get(place)).map(|mode| mode.timescale).collect();
            times.sort_by(f64::total_cmp);
            // Between two infinite values there is no difference to share out.
            let at = |q| Some(quantile(&times, q)).filter(|t| !t.is_nan()).unwrap_or(f64::INFINITY);
            if times.len() < 2 { (f64::INFINITY, f64::INFINITY) } else { (at(tail), at(1.0 - tail)) }
        })
        .collect()
}

impl LatentChain<'_> {
    /// All `s` eigenvalues, largest modulus first; the first is 1.
    pub fn spectrum(&self) -> Vec<Mode> {
        modes(&self.k, Structure::of(&self.k).on_unit_circle())
    }
}
