//! Results go to standard output, everything else to standard error.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle, presets};
use lopa::error::{Error, Kind};
pub use lopa::math::number;
use lopa_base::store::output::is_stdout;
pub use lopa_study::sentences::bytes;
use serde_json::{Value, json};

/// How to print; every command takes these.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output options")]
pub struct OutputArgs {
    /// How to print results on standard output
    #[arg(long, global = true, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// When to use colour; NO_COLOR turns it off
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    color: Color,
    /// Show no progress bars
    #[arg(long, global = true)]
    no_progress: bool,
    /// Print only errors on standard error
    #[arg(short, long, global = true)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables for people
    Table,
    /// Tables in Markdown
    Md,
    /// One JSON document for scripts
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Color {
    /// On terminals
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Prints in the requested format.
#[derive(Clone, Copy)]
pub struct Output {
    format: Format,
    quiet: bool,
    color: bool,
    bars: bool,
    /// Standard output holds a file: results go to standard error.
    aside: bool,
    /// Whether lines on standard error are a log, with times and levels.
    stamps: bool,
}

/// How much a line on standard error matters.
#[derive(Clone, Copy)]
enum Level<'a> {
    Info,
    Warning,
    Error(&'a str), // its id
}

/// Only a line below the header.
const PLAIN: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

impl Output {
    /// According to the arguments; the output of a command that runs unattended is a log.
    pub fn new(args: &OutputArgs, stamps: bool) -> Output {
        let terminal = std::io::stderr().is_terminal();
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let plain = set("NO_COLOR") || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let color = match args.color {
            Color::Auto => (terminal || set("CLICOLOR_FORCE")) && !plain,
            Color::Always => true,
            Color::Never => false,
        };
        let bars = terminal && !args.no_progress && !args.quiet;
        Output { format: args.format, quiet: args.quiet, color, bars, aside: false, stamps }
    }

    /// A note about a file that the command wrote; nothing if the file is standard output itself.
    pub fn beside(&self, file: &Path) -> Output {
        Output { aside: is_stdout(file), ..*self }
    }

    /// Whether a script reads standard output.
    pub fn json(&self) -> bool {
        self.format == Format::Json
    }

    /// Whether tables are Markdown, where they may be wide.
    pub fn markdown(&self) -> bool {
        self.format == Format::Md
    }

    /// Whether to show progress bars.
    pub fn bars(&self) -> bool {
        self.bars
    }

    /// Prints the one document for scripts.
    pub fn document(&self, value: &Value) {
        self.print(&document(value));
    }

    /// Prints the result as text.
    pub fn text(&self, text: &str) {
        self.print(&format!("{}\n", plain(text.trim_end_matches('\n'))));
    }

    fn print(&self, text: &str) {
        match self.aside {
            true if self.quiet => {}
            true => log(text.trim_end_matches('\n')),
            false => print(text),
        }
    }

    /// A remark on standard error.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.log(Level::Info, text);
        }
    }

    /// A warning on standard error.
    pub fn warn(&self, text: &str) {
        if !self.quiet {
            self.log(Level::Warning, text);
        }
    }

    /// An error on standard error.
    pub fn complain(&self, error: &Error) {
        self.log(Level::Error(error.id), &error.to_string());
    }

    /// A line on standard error: for people, or with its time and level.
    fn log(&self, level: Level, text: &str) {
        let time = self.stamps.then(lopa::folder::now);
        match (level, time) {
            (_, Some(time)) if self.json() => log(entry(level, &time, text)),
            (Level::Info, None) => log(plain(text)),
            (_, time) => {
                let time = time.map(|time| time + " ").unwrap_or_default();
                log(format_args!("{time}{} {}", self.head(level), plain(text.trim_start())));
            }
        }
    }

    /// The level at the head of a line.
    fn head(&self, level: Level) -> String {
        match level {
            Level::Info => "info:".into(),
            Level::Warning => self.paint("33", "warning:"),
            Level::Error(id) => self.paint("31;1", &format!("error[{id}]:")),
        }
    }

