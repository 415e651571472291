//! Eigenvalues of K, which are the non-zero ones of X, and the times they stand for. Nothing is assumed reversible.

use super::{LatentChain, Structure};
use crate::linalg::{Mat, small};
use crate::solve::bootstrap::LatentDraws;
use crate::stats::{central, reflected};

/// One eigenvalue.
///
/// ```
/// use metastate::Mat;
/// use metastate::aggregate::latent::LatentChain;
///
/// // The chain of the example of `LatentChain`: its eigenvalues are 1 and 0.6.
/// let u = Mat::from_vec(3, 2, vec![1.0, 0.0, 1.0, 0.0, 0.0, 1.0])?;
/// let v = Mat::from_vec(3, 2, vec![0.4, 0.1, 0.4, 0.1, 0.2, 0.8])?;
/// let chain = LatentChain::new(&u, &v)?;
/// let slow = chain.spectrum()[1];
/// assert!((slow.timescale - -1.0 / 0.6f64.ln()).abs() < 1e-12); // steps until it has faded to 1/e
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
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
    #[must_use]
    pub fn modulus(&self) -> f64 {
        self.re.hypot(self.im)
    }

    fn new((re, im): (f64, f64), on_unit_circle: bool) -> Self {
        let modulus = re.hypot(im);
        let timescale = if on_unit_circle { f64::INFINITY } else { timescale(modulus) };
        let angle = im.atan2(re).abs();
        Mode { re, im, timescale, turn: if angle > 0.0 { 2.0 * std::f64::consts::PI / angle } else { f64::INFINITY } }
    }
}

/// Moduli that agree to a part in so many are the same.
const SAME_MODULUS: f64 = 1e12;

/// The eigenvalues of a small matrix, largest modulus first; the first `on_unit_circle` are known to have modulus one.
pub(crate) fn modes(k: &Mat, on_unit_circle: usize) -> Vec<Mode> {
    let mut values = small::eigenvalues(k).unwrap_or_default();
    // The eigenvalue 1 before others of modulus one, of a pair the positive imaginary part first.
    let key = |&(re, im): &(f64, f64)| (re.hypot(im) * SAME_MODULUS).round();
    values.sort_by(|a, b| key(b).total_cmp(&key(a)).then(b.0.total_cmp(&a.0)).then(b.1.total_cmp(&a.1)));
    values.into_iter().enumerate().map(|(n, value)| Mode::new(value, n < on_unit_circle)).collect()
}

/// The intervals of the timescales at this confidence: one pair for each eigenvalue after the first, by its place in the order. The prior multiplies eigenvalues by something
/// less than one, so the errors of the draws are taken as factors: the published modulus, divided by the tails of `|lambda'| / |lambda|`, clipped to [0, 1] and turned into times (1 is
/// for ever), and what most draws say inside.
#[must_use]
pub fn timescale_intervals(latent: &LatentDraws, confidence: f64) -> Vec<(f64, f64)> {
    let moduli = |k: &Mat| -> Vec<f64> {
        let modulus = |m: &Mode| if m.timescale.is_infinite() { 1.0 } else { m.modulus() };
        modes(k, Structure::of(k).on_unit_circle()).iter().map(modulus).collect()
    };
    let (published, truth) = (moduli(&latent.published), moduli(&latent.truth));
    let drawn: Vec<Vec<f64>> = latent.drawn.iter().map(moduli).collect();
    (1..published.len())
        .map(|place| {
            let ln = |m: &Vec<f64>| m.get(place).copied().unwrap_or(0.0).max(f64::MIN_POSITIVE).ln();
            let (low, high) = reflected(ln(&published), ln(&truth), drawn.iter().map(ln), confidence);
            // What most draws say is inside as well: with few data the factor itself is not well known.
            let (least, most) = central(drawn.iter().map(ln), confidence);
            (timescale(low.min(least).exp()), timescale(high.max(most).exp()))
        })
        .collect()
}

/// `-1 / ln |lambda|`.
fn timescale(modulus: f64) -> f64 {
    match modulus {
        m if m <= 0.0 => 0.0,
        m if m < 1.0 => -1.0 / m.ln(),
        // By rounding, or because sampled counts allow it.
        _ => f64::INFINITY,
    }
}

impl LatentChain<'_> {
    /// All `s` eigenvalues, largest modulus first; the first is 1.
    #[must_use]
    pub fn spectrum(&self) -> Vec<Mode> {
        modes(&self.k, Structure::of(&self.k).on_unit_circle())
    }
}
