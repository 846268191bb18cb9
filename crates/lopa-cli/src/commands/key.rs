//! `lopa key`: the key that a node is known by among peers.

use std::process::ExitCode;

use lopa::error::Result;
use lopa_peers::Key;
use serde_json::json;

use crate::args::KeyCommand;
use crate::output::Output;

pub fn key(command: &KeyCommand, output: &Output) -> Result<ExitCode> {
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
        output.note(&format!("the secret is in {file} and stays here; the line above may be told"));
    }
    Ok(ExitCode::SUCCESS)
}
