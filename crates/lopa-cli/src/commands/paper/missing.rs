//! The commands in a build without the paper: each prints how to install it.

use std::process::ExitCode;

use lopa::error::Result;

use super::args::{ReproduceArgs, TheoryCommand};
use crate::features::PAPER;
use crate::program::Program;

pub fn theory(_: &TheoryCommand, _: &Program) -> Result<ExitCode> {
    Err(PAPER.missing("lopa theory"))
}

pub fn reproduce(_: &ReproduceArgs, _: &Program) -> Result<ExitCode> {
    Err(PAPER.missing("lopa reproduce"))
}
