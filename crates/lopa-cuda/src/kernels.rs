//! The kernels, compressed: as plain text they would make the program megabytes larger.

use std::io::Read;
use std::sync::LazyLock;

use lzma_rust2::LzmaReader;

const ANY: &[u8] = include_bytes!("../kernels/lopa.ptx.lzma");
const LAYERS: &[u8] = include_bytes!("../kernels/layers.ptx.lzma");
const HOPPER: &[u8] = include_bytes!("../kernels/hopper.cubin.lzma");
const TENSOR: &[u8] = include_bytes!("../kernels/tensor.cubin.lzma");
const GENERAL: &[u8] = include_bytes!("../kernels/general.cubin.lzma");

/// The kernels for any card.
pub fn ptx() -> String {
    text(ANY)
}

/// The kernels of any model for tensor cores of any card; `terms` is the number of halves of each number.
pub fn layers(terms: u32) -> String {
    with_terms(&text(LAYERS), terms)
}

/// The same for those of Hopper cards, which the driver need not translate.
pub fn hopper(terms: u32) -> Vec<u8> {
    code(HOPPER, terms as usize - 1)
}

/// The kernels of small shapes for Hopper cards.
pub fn tensor() -> Vec<u8> {
    code(TENSOR, 0)
}

/// The kernels of one hidden layer for Hopper cards.
pub fn general() -> Vec<u8> {
    code(GENERAL, 0)
}

