//! The commands in a build without peers: each prints how to install it.

use std::path::Path;
use std::process::ExitCode;

use lopa::error::Result;
use lopa_report::live::Nodes;

use super::args::{InviteArgs, JoinArgs, KeyCommand, NodeArgs, RosterCommand, StatusArgs};
use crate::features::PEERS;
use crate::program::Program;

pub fn key(_: &KeyCommand, _: &Program) -> Result<ExitCode> {
    Err(PEERS.missing("lopa key"))
}

pub fn invite(_: &InviteArgs, _: &Program) -> Result<ExitCode> {
    Err(PEERS.missing("lopa invite"))
}

pub fn join(_: &JoinArgs, _: &Program) -> Result<ExitCode> {
    Err(PEERS.missing("lopa join"))
}

pub fn roster(_: &RosterCommand, _: &Program) -> Result<ExitCode> {
    Err(PEERS.missing("lopa roster"))
}

pub fn node(_: &NodeArgs, _: &Program) -> Result<ExitCode> {
    Err(PEERS.missing("lopa node"))
}

pub fn status(_: &StatusArgs, _: &Program) -> Result<ExitCode> {
    Err(PEERS.missing("lopa status"))
}

pub fn nodes(_: &Path) -> Option<Nodes> {
    None
}
