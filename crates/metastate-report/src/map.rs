//! Zones as a plain SVG picture: no fonts, scripts or links from outside. All of them are seen: what is smaller than a pixel is drawn as large as one, dots
//! that would lie on each other are moved apart, and where a few far places would shrink the rest to a spot, a small map of everything stands below.

use std::fmt::Write;

use metastate::workspace::polygons::Polygon;

use crate::ground::Shapes;
use crate::sheet::escaped;
use crate::spread::spread;

/// Width of a picture.
const WIDTH: f64 = 560.0;
/// Room for the title above a map.
const TITLE: f64 = 30.0;
/// A map is never more than so many times as high as it is wide.
const TALLEST: f64 = 2.0;
/// Room around the zones, as a share of their extent, and in cells.
const MARGIN: f64 = 0.02;
const MARGIN_CELLS: f64 = 2.0;
/// No more than this share of the places is left to the small map at each side, whatever is asked for.
const MOST_CUT: f64 = 0.4;
/// The share of departures that may, as a part of the share of places.
const WEIGHED: f64 = 0.6;
/// Room around that middle at each side, as a share of it: a city is densest in its middle, and thins out.
const AROUND: f64 = 0.35;
/// Everything is shown at once where it is no more than so many times as wide and as high as the middle and its room.
const ROOMY: f64 = 1.5;
/// Degrees of longitude are never drawn narrower than this share of their length at the equator: a map reaches no pole.
const NARROWEST: f64 = 0.05;
/// No shape is drawn smaller, in pixels: where there are few of them, and where there are many.
const LEAST: (f64, f64) = (3.0, 1.2);
const FEW: usize = 500;
/// Shapes smaller than so many pixels have no white border: it would be all that is seen of them.
const BORDERED: f64 = 3.0;
/// The small map of everything: its largest size, room around it, and the side of a mark.
const SMALL: (f64, f64) = (250.0, 130.0);
const SMALL_ROOM: f64 = 10.0;
const SMALL_MARK: f64 = 1.8;

/// The legend of a map: zones in a row (fewer where they have names), from row to row, from the map to the first, and letters of a name.
const LEGEND_COLUMNS: (usize, usize) = (8, 3);
const LEGEND_ROW: f64 = 18.0;
const LEGEND_GAP: f64 = 8.0;
const LEGEND_LETTERS: usize = 24;

/// How a map is to look.
#[derive(Debug, Clone, Copy)]
pub struct MapLook<'a> {
    /// Above it.
    pub title: &'a str,
    /// The colour of each zone.
    pub colours: &'a [String],
    /// What zones are called; empty where they have numbers only.
    pub names: &'a [String],
    /// The share of places, from each side, that may lie outside of the large map.
    pub within: f64,
}

/// Degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
struct MapFrame {
    west: f64,
    east: f64,
    south: f64,
    north: f64,
}

impl MapFrame {
    /// Around all of these places; somewhere where there are none.
    fn around(places: &[(f64, f64)]) -> Self {
        MapFrame::middle(places, |_| 1.0, 0.0)
    }

    /// Around these places but for a share of what they weigh at each side.
    fn middle(places: &[(f64, f64)], weight: impl Fn(usize) -> f64, cut: f64) -> Self {
        let total: f64 = (0..places.len()).map(&weight).sum();
        let range = |of: fn(&(f64, f64)) -> f64| {
            let mut order: Vec<usize> = (0..places.len()).collect();
            order.sort_by(|&a, &b| of(&places[a]).total_cmp(&of(&places[b])));
            let end = |order: &[usize]| {
                let seen = order.iter().scan(0.0, |sum, &i| {
                    *sum += weight(i);
                    Some((i, *sum))
                });
                seen.into_iter().find(|(_, sum)| *sum > cut * total).map(|(i, _)| of(&places[i]))
            };
            let low = end(&order);
            order.reverse();
            (low.unwrap_or(0.0), end(&order).unwrap_or(1.0))
        };
        let ((west, east), (south, north)) = (range(|p| p.0), range(|p| p.1));
        MapFrame { west, east: east.max(west), south, north: north.max(south) }
    }

