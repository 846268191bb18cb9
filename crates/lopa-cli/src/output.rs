//! Results on standard output, all else on standard error.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use comfy_table::{CellAlignment, Table, presets};
use lopa::error::Error;
use serde_json::{Value, json};

use crate::args::{Color, Format, Global};

/// How to speak to whoever called.
pub struct Output {
    format: Format,
    quiet: bool,
    color: bool,
    bars: bool,
}

impl Output {
    pub fn new(global: &Global) -> Output {
        let terminal = std::io::stderr().is_terminal();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let color = match global.color {
            Color::Auto => terminal && !plain,
            Color::Always => true,
            Color::Never => false,
        };
        let bars = terminal && !global.no_progress && !global.quiet;
        Output { format: global.format, quiet: global.quiet, color, bars }
    }

    /// Whether scripts read standard output.
    pub fn json(&self) -> bool {
        self.format == Format::Json
    }

    /// Whether progress bars are welcome.
    pub fn bars(&self) -> bool {
        self.bars
    }

    /// Whether notes are unwelcome.
    pub fn quiet(&self) -> bool {
        self.quiet
    }

    /// The one document that scripts get.
    pub fn document(&self, value: &Value) {
        print(&format!("{value:#}\n"));
    }

    /// Text that is the result.
    pub fn text(&self, text: &str) {
        print(&format!("{}\n", text.trim_end_matches('\n')));
    }

    /// A remark to a person.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            eprintln!("{text}");
        }
    }

    /// A warning to a person.
    pub fn warn(&self, text: &str) {
        if !self.quiet {
            eprintln!("{} {text}", self.paint("33", "warning:"));
        }
    }

    /// Text in a colour, where colour is welcome.
    pub fn paint(&self, code: &str, text: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}

/// Prints, and ends quietly if nobody reads any more.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

/// An aligned table: the first column to the left, numbers to the right.
pub fn table(head: &[&str], rows: Vec<Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_header(head).add_rows(rows);
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if at > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// The same, with every column to the left.
pub fn list(head: &[&str], rows: Vec<Vec<String>>) -> Table {
    let mut table = table(head, rows);
    table.column_iter_mut().for_each(|column| {
        column.set_cell_alignment(CellAlignment::Left);
    });
    table
}

/// A number with four significant digits.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".into()
    } else if !(1e-3..1e5).contains(&size) {
        format!("{value:.2e}")
    } else {
        let digits = (3 - size.log10().floor() as i32).max(0) as usize;
        format!("{value:.digits$}")
    }
}

/// Bytes with a binary unit.
pub fn bytes(value: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let power = (value.max(1.0).log2() / 10.0).floor().min(4.0);
    format!("{:.1} {}", value / 1024f64.powf(power), units[power as usize])
}

/// Says what went wrong and gives the exit code.
pub fn report_error(error: &Error, output: &Output) -> ExitCode {
    if output.json() {
        output.document(&json!({ "error": {
            "id": error.id,
            "message": error.message,
            "where": error.place,
            "hint": error.hint,
            "retryable": false,
        }}));
    }
    eprintln!("{} {error}", output.paint("31;1", &format!("error[{}]:", error.id)));
    ExitCode::from(error.kind.exit_code())
}
