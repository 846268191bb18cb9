//! The kernels of kernels/layers.cu themselves, without a card: compiled for the processor, and launched by a driver that runs
//! them there (tests/processor).

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{methods, processes, shapes, steps};

const SOURCES: [(&str, &str); 7] = [
    ("source.cu", include_str!("../../kernels/layers.cu")),
    ("common.cuh", include_str!("../../kernels/common.cuh")),
    ("instructions.cuh", include_str!("../../kernels/instructions.cuh")),
    ("job.cuh", include_str!("../../kernels/job.cuh")),
    ("losses.cuh", include_str!("../../kernels/losses.cuh")),
    ("move.cuh", include_str!("../../kernels/move.cuh")),
    ("steps.cuh", include_str!("../../kernels/steps.cuh")),
];

/// What is said in another way on the processor: instructions of the card, and parameters that are copied to each thread.
const REPLACED: [(&str, &str); 10] = [
    ("extern __shared__ __align__(16) u8 room[];", ""),
    ("__grid_constant__ ", ""),
    ("const Product job, u32", "const Product &job, u32"),
    ("const Job<float> job, u32", "const Job<float> &job, u32"),
    ("const Sums<float> job, u32", "const Sums<float> &job, u32"),
    ("const Spans<float> job, u32", "const Spans<float> &job, u32"),
    ("const Finding<float> job, u32", "const Finding<float> &job, u32"),
    ("const Sizes<float> job, u32", "const Sizes<float> &job, u32"),
    ("asm(\"mov.u32 %0, %%dynamic_smem_size;\" : \"=r\"(bytes));", "bytes = room_bytes;"),
    (
        "asm(\"mul.wide.u32 %0, %1, %2;\" : \"=l\"(first) : \"r\"(row), \"r\"(job.stride * u32(sizeof(S))));",
        "first = usize(row) * (job.stride * u32(sizeof(S)));",
    ),
];

/// The functions of instructions.cuh from the first to before the second are those of the processor.
const INSTRUCTIONS: [&str; 2] =
    ["__device__ __forceinline__ u32 shared(", "// a and b as two halves each"];

/// Compiles both libraries and the driver; none if there is no compiler.
fn build() -> Option<PathBuf> {
    if cfg!(not(all(target_arch = "x86_64", target_os = "linux"))) {
        eprintln!("skipped: kernels run on the processor of Linux on x86-64 alone");
        return None;
    }
    if Command::new("c++").arg("--version").output().is_err() {
        eprintln!("skipped: no C++ compiler");
        return None;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/processor");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("processor");
    let compile = |from: &Path, beside: &Path, to: &str| {
        let options = "-std=c++20 -O2 -ffp-contract=off -fno-strict-aliasing -fPIC -shared -w";
        let mut command = Command::new("c++");
        command.args(options.split(' ')).arg("-I").arg(&here).arg("-I").arg(beside).arg(from);
        command.arg("-o").arg(folder.join(to)).arg("-ldl").spawn().expect("a compiler")
    };
    let mut compilers = Vec::new();
    for halves in ["1", "2"] {
        let beside = folder.join(format!("layers{halves}"));
        std::fs::create_dir_all(&beside).expect("a folder");
        let mut replaced = [false; REPLACED.len()];
        for (name, source) in SOURCES {
            let mut text = source.replace("<cuda_fp16.h>", "\"cuda.h\"");
            for ((from, to), found) in REPLACED.iter().zip(&mut replaced) {
                *found |= text.contains(from);
                text = text.replace(from, to);
            }
            if name == "instructions.cuh" {
                let [start, end] = INSTRUCTIONS.map(|part| text.find(part).expect(part));
                let own = format!(
                    "inline u32 found(const u32 *list, usize at) {{ return list ? list[at] : u32(at); }}\n\
                     inline u32 halves() {{ return {halves}; }}\n\n"
                );
                text.replace_range(start..end, &own);
            }
            std::fs::write(beside.join(name), text).expect("a file");
        }
        for ((from, _), found) in REPLACED.iter().zip(replaced) {
            assert!(found, "the kernels have no `{from}` any more");
        }
        compilers.push(compile(&here.join("layers.cpp"), &beside, &format!("layers{halves}.so")));
    }
    compilers.push(compile(&here.join("driver.cpp"), &here, "libcuda.so.1"));
    for mut compiler in compilers {
        assert!(compiler.wait().expect("a compiler").success(), "the kernels do not compile");
    }
    Some(folder)
}

/// In a process that finds this driver.
#[test]
fn kernels_of_any_model_agree_with_the_processor_without_a_card() {
    let Some(folder) = build() else { return };
    let status = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "processor::in_a_process_with_that_driver", "--ignored", "--nocapture"])
        .env("LD_LIBRARY_PATH", folder)
        .status();
    assert!(status.expect("this program").success());
}

/// What the test above starts.
#[test]
#[ignore = "needs a driver that the test above makes"]
fn in_a_process_with_that_driver() {
    let name = lopa_cuda::describe(0).expect("a driver");
    assert!(name.starts_with("the processor"), "{name}");
    methods::layers();
    steps::layers();
    processes::layers();
    shapes::layers();
}