    /// What both frames show.
    fn within(self, other: Self) -> Self {
        MapFrame {
            west: self.west.max(other.west),
            east: self.east.min(other.east),
            south: self.south.max(other.south),
            north: self.north.min(other.north),
        }
    }

    fn widened(self, room: f64) -> Self {
        let (x, y) = (room.max(MARGIN * (self.east - self.west)), room.max(MARGIN * (self.north - self.south)));
        MapFrame { west: self.west - x, east: self.east + x, south: self.south - y, north: self.north + y }
    }

    /// Larger by a share of its own size at each side.
    fn grown(self, share: f64) -> Self {
        let (x, y) = (share * (self.east - self.west), share * (self.north - self.south));
        MapFrame { west: self.west - x, east: self.east + x, south: self.south - y, north: self.north + y }
    }

    fn holds(&self, (lon, lat): (f64, f64)) -> bool {
        lon >= self.west && lon <= self.east && lat >= self.south && lat <= self.north
    }
}

/// From degrees to pixels.
#[derive(Debug, Clone, Copy)]
struct Ruler {
    frame: MapFrame,
    /// Pixels of a degree of latitude, and of one of longitude.
    tall: f64,
    wide: f64,
    left: f64,
    top: f64,
}

impl Ruler {
    /// As large as fits.
    fn new(frame: MapFrame, left: f64, top: f64, (width, height): (f64, f64)) -> Self {
        // Degrees of longitude are shorter away from the equator.
        let narrow = ((frame.south + frame.north) / 2.0).to_radians().cos().abs().max(NARROWEST);
        let tall = (width / ((frame.east - frame.west) * narrow)).min(height / (frame.north - frame.south));
        Ruler { frame, tall, wide: tall * narrow, left, top }
    }

    fn at(&self, (lon, lat): (f64, f64)) -> (f64, f64) {
        (self.left + (lon - self.frame.west) * self.wide, self.top + (self.frame.north - lat) * self.tall)
    }

    fn size(&self) -> (f64, f64) {
        ((self.frame.east - self.frame.west) * self.wide, (self.frame.north - self.frame.south) * self.tall)
    }
}

/// The zones of a partition in their places.
pub fn zone_map(look: &MapLook, shapes: &Shapes) -> String {
    let places: Vec<(f64, f64)> = shapes.places.iter().flatten().copied().collect();
    let (frame, outside) = view(shapes, &places, look.within);
    let mut ruler = Ruler::new(frame, 0.0, TITLE, (WIDTH, TALLEST * WIDTH));
    ruler.left = (WIDTH - ruler.size().0) / 2.0;
    let (width, height) = ruler.size();
    let zones = shapes.places.len();
    let small = if outside > 0 { SMALL.1 + 2.0 * SMALL_ROOM } else { 0.0 };
    let below = TITLE + height;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {0:.0}\" width=\"{WIDTH:.0}\" height=\"{0:.0}\" role=\"img\">\n<title>{1}</title>\n\
         <desc>Map, north is up: {2} zones of {3} {4}s, each zone in its colour{5}.</desc>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <clipPath id=\"view\"><rect x=\"{6:.1}\" y=\"{TITLE}\" width=\"{width:.1}\" height=\"{height:.1}\"/></clipPath>\n<g clip-path=\"url(#view)\">\n",
        below + small + legend_height(zones, look.names),
        escaped(look.title),
        zones,
        places.len(),
        shapes.word,
        if outside > 0 { format!("; {outside} {}s are on the small map below only", shapes.word) } else { String::new() },
        ruler.left
    );
    draw(&mut out, look, shapes, &ruler);
    let _ = writeln!(out, "</g>\n<text x=\"8\" y=\"20\" font-family=\"sans-serif\" font-size=\"15\">{}</text>", escaped(look.title));
    if outside > 0 {
        everything(&mut out, look, shapes, &ruler, below + SMALL_ROOM, (outside, places.len()));
    }
    legend(&mut out, look, zones, below + small);
    out + "</svg>\n"
}

