//! The kernels themselves without a card: compiled for the processor, and launched by a driver that runs them there
//! (tests/processor).

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use super::{agree, methods, processes, shapes, steps};

const PLAIN: &str = include_str!("../../kernels/lopa.cu");
const LAYERS: &str = include_str!("../../kernels/layers.cu");

const HEADERS: [(&str, &str); 11] = [
    ("common.cuh", include_str!("../../kernels/common.cuh")),
    ("crossed.cuh", include_str!("../../kernels/crossed.cuh")),
    ("instructions.cuh", include_str!("../../kernels/instructions.cuh")),
    ("job.cuh", include_str!("../../kernels/job.cuh")),
    ("layer.cuh", include_str!("../../kernels/layer.cuh")),
    ("linear.cuh", include_str!("../../kernels/linear.cuh")),
    ("losses.cuh", include_str!("../../kernels/losses.cuh")),
    ("move.cuh", include_str!("../../kernels/move.cuh")),
    ("quadratic.cuh", include_str!("../../kernels/quadratic.cuh")),
    ("steps.cuh", include_str!("../../kernels/steps.cuh")),
    ("warpgroups.cuh", include_str!("../../kernels/warpgroups.cuh")),
];

/// What has to be written in another way for the processor.
const REPLACED: [(&str, &str); 7] = [
    ("extern __shared__ __align__(16) u8 room[];", ""),
    ("extern __shared__ __align__(1024) u8 room[];", ""),
    ("__grid_constant__ ", ""),
    ("<cuda_fp16.h>", "\"cuda.h\""),
    ("asm(\"mov.u32 %0, %%dynamic_smem_size;\" : \"=r\"(bytes));", "bytes = room_bytes;"),
    (
        "asm(\"mul.wide.u32 %0, %1, %2;\" : \"=l\"(first) : \"r\"(row), \"r\"(job.stride * u32(sizeof(S))));",
        "first = usize(row) * (job.stride * u32(sizeof(S)));",
    ),
    // Launches are in order.
    (
        "asm volatile(\"griddepcontrol.wait;\\ngriddepcontrol.launch_dependents;\\n\" ::: \"memory\");",
        "",
    ),
];

/// A card gives each thread a copy of these parameters; here threads share them.
const PARAMETERS: [&str; 6] = ["Product", "Job", "Sums", "Spans", "Finding", "Sizes"];

/// Between these two, instructions.cuh has instructions of the card, for which cuda.h has functions.
const INSTRUCTIONS: [&str; 2] =
    ["__device__ __forceinline__ u32 shared(", "// The activation of z, from"];

/// warpgroups.cuh has instructions before the first of these and from the second on.
const TOGETHER: [&str; 2] = ["// A second factor in shared memory.", "// d[64 x n] +="];

const BEFORE_TOGETHER: &str = r#"#pragma once
#include "common.cuh"
inline void async_fence() {}
inline void begin_products() {}
inline void end_products() {}
template <int N> void multiplied() {}
inline void written(u32 (&)[4]) {}
"#;

const AFTER_TOGETHER: &str = r#"template <bool DOWN, int HALF> void product(float (&d)[HALF], const u32 (&a)[4], u64 b) {
    multiply_together(d, 2 * HALF, a, b, DOWN);
}
"#;

fn translated(source: &str) -> String {
    let mut text = source.to_string();
    for (from, to) in REPLACED {
        text = text.replace(from, to);
    }
    for name in PARAMETERS {
        for of in ["", "<float>", "<T>"] {
            let [from, to] = ["", "&"].map(|by| format!("const {name}{of} {by}job, u32"));
            text = text.replace(&from, &to);
        }
    }
    text
}

/// Whether kernels cannot run on this processor; says why.
fn skipped() -> bool {
    let why = if cfg!(not(all(target_arch = "x86_64", target_os = "linux"))) {
        "kernels run on the processor of Linux on x86-64 alone"
    } else if Command::new("c++").arg("--version").output().is_err() {
        "no C++ compiler"
    } else {
        return false;
    };
    eprintln!("skipped: {why}");
    true
}

/// Begins to compile a file of tests/processor, with what is in `folder`, to a file beside it.
fn compile(name: &str, folder: &Path, to: &str, options: &[&str]) -> Child {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/processor");
    let always = "-std=c++20 -O2 -ffp-contract=off -fno-strict-aliasing -fPIC -w";
    let mut command = Command::new("c++");
    command.args(always.split(' ')).args(options).arg("-I").arg(&here).arg("-I").arg(folder);
    command.arg(here.join(name)).arg("-o").arg(folder.with_file_name(to)).arg("-ldl");
    command.spawn().expect("a compiler")
}

