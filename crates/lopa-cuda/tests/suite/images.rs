//! Generated images in the shape and file format of MNIST, so that tests do not need the real
//! files.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use lopa::math::random::{Purpose, Stream};
use tempfile::TempDir;

/// A folder with them, made once.
pub fn folder() -> PathBuf {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    FOLDER.get_or_init(made).path().to_path_buf()
}

fn made() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("mnist");
    std::fs::create_dir(&to).unwrap();
    write(&to, "train", 300, 1);
    write(&to, "t10k", 60, 2);
    folder
}

/// Blots whose position determines the class.
fn write(to: &Path, name: &str, rows: u32, seed: u64) {
    let stream = &mut Stream::new(seed, Purpose::Data, 0);
    let (mut images, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let class = stream.below(10);
        labels.push(class as u8);
        for q in 0..784 {
            let near = (q / 28 / 3_usize).abs_diff(class) < 2 && stream.below(3) > 0;
            images.push(if near || stream.below(9) == 0 { stream.below(256) as u8 } else { 0 });
        }
    }
    let file = |kind: &str, sizes: &[u32], bytes: &[u8]| {
        let sizes = sizes.iter().flat_map(|size| size.to_be_bytes());
        let dims = kind.as_bytes()[kind.len() - 1] - b'0';
        let whole: Vec<u8> =
            [0, 0, 8, dims].into_iter().chain(sizes).chain(bytes.to_vec()).collect();
        std::fs::write(to.join(format!("{name}-{kind}-ubyte")), whole).unwrap();
    };
    file("images-idx3", &[rows, 28, 28], &images);
    file("labels-idx1", &[rows], &labels);
}
