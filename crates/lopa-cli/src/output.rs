//! Results on standard output, all else on standard error.

use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle, presets};
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

/// A line below the head, and nothing else.
const PLAIN: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

impl Output {
    pub fn new(global: &Global) -> Output {
        let terminal = std::io::stderr().is_terminal();
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let plain = set("NO_COLOR") || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let color = match global.color {
            Color::Auto => (terminal || set("CLICOLOR_FORCE")) && !plain,
            Color::Always => true,
            Color::Never => false,
        };
        let bars = terminal && !global.no_progress && !global.quiet;
        Output { format: global.format, quiet: global.quiet, color, bars }
    }

    /// Whether people want to hear of errors only.
    #[cfg(feature = "peers")]
    pub fn quiet(&self) -> bool {
        self.quiet
    }

    /// Whether scripts read standard output.
    pub fn json(&self) -> bool {
        self.format == Format::Json
    }

    /// Whether tables are for a page of text, where they may be wide.
    pub fn markdown(&self) -> bool {
        self.format == Format::Md
    }

    /// Whether progress bars are welcome.
    pub fn bars(&self) -> bool {
        self.bars
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
            say(text);
        }
    }

    /// A warning to a person.
    pub fn warn(&self, text: &str) {
        if !self.quiet {
            say(format_args!("{} {text}", self.paint("33", "warning:")));
        }
    }

    /// What went wrong, to a person.
    pub fn complain(&self, error: &Error) {
        say(format_args!("{} {error}", self.paint("31;1", &format!("error[{}]:", error.id))));
    }

    /// What went wrong, to whoever called, and the exit code.
    pub fn fail(&self, error: &Error) -> ExitCode {
        if self.json() {
            self.document(&described(error));
        }
        self.complain(error);
        ExitCode::from(error.kind.exit_code())
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    /// A table of numbers: the first column to the left, the others to the right.
    pub fn table(&self, head: &[&str], rows: Vec<Vec<String>>) -> String {
        self.grid(head, rows, CellAlignment::Right)
    }

    /// A table of words: every column to the left.
    pub fn list(&self, head: &[&str], rows: Vec<Vec<String>>) -> String {
        self.grid(head, rows, CellAlignment::Left)
    }

    fn grid(&self, head: &[&str], rows: Vec<Vec<String>>, others: CellAlignment) -> String {
        let markdown = self.markdown();
        let cell = |text: &str| if markdown { text.replace('|', "\\|") } else { text.to_string() };
        let mut table = Table::new();
        table.set_header(head.iter().map(|text| cell(text)));
        table.add_rows(rows.iter().map(|row| row.iter().map(|text| cell(text))));
        table.load_style(if markdown { presets::ASCII_MARKDOWN } else { PLAIN });
        for (at, column) in table.column_iter_mut().enumerate() {
            if !markdown {
                column.set_padding((0, 1));
            }
            column.set_cell_alignment(if at == 0 { CellAlignment::Left } else { others });
        }
        table.trim_fmt()
    }
}

/// An error as scripts see it.
pub fn described(error: &Error) -> Value {
    json!({ "error": {
        "id": error.id,
        "message": error.message,
        "where": error.place,
        "hint": error.hint,
        "retryable": false,
    }})
}

/// Prints, and ends quietly if nobody reads any more.
pub fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            say(format_args!("error[storage/write]: cannot write to standard output: {error}"));
            std::process::exit(5);
        }
    }
}

/// A line on standard error; nobody need read it.
fn say(text: impl Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
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
    if value < 1024.0 {
        return format!("{value:.0} B");
    }
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let power = (value.log2() / 10.0).floor().min(4.0);
    format!("{:.1} {}", value / 1024f64.powf(power), units[power as usize - 1])
}