/// Compiles the driver and the kernels, once for each number of halves, into a folder of this name; the card is a Hopper card if that
/// is its name. Returns none without a compiler.
fn build(name: &str, source: &str, halves: &[u32]) -> Option<PathBuf> {
    let hopper = name == "hopper";
    if skipped() {
        return None;
    }
    let texts: Vec<String> = HEADERS.iter().map(|(_, text)| translated(text)).collect();
    let whole = [&[PLAIN, LAYERS], &HEADERS.map(|(_, text)| text)[..]].concat().concat();
    for (from, _) in REPLACED {
        assert!(whole.contains(from), "the kernels have no `{from}` any more");
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("processor").join(name);
    let mut compilers = Vec::new();
    let all = if halves.is_empty() { &[0] } else { halves };
    for halves in all {
        let library = if *halves == 0 { name.to_string() } else { format!("layers{halves}") };
        let own = folder.join(&library);
        std::fs::create_dir_all(&own).expect("a folder");
        std::fs::write(own.join("source.cu"), translated(source)).expect("a file");
        for ((name, _), text) in HEADERS.iter().zip(&texts) {
            let mut text = text.clone();
            if *name == "instructions.cuh" {
                let [start, end] = INSTRUCTIONS.map(|part| text.find(part).expect(part));
                let own = format!(
                    "inline u32 found(const u32 *list, usize at) {{ return list ? list[at] : u32(at); }}\n\
                     inline u32 halves() {{ return {halves}; }}\n\n"
                );
                text.replace_range(start..end, &own);
            }
            if *name == "warpgroups.cuh" {
                let [start, end] = TOGETHER.map(|part| text.find(part).expect(part));
                text = [BEFORE_TOGETHER, &text[start..end], AFTER_TOGETHER].concat();
            }
            std::fs::write(own.join(name), text).expect("a file");
        }
        let options: &[&str] = match (*halves, hopper) {
            (0, _) => &["-shared"],
            (_, false) => &["-shared", "-DWITH_PRODUCTS"],
            (_, true) => &["-shared", "-DWITH_PRODUCTS", "-D__CUDA_ARCH_FEAT_SM90_ALL"],
        };
        compilers.push(compile("kernels.cpp", &own, &format!("{library}.so"), options));
    }
    let capability = if hopper { "-DCAPABILITY=9" } else { "-DCAPABILITY=8" };
    let options = ["-shared", capability];
    compilers.push(compile("driver.cpp", &folder.join("own"), "libcuda.so.1", &options));
    for mut compiler in compilers {
        assert!(compiler.wait().expect("a compiler").success(), "the kernels do not compile");
    }
    Some(folder)
}

/// Runs one of the tests below in a process that finds the driver of this folder.
fn start(folder: Option<PathBuf>, test: &str) {
    let Some(folder) = folder else { return };
    let status = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", &format!("processor::{test}"), "--ignored", "--nocapture"])
        .env("LD_LIBRARY_PATH", folder)
        .status();
    assert!(status.expect("this program").success());
}

/// A warp whose lanes wait for each other at different places never ends on a card.
#[test]
fn lanes_that_wait_at_different_places_are_noticed() {
    if skipped() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("processor/torn/own");
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut compiler = compile("torn.cpp", &folder, "torn", &["-pie"]);
    assert!(compiler.wait().expect("a compiler").success());
    let program = || Command::new(folder.with_file_name("torn"));
    assert!(program().status().expect("the program").success());
    let torn = program().arg("torn").output().expect("the program");
    let said = String::from_utf8_lossy(&torn.stderr);
    assert!(!torn.status.success() && said.contains("wait for each other"), "{said}");
}

fn check() {
    let name = lopa_cuda::describe(0).expect("a driver");
    assert!(name.starts_with("the processor"), "{name}");
}

#[test]
fn kernels_of_any_model_agree_with_the_processor_without_a_card() {
    start(build("layers", LAYERS, &[1, 2]), "layers");
}

#[test]
#[ignore = "needs a driver that the test above makes"]
fn layers() {
    check();
    agree::layers();
    methods::layers();
    steps::layers();
    processes::layers();
    shapes::layers(200);
}

#[test]
fn kernels_of_any_model_for_hopper_cards_agree_with_the_processor_without_a_card() {
    start(build("hopper", LAYERS, &[1, 2]), "hopper");
}

#[test]
#[ignore = "needs a driver that the test above makes"]
fn hopper() {
    check();
    agree::layers();
    shapes::layers(30);
}

#[test]
fn plain_kernels_have_the_bits_of_their_emulation_without_a_card() {
    start(build("lopa", PLAIN, &[]), "plain");
}

#[test]
#[ignore = "needs a driver that the test above makes"]
fn plain() {
    check();
    shapes::plain();
}
