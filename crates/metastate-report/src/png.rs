//! Plots as PNG, for those who cannot use SVG: drawn by resvg with the fonts of the machine.

use std::path::Path;
use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use crate::error::{Error, Result, damaged};

/// No picture of a result is wider or higher than this.
const LARGEST: f32 = 3_000.0;
/// Pixels for each unit of the drawing: sharp at the width of a printed column.
const SCALE: f32 = 3.0;
/// Looked for in this order; they have every sign that the plots use.
const FAMILIES: [&str; 6] = ["DejaVu Sans", "Liberation Sans", "Noto Sans", "Open Sans", "Arial", "Helvetica"];

/// Draws plots; the fonts are looked up once.
#[derive(Debug)]
pub struct Painter {
    options: Options<'static>,
}

impl Painter {
    /// Fails where the machine has no font: a plot without its numbers would look right and say nothing.
    pub fn new() -> Result<Self> {
        let mut fonts = fontdb::Database::new();
        fonts.load_system_fonts();
        let has = |name: &str| fonts.faces().any(|face| face.families.iter().any(|(family, _)| family == name));
        let wanted = FAMILIES.iter().find(|name| has(name)).map(|name| (*name).to_owned());
        let any = || fonts.faces().find_map(|face| face.families.first().map(|(family, _)| family.clone()));
        let family = wanted.or_else(any).ok_or(Error::NoFont)?;
        fonts.set_sans_serif_family(family.clone());
        let mut options = Options { fontdb: Arc::new(fonts), font_family: family, ..Options::default() };
        // A picture of a stranger's folder must not show other files of this machine.
        options.image_href_resolver.resolve_string = Box::new(|_, _| None);
        Ok(Painter { options })
    }

    /// The picture as PNG; `name` is for the error.
    pub fn png(&self, name: &Path, svg: &str) -> Result<Vec<u8>> {
        let tree = Tree::from_str(svg, &self.options).map_err(|e| damaged(name, format!("cannot be drawn ({e})")))?;
        let size = tree.size();
        if size.width().max(size.height()) > LARGEST {
            return Err(damaged(name, format!("is {} x {}, larger than any picture of a result", size.width(), size.height())));
        }
        let mut picture = Pixmap::new((SCALE * size.width()).ceil() as u32, (SCALE * size.height()).ceil() as u32)
            .ok_or_else(|| damaged(name, "has no size"))?;
        resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut picture.as_mut());
        picture.encode_png().map_err(|e| damaged(name, format!("cannot be written as PNG ({e})")))
    }
}