/// A number that differs for other kernels, but for a coincidence.
pub fn mark() -> u32 {
    // FNV-1a.
    static MARK: LazyLock<u32> = LazyLock::new(|| {
        let all = [ANY, LAYERS, HOPPER, TENSOR, GENERAL].into_iter().flatten();
        all.fold(0x811C_9DC5, |mark, &byte| (mark ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    });
    *MARK
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

fn with_terms(ptx: &str, terms: u32) -> String {
    ptx.replace("TERMS", &terms.to_string())
}

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    let read = LzmaReader::new_mem_limit(packed, u32::MAX, None)
        .map(|mut from| from.read_to_end(&mut all));
    assert!(matches!(read, Ok(Ok(_))), "kernels are packed by kernels/make");
    all
}

fn text(packed: &[u8]) -> String {
    String::from_utf8(unpacked(packed)).expect("PTX is text")
}

/// Piece `at` of the code after the first line, which names what the code was made from, and the sizes of its pieces.
fn code(packed: &[u8], at: usize) -> Vec<u8> {
    let mut all = unpacked(packed);
    let sizes: Vec<usize> = first_line(&all).1.split_whitespace().flat_map(str::parse).collect();
    let rest: usize = sizes[at..].iter().sum();
    let mut code = all.split_off(all.len() - rest);
    code.truncate(sizes[at]);
    code
}

/// What the code was made from, and the sizes of its pieces.
fn first_line(code: &[u8]) -> (&str, &str) {
    let line = code.split(|&byte| byte == b'\n').next().and_then(|line| str::from_utf8(line).ok());
    line.and_then(|line| line.split_once("; bytes:")).expect("kernels/make writes it")
}

#[cfg(test)]
pub mod tests {
    use sha2::{Digest, Sha256};

    use super::{
        GENERAL, HOPPER, TENSOR, code, first_line, layers, only, ptx, text, unpacked, with_terms,
    };

    /// The kernels of small shapes, before they were translated.
    pub fn tensor_ptx() -> String {
        text(include_bytes!("../kernels/tensor.ptx.lzma"))
    }

    /// Those of any model.
    pub fn hopper_ptx(terms: u32) -> String {
        with_terms(&text(include_bytes!("../kernels/hopper.ptx.lzma")), terms)
    }

    /// Those of one hidden layer.
    pub fn general_ptx() -> String {
        text(include_bytes!("../kernels/general.ptx.lzma"))
    }

    /// The first line names what the rest was made from.
    fn check(first: &str, names: &str, sources: &[&[u8]]) {
        let hash = Sha256::digest(sources.concat());
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(first, format!("// of {names}, SHA-256 {hash}"), "run kernels/make");
    }

    #[test]
    fn kernels_are_made_from_the_source() {
        let common: &[u8] = include_bytes!("../kernels/common.cuh");
        let instructions: &[u8] = include_bytes!("../kernels/instructions.cuh");
        let cores: &[u8] = include_bytes!("../kernels/cores.cuh");
        let steps: &[u8] = include_bytes!("../kernels/steps.cuh");
        let warpgroups: &[u8] = include_bytes!("../kernels/warpgroups.cuh");
        let job: &[u8] = include_bytes!("../kernels/job.cuh");
        let moves: &[u8] = include_bytes!("../kernels/move.cuh");
        let losses: &[u8] = include_bytes!("../kernels/losses.cuh");
        let crossed: &[u8] = include_bytes!("../kernels/crossed.cuh");
        let of_cores: [&[u8]; 8] = [
            include_bytes!("../kernels/layers.cu"),
            common,
            instructions,
            job,
            moves,
            losses,
            crossed,
            steps,
        ];
        let any: [&[u8]; 10] = [
            include_bytes!("../kernels/lopa.cu"),
            common,
            job,
            moves,
            losses,
            crossed,
            include_bytes!("../kernels/layer.cuh"),
            include_bytes!("../kernels/linear.cuh"),
            include_bytes!("../kernels/quadratic.cuh"),
            steps,
        ];
        let tensor: [&[u8]; 7] = [
            include_bytes!("../kernels/tensor.cu"),
            common,
            instructions,
            warpgroups,
            cores,
            include_bytes!("../kernels/tensor.cuh"),
            include_bytes!("../kernels/cluster.cuh"),
        ];
        let general: [&[u8]; 6] = [
            include_bytes!("../kernels/general.cu"),
            common,
            instructions,
            warpgroups,
            cores,
            steps,
        ];
        let of_any = "lopa.cu common.cuh job.cuh move.cuh losses.cuh crossed.cuh layer.cuh \
                      linear.cuh quadratic.cuh steps.cuh";
        let of_tensor = "tensor.cu common.cuh instructions.cuh warpgroups.cuh cores.cuh \
                         tensor.cuh cluster.cuh";
        let of_general =
            "general.cu common.cuh instructions.cuh warpgroups.cuh cores.cuh steps.cuh";
        let of_layers = "layers.cu common.cuh instructions.cuh job.cuh move.cuh losses.cuh crossed.cuh steps.cuh";
        let of_hopper = "layers.cu common.cuh instructions.cuh job.cuh move.cuh losses.cuh \
                         crossed.cuh steps.cuh warpgroups.cuh";
        let all: [(String, &str, &[&[u8]]); 5] = [
            (ptx(), of_any, &any),
            (layers(2), of_layers, &of_cores),
            (hopper_ptx(2), of_hopper, &[&of_cores[..], &[warpgroups]].concat()),
            (tensor_ptx(), of_tensor, &tensor),
            (general_ptx(), of_general, &general),
        ];
        for (ptx, names, sources) in all {
            check(ptx.lines().next().unwrap(), names, sources);
        }
        let hopper = text(include_bytes!("../kernels/hopper.ptx.lzma"));
        let made = [
            (HOPPER, "hopper.ptx", hopper),
            (TENSOR, "tensor.ptx", tensor_ptx()),
            (GENERAL, "general.ptx", general_ptx()),
        ];
        for (packed, name, from) in made {
            check(first_line(&unpacked(packed)).0, name, &[from.as_bytes()]);
        }
    }

    /// Each piece of code is a whole file, of its own count of halves.
    #[test]
    fn code_has_its_pieces() {
        let names =
            |code: &[u8], name: &str| code.windows(name.len()).any(|at| at == name.as_bytes());
        for terms in [1, 2] {
            let code = super::hopper(terms);
            assert!(code.starts_with(b"\x7fELF"));
            assert!(
                [1, 2].map(|of| names(&code, &format!("halves_{of}"))) == [terms == 1, terms == 2]
            );
        }
        assert!([TENSOR, GENERAL].iter().all(|packed| code(packed, 0).starts_with(b"\x7fELF")));
    }

    /// Every kernel can be had alone, and all of them are the whole text.
    #[test]
    fn kernels_are_taken_by_name() {
        for all in [ptx(), layers(1), hopper_ptx(1), tensor_ptx(), general_ptx()] {
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
