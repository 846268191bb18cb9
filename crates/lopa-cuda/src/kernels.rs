//! The kernels, compressed: as plain text they would make the program megabytes larger.

use std::io::Read;

use flate2::read::GzDecoder;

/// The kernels for any card.
pub fn ptx() -> String {
    text(include_bytes!("../kernels/lopa.ptx.gz"))
}

/// The kernels of small shapes for Hopper cards, which the driver need not translate.
pub fn tensor() -> Vec<u8> {
    code(include_bytes!("../kernels/tensor.cubin.gz")).1
}

/// The kernels of any shape for Hopper cards.
pub fn general() -> Vec<u8> {
    code(include_bytes!("../kernels/general.cubin.gz")).1
}

/// Those of small shapes, before they were translated, with the line that names them; for tests.
pub fn tensor_ptx() -> (String, String) {
    let named = code(include_bytes!("../kernels/tensor.cubin.gz")).0;
    (text(include_bytes!("../kernels/tensor.ptx.gz")), named)
}

/// Those of any shape; for tests.
pub fn general_ptx() -> (String, String) {
    let named = code(include_bytes!("../kernels/general.cubin.gz")).0;
    (text(include_bytes!("../kernels/general.ptx.gz")), named)
}

/// A number that other kernels hardly have: of their checksums.
pub fn mark() -> u32 {
    let packed: [&[u8]; 3] = [
        include_bytes!("../kernels/lopa.ptx.gz"),
        include_bytes!("../kernels/tensor.ptx.gz"),
        include_bytes!("../kernels/general.ptx.gz"),
    ];
    // The checksum of a packed file is in the first four of its last eight bytes.
    let of = |packed: &[u8]| {
        packed.last_chunk::<8>().map_or(0, |[a, b, c, d, ..]| u32::from_le_bytes([*a, *b, *c, *d]))
    };
    packed.into_iter().fold(0, |mark: u32, packed| mark.rotate_left(1) ^ of(packed))
}

/// The text without the kernels that are not named: the driver translates all that it is given.
pub fn only(ptx: &str, names: &[String]) -> String {
    let mut kept = String::with_capacity(ptx.len());
    // Of a kernel: whether it is kept, and how many braces are open; before the first, none are.
    let mut kernel: Option<(bool, Option<i64>)> = None;
    for line in ptx.split_inclusive('\n') {
        if let Some(entry) = line.strip_prefix(".visible .entry ") {
            let name = entry.split('(').next().unwrap_or_default();
            kernel = Some((names.iter().any(|wanted| wanted == name), None));
        }
        let Some((wanted, open)) = &mut kernel else {
            kept.push_str(line);
            continue;
        };
        if *wanted {
            kept.push_str(line);
        }
        let count = |brace: char| line.matches(brace).count() as i64;
        if open.is_some() || line.contains('{') {
            let still = open.unwrap_or(0) + count('{') - count('}');
            *open = Some(still);
            if still == 0 {
                kernel = None;
            }
        }
    }
    kept
}

fn text(packed: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(packed).read_to_string(&mut text).expect("kernels are packed by kernels/make");
    text
}

/// The first line, which names what the code was made from, and the code.
fn code(packed: &[u8]) -> (String, Vec<u8>) {
    let mut all = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut all).expect("kernels are packed by kernels/make");
    let end = all.iter().position(|&byte| byte == b'\n').unwrap_or(0);
    let code = all.split_off(end + 1);
    (String::from_utf8_lossy(&all[..end]).into_owned(), code)
}

#[cfg(test)]
mod tests {
    use super::{general_ptx, only, ptx, tensor_ptx};

    /// Every kernel can be had alone, and all of them are the whole text.
    #[test]
    fn kernels_are_taken_by_name() {
        for all in [ptx(), tensor_ptx().0, general_ptx().0] {
            let entries = all.lines().filter_map(|line| line.strip_prefix(".visible .entry "));
            let names: Vec<String> =
                entries.map(|entry| entry.split('(').next().unwrap().to_string()).collect();
            assert!(names.len() > 8);
            assert_eq!(only(&all, &names), all);
            let none = only(&all, &[]);
            assert!(none.contains(".target") && !none.contains(".entry"));
            for name in &names {
                let one = only(&all, std::slice::from_ref(name));
                assert_eq!(one.matches(".entry").count(), 1);
                assert_eq!(one.matches('{').count(), one.matches('}').count());
                // Nothing of other kernels remains.
                assert_eq!(one.matches("ret;").count(), none.matches("ret;").count() + 1);
                assert!(one.contains(&format!(".visible .entry {name}(")));
                // What every kernel calls is kept.
                assert_eq!(one.matches(".func").count(), none.matches(".func").count());
            }
        }
    }
}
