//! The input of every command.

use lopa::experiment::Registries;

use crate::output::Output;

/// The registries, and the output.
pub struct Program {
    pub registries: Registries,
    pub output: Output,
}
