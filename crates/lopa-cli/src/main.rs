//! The program `lopa`.

use std::process::ExitCode;

use lopa::experiment::Registries;

fn main() -> ExitCode {
    lopa_cli::main_with(Registries::default())
}