/// Pixels of a degree of longitude and of one of latitude on the large map.
pub(crate) fn scale(shapes: &Shapes, within: f64) -> (f64, f64) {
    let places: Vec<(f64, f64)> = shapes.places.iter().flatten().copied().collect();
    let ruler = Ruler::new(view(shapes, &places, within).0, 0.0, 0.0, (WIDTH, TALLEST * WIDTH));
    (ruler.wide, ruler.tall)
}

/// What the large map shows, and how many places lie outside of it.
fn view(shapes: &Shapes, places: &[(f64, f64)], within: f64) -> (MapFrame, usize) {
    let corners = shapes.zones.iter().flatten().flat_map(|p| &p.outer).map(|c| (c.0 as f64 * shapes.unit, c.1 as f64 * shapes.unit));
    let all: Vec<(f64, f64)> = corners.chain(places.iter().copied()).collect();
    // Corners of squares are whole cells; those of other shapes are far finer than what is drawn.
    let room = (MARGIN_CELLS * shapes.unit).max(1e-9);
    let weights: Vec<f64> = shapes.weights.iter().flatten().copied().collect();
    let cut = within.clamp(0.0, MOST_CUT);
    // Far places are few, or few go there.
    let middle = MapFrame::middle(places, |_| 1.0, cut).within(MapFrame::middle(places, |i| weights[i], WEIGHED * cut));
    let whole = MapFrame::around(&all).widened(room);
    let middle = middle.grown(AROUND).widened(room).within(whole);
    let roomy = |whole: f64, middle: f64| whole <= ROOMY * middle;
    if roomy(whole.east - whole.west, middle.east - middle.west) && roomy(whole.north - whole.south, middle.north - middle.south) {
        return (whole, 0);
    }
    match places.iter().filter(|p| !middle.holds(**p)).count() {
        0 => (whole, 0),
        outside => (middle, outside),
    }
}

/// Outlines, and dots where places have no ground of their own.
fn draw(out: &mut String, look: &MapLook, shapes: &Shapes, ruler: &Ruler) {
    let count = shapes.places.iter().map(Vec::len).sum::<usize>();
    let least = if count <= FEW { LEAST.0 } else { LEAST.1 };
    let mut tiny: Vec<(usize, (f64, f64))> = Vec::new();
    for (z, polygons) in shapes.zones.iter().enumerate() {
        let (mut path, mut smallest) = (String::new(), f64::INFINITY);
        for polygon in polygons {
            match trace(&mut path, polygon, shapes.unit, ruler, least) {
                Ok(size) => smallest = smallest.min(size),
                Err(centre) => tiny.push((z, centre)),
            }
        }
        if path.is_empty() {
            continue;
        }
        // Around the hull of dots a border of the zone's own colour; between cells a white one, where they are large enough for it.
        let border = match (shapes.dots, smallest > BORDERED) {
            (true, _) => format!("fill-opacity=\"0.18\" stroke=\"{}\" stroke-width=\"1\"", look.colours[z]),
            (false, true) => "stroke=\"#fff\" stroke-width=\"0.3\"".to_owned(),
            (false, false) => String::new(),
        };
        let _ = writeln!(
            out,
            "<path d=\"{path}\" fill=\"{}\" fill-rule=\"evenodd\" {border}><title>{}</title></path>",
            look.colours[z],
            escaped(&called(z, look.names))
        );
    }
    squares(out, look, &tiny, least);
    if shapes.dots {
        dots(out, look, shapes, ruler, dot_radius(count));
    }
}

