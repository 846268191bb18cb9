//! Pixels from SVG.

use std::sync::Arc;

use lopa::error::{Error, Result};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

// The only fonts in use: what the machine has installed must not change a picture.
const FONTS: [&[u8]; 2] =
    [include_bytes!("../assets/Inter-Regular.otf"), include_bytes!("../assets/Inter-SemiBold.otf")];

/// A drawing as PNG, with `scale` pixels to a unit of the drawing.
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>> {
    let failed = |what: String| Error::storage("storage/picture", what);
    let mut fonts = Database::new();
    FONTS.iter().for_each(|font| fonts.load_font_data(font.to_vec()));
    fonts.set_sans_serif_family("Inter");
    let options = Options { fontdb: Arc::new(fonts), ..Options::default() };
    let tree = Tree::from_str(svg, &options)
        .map_err(|error| failed(format!("the drawing is not SVG: {error}")))?;
    let size = tree.size();
    let [width, height] = [size.width(), size.height()].map(|side| (side * scale).ceil() as u32);
    let mut pixels = Pixmap::new(width, height)
        .ok_or_else(|| failed(format!("{width} x {height} pixels are too many")))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| failed(format!("cannot write PNG: {error}")))
}
