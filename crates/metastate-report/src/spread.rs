//! Dots that lie on each other, moved apart just as far as it takes to see them all.

use std::collections::HashMap;

type Point = (f64, f64);

/// Rounds of pushing. Most crowds are loose after a few.
const ROUNDS: usize = 60;
/// Beyond so many dots nobody tells them apart anyhow.
const MOST: usize = 20_000;
/// No dot is moved further than so many times its own size: where it is must stay true.
const FARTHEST: f64 = 12.0;
/// The angle from one dot on a spot to the next, in radians: the golden one, so that they fill a disc.
const GOLDEN_ANGLE: f64 = 2.399_963_229_728_653;

/// The dots with this radius, in the same order; those that lie apart stay where they are.
pub(crate) fn spread(dots: &[Point], radius: f64) -> Vec<Point> {
    let mut at = dots.to_vec();
    if dots.len() > MOST || radius.is_nan() || radius <= 0.0 {
        return at;
    }
    // Dots on one spot have no direction to go: each gets its own.
    let mut on_spot: HashMap<(i64, i64), usize> = HashMap::new();
    for p in &mut at {
        let fine = |x: f64| (x / radius * 100.0).round() as i64;
        let k = on_spot.entry((fine(p.0), fine(p.1))).or_insert(0);
        let (reach, turn) = (radius * 0.5 * (*k as f64).sqrt(), GOLDEN_ANGLE * *k as f64);
        (p.0, p.1) = (p.0 + reach * turn.cos(), p.1 + reach * turn.sin());
        *k += 1;
    }
    for _ in 0..ROUNDS {
        let moves = pushes(&at, 2.0 * radius);
        if moves.iter().all(|m| m.0.abs().max(m.1.abs()) < 0.01 * radius) {
            break;
        }
        for ((p, home), (dx, dy)) in at.iter_mut().zip(dots).zip(moves) {
            let (x, y) = (p.0 + dx - home.0, p.1 + dy - home.1);
            let shrink = (FARTHEST * radius / x.hypot(y).max(f64::MIN_POSITIVE)).min(1.0);
            *p = (home.0 + shrink * x, home.1 + shrink * y);
        }
    }
    at
}

/// How far each dot is pushed by those nearer than they should be.
fn pushes(at: &[Point], apart: f64) -> Vec<Point> {
    let square = |p: &Point| ((p.0 / apart).floor() as i64, (p.1 / apart).floor() as i64);
    let mut squares: HashMap<(i64, i64), Vec<usize>> = HashMap::new();
    at.iter().enumerate().for_each(|(i, p)| squares.entry(square(p)).or_default().push(i));
    let push = |i: usize| -> Point {
        let (x, y) = square(&at[i]);
        let mut sum = (0.0, 0.0);
        for near in (x - 1..=x + 1).flat_map(|x| (y - 1..=y + 1).map(move |y| (x, y))) {
            for &j in squares.get(&near).into_iter().flatten().filter(|j| **j != i) {
                let (dx, dy) = (at[i].0 - at[j].0, at[i].1 - at[j].1);
                let distance = dx.hypot(dy);
                if distance > 0.0 && distance < apart {
                    let half = 0.5 * (apart - distance) / distance;
                    sum = (sum.0 + half * dx, sum.1 + half * dy);
                }
            }
        }
        sum
    };
    (0..at.len()).map(push).collect()
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn a_crowd_is_loosened_and_others_stay() {
        let mut dots = vec![(100.0, 100.0); 9];
        dots.extend([(300.0, 100.0), (320.0, 100.0)]);
        let apart = spread(&dots, 4.0);
        assert_eq!(apart[9..], dots[9..]);
        for i in 0..9 {
            for j in 0..i {
                let distance = (apart[i].0 - apart[j].0).hypot(apart[i].1 - apart[j].1);
                assert!(distance > 6.0, "{i} and {j} are {distance} apart");
            }
            assert!((apart[i].0 - 100.0).hypot(apart[i].1 - 100.0) < 24.0);
        }
        assert_eq!(spread(&dots, 4.0), apart);
    }
}
