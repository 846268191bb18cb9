//! PNG from SVG. Needs the feature `png`.

use lopa::error::{Error, Result};

/// Renders a drawing as PNG, with `scale` pixels per unit of the drawing.
#[cfg(feature = "png")]
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>> {
    use resvg::tiny_skia::{Pixmap, Transform};

    let failed = |what: String| Error::storage("storage/picture", what);
    let tree = tree(svg)?;
    let size = tree.size();
    let [width, height] = [size.width(), size.height()].map(|side| (side * scale).ceil() as u32);
    let mut pixels = Pixmap::new(width, height)
        .ok_or_else(|| failed(format!("{width} x {height} pixels are too many")))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| failed(format!("cannot write PNG: {error}")))
}

/// A drawing as shapes: text becomes the outlines of its letters.
#[cfg(feature = "png")]
pub(crate) fn tree(svg: &str) -> Result<resvg::usvg::Tree> {
    use std::sync::Arc;

    use resvg::usvg::fontdb::Database;
    use resvg::usvg::{Options, Tree};

    // No other fonts: those installed on a machine must not change a picture.
    const FONTS: [&[u8]; 2] = [
        include_bytes!("../assets/Inter-Regular.otf"),
        include_bytes!("../assets/Inter-SemiBold.otf"),
    ];
    let mut fonts = Database::new();
    FONTS.iter().for_each(|font| fonts.load_font_data(font.to_vec()));
    // The bold font declares its own family name, by which no drawing refers to it.
    for mut face in fonts.faces().cloned().collect::<Vec<_>>() {
        fonts.remove_face(face.id);
        face.families.iter_mut().for_each(|(name, _)| *name = "Inter".into());
        fonts.push_face_info(face);
    }
    fonts.set_sans_serif_family("Inter");
    let options = Options { fontdb: Arc::new(fonts), ..Options::default() };
    Tree::from_str(svg, &options).map_err(|error| {
        Error::storage("storage/picture", format!("the drawing is not SVG: {error}"))
    })
}

/// Fails: this build cannot render PNG.
#[cfg(not(feature = "png"))]
pub fn png(_svg: &str, _scale: f32) -> Result<Vec<u8>> {
    Err(unsupported())
}

/// Fails unless this build can render PNG.
pub fn check() -> Result<()> {
    if cfg!(feature = "png") { Ok(()) } else { Err(unsupported()) }
}

fn unsupported() -> Error {
    Error::config("config/no-png", "this build cannot render PNG or PDF").hint(
        "install one that can with `cargo install --path crates/lopa-cli --features png`, or ask \
         for SVG",
    )
}

#[cfg(test)]
mod tests {
    use lopa::error::Kind;

    use super::*;

    #[test]
    fn the_error_names_both_remedies() {
        let error = unsupported();
        assert_eq!((error.kind, error.id), (Kind::Config, "config/no-png"));
        assert!(error.message.contains("this build cannot render PNG"));
        let hint = error.hint.unwrap();
        assert!(hint.contains("`cargo install --path crates/lopa-cli --features png`"), "{hint}");
        assert!(hint.contains("ask for SVG"), "{hint}");
    }

    #[cfg(not(feature = "png"))]
    #[test]
    fn without_the_feature_nothing_is_rendered() {
        assert_eq!(png("<svg/>", 1.0).unwrap_err().id, "config/no-png");
        assert_eq!(check().unwrap_err().id, "config/no-png");
    }

    #[cfg(feature = "png")]
    #[test]
    fn a_drawing_becomes_pixels() {
        check().unwrap();
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"2\" height=\"3\"/>";
        assert!(png(svg, 2.0).unwrap().starts_with(b"\x89PNG"));
        assert_eq!(png("no SVG", 1.0).unwrap_err().id, "storage/picture");
    }

    #[cfg(feature = "png")]
    #[test]
    fn bold_text_is_bold() {
        let text = |weight: &str| {
            let svg = format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"80\" height=\"20\" \
                 font-family=\"Inter, sans-serif\"><text x=\"2\" y=\"15\" {weight}>Loss</text></svg>"
            );
            png(&svg, 2.0).unwrap()
        };
        let nothing =
            png("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"80\" height=\"20\"/>", 2.0);
        let (bold, regular) = (text("font-weight=\"600\""), text(""));
        assert_ne!(bold, nothing.unwrap());
        assert_ne!(bold, regular);
    }
}
