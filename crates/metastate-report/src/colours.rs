//! Colours of meta-states and zones: one list for the page, the plots and `zones.geojson`, so that a zone has the same colour everywhere.

/// Colours that stay apart for colour-blind eyes (Okabe and Ito; their yellow and black are darker and lighter here, to be seen on white).
const FIRST: [&str; 8] = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#7a5195"];
/// Degrees on the wheel of hues from one further colour to the next: the golden angle, so that neighbours in number are far apart in hue.
const GOLDEN_ANGLE: f64 = 137.5;

/// The colour of a meta-state, from 0. After the first eight, hues a golden angle apart in three lightnesses.
pub fn colour(j: usize) -> String {
    if let Some(named) = FIRST.get(j) {
        return (*named).to_owned();
    }
    let k = j - FIRST.len();
    let step = (k % 3) as f64;
    hsl((GOLDEN_ANGLE * k as f64 + 20.0) % 360.0, 48.0 + 14.0 * step, 40.0 + 13.0 * step)
}

/// The colour of a zone: that of its meta-state where the two are numbered alike, otherwise one that no meta-state has.
pub(crate) fn of_zone(z: usize, alike: bool, metastates: usize) -> String {
    colour(if alike { z } else { metastates + z })
}

/// Hue in degrees, saturation and lightness in percent.
fn hsl(hue: f64, saturation: f64, lightness: f64) -> String {
    let reach = saturation / 100.0 * (lightness / 100.0).min(1.0 - lightness / 100.0);
    let part = |n: f64| {
        let k = (n + hue / 30.0) % 12.0;
        (255.0 * (lightness / 100.0 - reach * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0))).round() as u8
    };
    format!("#{:02x}{:02x}{:02x}", part(0.0), part(8.0), part(4.0))
}

#[cfg(test)]
mod tests {
    use super::{colour, hsl, of_zone};

    #[test]
    fn fifty_zones_have_fifty_colours() {
        let mut all: Vec<String> = (0..50).map(colour).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 50);
        assert_eq!([hsl(0.0, 100.0, 50.0), hsl(120.0, 100.0, 50.0), hsl(240.0, 50.0, 50.0)], ["#ff0000", "#00ff00", "#4040bf"]);
        assert_eq!([of_zone(1, true, 3), of_zone(1, false, 3)], [colour(1), colour(4)]);
    }
}