    /// Reports an error in the requested format; returns its exit code.
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

    /// A table of numbers: the first column left-aligned, the others right-aligned.
    pub fn table(&self, head: &[&str], rows: Vec<Vec<String>>) -> String {
        self.grid(head, rows, CellAlignment::Right)
    }

    /// A table of words: every column left-aligned.
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

/// A document as text. JSON escapes only some of the characters that control a terminal.
pub fn document(value: &Value) -> String {
    let text = format!("{value:#}\n");
    escaped(&text, |c| format!("\\u{:04x}", u32::from(c))).into()
}

/// A line of a log as a JSON document.
fn entry(level: Level, time: &str, text: &str) -> String {
    let (level, id) = match level {
        Level::Info => ("info", None),
        Level::Warning => ("warning", None),
        Level::Error(id) => ("error", Some(id)),
    };
    let mut entry = json!({ "time": time, "level": level, "text": text.trim() });
    if let Some(id) = id {
        entry["id"] = json!(id);
    }
    escaped(&entry.to_string(), |c| format!("\\u{:04x}", u32::from(c))).into()
}

/// An error as a document.
pub fn described(error: &Error) -> Value {
    json!({ "error": {
        "id": error.id,
        "message": error.message,
        "where": error.place,
        "hint": error.hint,
        "retryable": error.kind == Kind::Peer,
    }})
}

/// Prints to standard output; ends the process quietly if its reader is gone.
pub fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            log(format_args!("error[storage/write]: cannot write to standard output: {error}"));
            std::process::exit(5);
        }
    }
}

/// Whether a character may control a terminal instead of being shown: control characters, and those
/// that change the direction of text, which can make it look like another.
fn is_obeyed(c: char) -> bool {
    let turns = ['\u{61c}', '\u{200e}', '\u{200f}'].contains(&c)
        || ('\u{202a}'..='\u{202e}').contains(&c)
        || ('\u{2066}'..='\u{2069}').contains(&c);
    turns || c.is_control() && !['\n', '\t'].contains(&c)
}

/// Text with escaped control characters: names may come from untrusted files.
pub fn plain(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c.escape_default().to_string())
}

fn escaped(text: &str, escape: impl Fn(char) -> String) -> Cow<'_, str> {
    match text.contains(is_obeyed) {
        false => text.into(),
        true => {
            let shown = |c: char| if is_obeyed(c) { escape(c) } else { c.to_string() };
            text.chars().map(shown).collect::<String>().into()
        }
    }
}

/// Prints a line on standard error; a closed pipe is not an error.
fn log(text: impl Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Level, document, entry, plain};

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        assert_eq!(plain("a\tb\nß ─"), "a\tb\nß ─");
        assert_eq!(plain("\u{1b}[2Jclass\u{7}\r\u{9b}1m"), "\\u{1b}[2Jclass\\u{7}\\r\\u{9b}1m");
        assert_eq!(plain("a\u{202e}b\u{2066}c"), "a\\u{202e}b\\u{2066}c");
    }

    #[test]
    fn a_line_of_a_log_is_one_line_with_time_and_level() {
        let line = entry(Level::Error("peers/lost"), "2026-01-02T03:04:05Z", "\na\nb\u{9b}");
        assert!(!line.contains(['\n', '\u{9b}']), "{line}");
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        let want = json!({
            "time": "2026-01-02T03:04:05Z", "level": "error", "id": "peers/lost", "text": "a\nb\u{9b}"
        });
        assert_eq!(value, want);
        assert!(entry(Level::Info, "", "a").contains("\"info\""));
    }

    #[test]
    fn documents_say_the_same_without_anything_to_obey() {
        let value = json!({ "\u{1b}[2J": "\u{9b}1m\u{202e}\u{7f}ß", "list": [1, "\n"] });
        let text = document(&value);
        assert!(text.chars().all(|c| c == '\n' || !super::is_obeyed(c)), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