/// A dot for each place.
fn dots(out: &mut String, look: &MapLook, shapes: &Shapes, ruler: &Ruler, radius: f64) {
    let spots: Vec<(usize, (f64, f64))> =
        shapes.places.iter().enumerate().flat_map(|(z, places)| places.iter().map(move |p| (z, *p))).collect();
    let apart = spread(&spots.iter().map(|s| ruler.at(s.1)).collect::<Vec<_>>(), radius);
    for ((z, _), (x, y)) in spots.iter().zip(apart) {
        let _ = writeln!(
            out,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\" fill=\"{}\" stroke=\"#fff\" stroke-width=\"0.5\"/>",
            look.colours[*z]
        );
    }
}

/// What is too small to be seen, as squares that can be, moved apart where they would lie on each other.
fn squares(out: &mut String, look: &MapLook, tiny: &[(usize, (f64, f64))], side: f64) {
    let apart = spread(&tiny.iter().map(|t| t.1).collect::<Vec<_>>(), side / 2.0);
    for z in 0..look.colours.len() {
        let mut path = String::new();
        for (_, (x, y)) in tiny.iter().zip(&apart).filter(|((of, _), _)| *of == z) {
            let _ = write!(path, "M{:.1} {:.1}h{side}v{side}h-{side}Z", x - side / 2.0, y - side / 2.0);
        }
        if !path.is_empty() {
            let name = escaped(&called(z, look.names));
            let _ = writeln!(out, "<path d=\"{path}\" fill=\"{}\"><title>{name}</title></path>", look.colours[z]);
        }
    }
}

/// Dots of places: the fewer, the larger.
pub(crate) fn dot_radius(count: usize) -> f64 {
    (70.0 / (count.max(1) as f64).sqrt()).clamp(1.5, 6.0)
}

/// A polygon as a path; hands back its size in pixels, or where its middle is if it is too small to be seen.
fn trace(path: &mut String, polygon: &Polygon, unit: f64, ruler: &Ruler, least: f64) -> Result<f64, (f64, f64)> {
    let at = |&(x, y): &(i64, i64)| ruler.at((x as f64 * unit, y as f64 * unit));
    let (mut low, mut high) = ((f64::INFINITY, f64::INFINITY), (f64::NEG_INFINITY, f64::NEG_INFINITY));
    for (x, y) in polygon.outer.iter().map(at) {
        (low, high) = ((low.0.min(x), low.1.min(y)), (high.0.max(x), high.1.max(y)));
    }
    let (wide, tall) = (high.0 - low.0, high.1 - low.1);
    if wide < least && tall < least {
        return Err(((low.0 + high.0) / 2.0, (low.1 + high.1) / 2.0));
    }
    for ring in std::iter::once(&polygon.outer).chain(&polygon.holes) {
        for (k, (x, y)) in ring.iter().map(at).enumerate() {
            let _ = write!(path, "{}{x:.1} {y:.1}", if k == 0 { "M" } else { "L" });
        }
        path.push('Z');
    }
    Ok(wide.min(tall))
}

