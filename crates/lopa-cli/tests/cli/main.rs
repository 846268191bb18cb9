//! The command line, by starting it.

mod bad_input;
mod commands;
mod compare;
mod interrupt;
mod models;
mod program;
mod resume;
mod runs;
mod theory;
