//! The command line, by starting it.

mod bad_input;
mod commands;
mod interrupt;
mod models;
mod program;
mod runs;
mod theory;