/// The small map: a mark for each place, a frame around what the large map shows, and what lies outside of it in words.
fn everything(out: &mut String, look: &MapLook, shapes: &Shapes, large: &Ruler, top: f64, (outside, all): (usize, usize)) {
    let places: Vec<(f64, f64)> = shapes.places.iter().flatten().copied().collect();
    let whole = MapFrame::around(&places).widened(MARGIN_CELLS * shapes.unit);
    let ruler = Ruler::new(whole, SMALL_ROOM, top, SMALL);
    let (width, height) = ruler.size();
    let _ = writeln!(
        out,
        "<g><rect x=\"{SMALL_ROOM}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"#f4f6f8\" stroke=\"#ccc\" stroke-width=\"0.5\"/>"
    );
    let half = SMALL_MARK / 2.0;
    for (z, places) in shapes.places.iter().enumerate().filter(|(_, places)| !places.is_empty()) {
        let mut path = String::new();
        for (x, y) in places.iter().map(|p| ruler.at(*p)) {
            let _ = write!(path, "M{:.1} {:.1}h{SMALL_MARK}v{SMALL_MARK}h-{SMALL_MARK}Z", x - half, y - half);
        }
        let _ = writeln!(out, "<path d=\"{path}\" fill=\"{}\"/>", look.colours[z]);
    }
    let ((x0, y0), (x1, y1)) = (ruler.at((large.frame.west, large.frame.north)), ruler.at((large.frame.east, large.frame.south)));
    let _ = writeln!(
        out,
        "<rect x=\"{x0:.1}\" y=\"{y0:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"none\" stroke=\"#333\"/>",
        (x1 - x0).max(2.0),
        (y1 - y0).max(2.0)
    );
    let words =
        [format!("{outside} of {all} {}s lie outside", shapes.word), "of the map above, which".to_owned(), "is the frame here".to_owned()];
    for (k, line) in words.iter().enumerate() {
        let (x, y) = (2.0 * SMALL_ROOM + width, top + 14.0 + 16.0 * k as f64);
        let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" font-family=\"sans-serif\" font-size=\"12\">{line}</text>");
    }
    out.push_str("</g>\n");
}

/// What a zone is called on a map: its number, and its name where it has one.
fn called(z: usize, names: &[String]) -> String {
    match names.get(z).filter(|name| !name.is_empty()) {
        Some(name) => format!("{} {name}", z + 1),
        None => format!("zone {}", z + 1),
    }
}

fn columns(names: &[String]) -> usize {
    if names.is_empty() { LEGEND_COLUMNS.0 } else { LEGEND_COLUMNS.1 }
}

fn legend_height(zones: usize, names: &[String]) -> f64 {
    LEGEND_ROW * zones.div_ceil(columns(names)) as f64 + if zones > 0 { LEGEND_GAP } else { 0.0 }
}

/// Below the map: which colour is which zone.
fn legend(out: &mut String, look: &MapLook, zones: usize, top: f64) {
    let columns = columns(look.names);
    for z in 0..zones {
        let x = 8.0 + (z % columns) as f64 * (WIDTH - 16.0) / columns as f64;
        let y = top + LEGEND_GAP + LEGEND_ROW * (z / columns) as f64;
        let name = called(z, look.names);
        let short = match name.chars().count() > LEGEND_LETTERS {
            true => name.chars().take(LEGEND_LETTERS - 1).chain(['…']).collect(),
            false => name,
        };
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"11\" height=\"11\" fill=\"{}\"/><text x=\"{:.1}\" y=\"{:.1}\" font-family=\"sans-serif\" font-size=\"12\">{}</text>",
            look.colours[z],
            x + 15.0,
            y + 10.0,
            escaped(&short)
        );
    }
}

#[cfg(test)]
mod tests {
    use metastate::workspace::polygons::outline;

    use super::*;

