//! The program `lopa`.

use std::process::ExitCode;

use lopa::experiment::Registries;

fn main() -> ExitCode {
    // Programs of a release do not unwind: a bug has the same exit code in them.
    #[cfg(panic = "abort")]
    {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            usual(panic);
            std::process::exit(101);
        }));
    }
    lopa_cli::main_with(Registries::default())
}
