//! Logarithms, several at a time.

use pulp::Simd;

use super::multiply_add;

/// `ln p` without a branch, for p neither zero nor subnormal, so that several are taken at once:
/// `p = 2^e m` with m in `[1/sqrt 2, sqrt 2)`, and `ln m = 2 artanh s = 2 (s + s^3/3 + s^5/5 + ...)` with `s = (m - 1) / (m + 1)`. As
/// `s^2 < 0.0295`, ten terms leave less than rounding.
#[inline(always)]
pub(crate) fn ln<S: Simd>(p: f64) -> f64 {
    const ONE: u64 = 1023 << 52;
    const MANTISSA: u64 = (1 << 52) - 1;
    /// `1 / sqrt 2` as bits: numbers from there up to twice it have exponent 0 after it is taken off.
    const LOW: u64 = 0x3fe6_a09e_667f_3bcd;
    /// `2^52 + 2^51`: as bits, whole numbers in its last places are exact.
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    let shifted = p.to_bits().wrapping_sub(LOW).wrapping_add(ONE);
    // The exponent, biased by 1023, in the low bits of a number of known size.
    let e = f64::from_bits((shifted >> 52) + MAGIC.to_bits()) - MAGIC - 1023.0;
    let m = f64::from_bits((shifted & MANTISSA) + LOW);
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s;
    let mut series = 1.0 / 19.0;
    for k in [17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        series = multiply_add::<S>(series, s2, 1.0 / k);
    }
    e * std::f64::consts::LN_2 + 2.0 * s * series
}

#[cfg(test)]
mod tests {
    use pulp::Scalar;

    use super::*;

    #[test]
    fn the_logarithm_is_exact_to_rounding() {
        let mut seed = 1u64;
        for k in 0..200_000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let p = ((seed >> 11) as f64 / (1u64 << 53) as f64).powi(1 + k % 20).max(1e-300);
            let near = 1.0 + (p - 0.5) * 1e-3;
            for x in [p, near, 1.0 / p] {
                assert!(
                    (ln::<Scalar>(x) - x.ln()).abs() <= 4.0 * f64::EPSILON * x.ln().abs().max(1e-3),
                    "{x} {} {}",
                    ln::<Scalar>(x),
                    x.ln()
                );
            }
        }
        let edges = [1.0, 1e-300, f64::MIN_POSITIVE, f64::MAX, 0.5, 2.0, std::f64::consts::FRAC_1_SQRT_2, std::f64::consts::SQRT_2];
        edges.iter().for_each(|x| assert!((ln::<Scalar>(*x) - x.ln()).abs() <= 1e-15 * x.ln().abs(), "{x}"));
    }
}