    fn look<'a>(title: &'a str, colours: &'a [String], names: &'a [String]) -> MapLook<'a> {
        MapLook { title, colours, names, within: 0.025 }
    }

    fn squares_of(cells: &[Vec<(i64, i64)>]) -> Shapes {
        let centre = |&(x, y): &(i64, i64)| ((x as f64 + 0.5) * 0.001, (y as f64 + 0.5) * 0.001);
        Shapes {
            zones: cells.iter().map(|zone| outline(zone.iter().copied())).collect(),
            unit: 0.001,
            places: cells.iter().map(|zone| zone.iter().map(centre).collect()).collect(),
            weights: cells.iter().map(|zone| vec![1.0; zone.len()]).collect(),
            dots: false,
            word: "cell",
        }
    }

    #[test]
    fn pictures_are_well_formed_and_escape_their_words() {
        let colours = ["#000001".to_owned(), "#000002".to_owned()];
        let shapes = squares_of(&[vec![(0, 0), (1, 0)], vec![(0, 1)]]);
        let map = zone_map(&look("a < b & \"c\"", &colours, &[]), &shapes);
        assert_eq!(map.matches("<path ").count(), 2);
        assert!(map.contains("<desc>Map, north is up: 2 zones of 3 cells") && map.contains(">zone 2</text>"), "{map}");
        assert!(map.contains("a &lt; b &amp; &quot;c&quot;") && map.ends_with("</svg>\n"));
        let names = ["<Old> Town".to_owned(), String::new()];
        let named = zone_map(&look("t", &colours, &names), &shapes);
        assert!(named.contains(">1 &lt;Old&gt; Town</text>") && named.contains(">zone 2</text>"), "{named}");
        assert!(zone_map(&look("empty", &[], &[]), &squares_of(&[])).ends_with("</svg>\n"));
    }

    #[test]
    fn a_compact_city_is_shown_whole_and_far_cells_have_a_small_map() {
        let colours = ["#000001".to_owned()];
        let city: Vec<(i64, i64)> = (0..900).map(|k| (k % 30, k / 30)).collect();
        let whole = zone_map(&look("city", &colours, &[]), &squares_of(std::slice::from_ref(&city)));
        assert!(!whole.contains("lie outside") && !whole.contains("small map"));
        let far: Vec<(i64, i64)> = city.into_iter().chain((0..7).map(|k| (900 + 2 * k, 600))).collect();
        let map = zone_map(&look("city", &colours, &[]), &squares_of(&[far]));
        assert!(map.contains(">7 of 907 cells lie outside</text>"), "{map}");
        // One mark each on the small map, the far ones included.
        assert_eq!(map.matches("h1.8v1.8h-1.8Z").count(), 907);
    }

    #[test]
    fn far_cells_may_be_many_where_few_go_there() {
        let colours = ["#000001".to_owned()];
        let city = (0..900).map(|k| (k % 30, k / 30));
        let mut shapes = squares_of(&[city.chain((0..600).map(|k| (500 + (k * 37) % 900, 400 + (k * 61) % 800))).collect()]);
        shapes.weights[0][900..].fill(0.01);
        assert!(zone_map(&look("city", &colours, &[]), &shapes).contains(">600 of 1500 cells lie outside</text>"));
    }

    #[test]
    fn what_is_smaller_than_a_pixel_is_seen() {
        // Forty airports on a continent, in cells of a hundred metres.
        let cells: Vec<(i64, i64)> = (0..40).map(|k| (-120_000 + 1_300 * k, 30_000 + (k * 7919) % 18_000)).collect();
        let colours = ["#000001".to_owned()];
        let map = zone_map(&look("airports", &colours, &[]), &squares_of(&[cells]));
        assert_eq!(map.matches("h3v3h-3Z").count(), 40, "{map}");
        assert!(!map.contains("stroke-width=\"0.3\""), "a white border would hide them");
    }

    #[test]
    fn dots_on_one_spot_are_moved_apart() {
        let shapes = Shapes {
            zones: vec![Vec::new(); 2],
            unit: 1e-7,
            places: vec![vec![(8.0, 50.0), (8.0, 50.0)], vec![(8.0, 50.0), (9.0, 51.0)]],
            weights: vec![vec![0.25; 2]; 2],
            dots: true,
            word: "place",
        };
        let colours = ["#000001".to_owned(), "#000002".to_owned()];
        let map = zone_map(&look("stations", &colours, &[]), &shapes);
        let mut dots: Vec<&str> = map.lines().filter(|l| l.starts_with("<circle")).map(|l| &l[..l.find(" r=").unwrap()]).collect();
        assert_eq!(dots.len(), 4);
        dots.sort_unstable();
        dots.dedup();
        assert_eq!(dots.len(), 4, "{map}");
    }
}
