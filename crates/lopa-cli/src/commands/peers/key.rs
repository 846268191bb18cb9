//! `lopa key`: the key that identifies a node among peers.

use std::process::ExitCode;

use lopa::error::Result;
use lopa_peers::Key;
use serde_json::json;

use super::args::KeyCommand;
use crate::program::Program;

pub fn key(command: &KeyCommand, program: &Program) -> Result<ExitCode> {
    let output = &program.output;
    let (key, file, new) = match command {
        KeyCommand::New(args) => (Key::create(&args.file)?, &args.file, true),
        KeyCommand::Show(args) => (Key::read(&args.file)?, &args.file, false),
    };
    let public = key.public().to_string();
    match output.json() {
        true => output.document(&json!({ "file": file, "public": public })),
        false => output.text(&public),
    }
    if new {
        let file = file.display();
        output.note(&format!(
            "the secret is in {file}: keep it on this host; the line above is public"
        ));
    }
    Ok(ExitCode::SUCCESS)
}
