//! Cells that are not numbers: their kind, their count, and the remedy.

use crate::encoding::is_missing;

/// Whether a label has no value; `none` and `-` may be classes.
pub fn is_unlabelled(text: &str) -> bool {
    is_missing(text) && !["none", "-"].contains(&text.to_ascii_lowercase().as_str())
}

/// A cell that is not a number.
#[derive(Debug, Clone, PartialEq)]
pub enum Odd {
    Missing,
    Infinite,
    /// With a decimal comma; as it should be written.
    DecimalComma(String),
    /// With thousands separators; as it should be written.
    Thousands(String),
    /// With a comma that may be either.
    Comma(String),
    Date,
    /// A number with a unit; the number.
    Unit(String),
    Word,
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

impl Odd {
    /// The kind of a cell that is not a finite number.
    pub fn of(text: &str) -> Odd {
        if is_missing(text) {
            return Odd::Missing;
        }
        if text.parse::<f64>().is_ok() {
            return Odd::Infinite;
        }
        if is_date(text) {
            return Odd::Date;
        }
        if let Some(odd) = separated(text) {
            return odd;
        }
        let number = text.trim_end_matches(|c: char| !c.is_ascii_digit()).trim_end();
        let unit = &text[number.len()..];
        match number.parse::<f64>() {
            Ok(_) if unit.chars().count() <= 8 => Odd::Unit(number.to_string()),
            _ => Odd::Word,
        }
    }

    /// The remedy for such a cell; `column` is the name of its column in `drop`.
    pub fn remedy(&self, text: &str, column: &str) -> String {
        let text = short(text);
        match self {
            Odd::Missing => {
                "write `missing = \"mean\"` in [data] to fill in the column's mean, fill \
                             in missing values yourself, or leave the rows out"
                    .into()
            }
            Odd::Infinite => "fill in missing values, or leave the row out".into(),
            Odd::DecimalComma(right) => {
                format!("`{text}` has a decimal comma: write `{right}`, with a point")
            }
            Odd::Thousands(right) => {
                format!("`{text}` has thousands separators: write `{right}`, without them")
            }
            Odd::Comma(right) => format!(
                "the comma in `{text}` separates thousands or decimals: write `{}` or `{right}`",
                right.replace('.', "")
            ),
            Odd::Date => format!(
                "`{text}` is a date or a time, and features are numbers: leave the column out with \
                 `drop = [{column}]`, or write days or years instead"
            ),
            Odd::Unit(number) => {
                format!("`{text}` has a unit: write `{number}` alone")
            }
            Odd::Word => format!(
                "features are numbers: name a column of words as `label` or `group`, leave it out with \
                 `drop = [{column}]`, or list its values in `categories`"
            ),
        }
    }
}

/// A number whose digits are grouped, or whose decimals follow a comma.
fn separated(text: &str) -> Option<Odd> {
    let sign = text.strip_prefix(['-', '+']).unwrap_or(text);
    let allowed = |c: char| c.is_ascii_digit() || ",.'’_".contains(c) || c.is_whitespace();
    if !sign.starts_with(|c: char| c.is_ascii_digit()) || !sign.chars().all(allowed) {
        return None;
    }
    let minus = if text.starts_with('-') { "-" } else { "" };
    let last = sign.rfind([',', '.']);
    let (whole, decimals) = match last {
        Some(at) => (&sign[..at], &sign[at + 1..]),
        None => (sign, ""),
    };
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    let grouped = whole.chars().any(|c| !c.is_ascii_digit());
    let mark = last.map(|at| &sign[at..at + 1]);
    let groups: Vec<&str> = whole.split(|c: char| !c.is_ascii_digit()).collect();
    let of_three = |groups: &[&str]| groups.iter().all(|group| group.len() == 3);
    let same = mark.is_some_and(|mark| whole.contains(mark));
    if grouped && (groups[0].len() > 3 || !of_three(&groups[1..]) || same && decimals.len() != 3) {
        return None;
    }
    let all = format!("{minus}{}", digits(sign));
    let right = format!("{minus}{}.{}", digits(whole), digits(decimals));
    Some(match (mark, grouped) {
        // The last mark also groups if it is the same as the others.
        (Some(_), true) if same => Odd::Thousands(all),
        (Some(","), true) => Odd::DecimalComma(right),
        (Some(_), true) => Odd::Thousands(right),
        (Some(","), false) if decimals.len() == 3 && (1..=3).contains(&whole.len()) => {
            Odd::Comma(right)
        }
        (Some(","), false) => Odd::DecimalComma(right),
        (Some(_), false) => return None,
        (None, _) => Odd::Thousands(all),
    })
}

fn is_date(text: &str) -> bool {
    let day = text.split(['T', ' ']).next().unwrap_or_default();
    let time = |text: &str| {
        let parts: Vec<&str> = text.split(':').collect();
        let number = |part: &&str| part.parse::<f64>().is_ok();
        (2..=3).contains(&parts.len()) && parts.iter().all(number)
    };
    if time(text) {
        return true;
    }
    for mark in ['-', '/', '.', ' '] {
        let parts: Vec<&str> = if mark == ' ' { text } else { day }.split(mark).collect();
        let [a, b, c] = parts[..] else { continue };
        let number = |part: &str, long: std::ops::RangeInclusive<usize>| {
            long.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        let month = |part: &str| {
            let start: String = part.chars().take(3).collect::<String>().to_lowercase();
            number(part, 1..=2) && mark != ' ' || MONTHS.contains(&start.as_str())
        };
        let year = |part: &str| number(part, 4..=4) || mark != ' ' && number(part, 2..=2);
        let day = |part: &str| number(part.trim_end_matches(','), 1..=2);
        if number(a, 4..=4) && month(b) && day(c)
            || day(a) && month(b) && year(c)
            || month(a) && day(b) && year(c)
        {
            return true;
        }
    }
    false
}

/// How many odd cells a message shows.
const SHOWN: usize = 3;

/// The odd cells of a table, counted.
#[derive(Default)]
pub struct OddCells {
    count: usize,
    missing: usize,                   // of these
    first: Vec<(u64, usize, String)>, // line, column, text
}

impl OddCells {
    pub fn add(&mut self, line: u64, column: usize, text: &str) {
        self.count += 1;
        self.missing += usize::from(is_missing(text));
        if self.first.len() < SHOWN {
            self.first.push((line, column, text.to_string()));
        }
    }

    /// Whether all of them are cells without a value.
    pub fn only_missing(&self) -> bool {
        self.count == self.missing
    }

    /// The line, column and text of the first.
    pub fn first(&self) -> Option<(u64, usize, &str)> {
        self.first.first().map(|(line, column, text)| (*line, *column, text.as_str()))
    }

    /// The error, if there are any; `names` are those of the columns.
    pub fn error(&self, name: &str, names: &ColumnNames) -> Option<crate::error::Error> {
        let (line, column, text) = self.first.first()?;
        let odd = Odd::of(text);
        let all_missing = self.count == self.missing;
        let one = |(line, column, text): &(u64, usize, String)| {
            let what = match text.is_empty() {
                true if all_missing => String::new(),
                true => "nothing in ".into(),
                false => format!("`{}` in ", short(text)),
            };
            format!("{what}{}, line {line}", names.shown(*column))
        };
        let mut some: Vec<String> = self.first.iter().map(one).collect();
        if self.count > some.len() {
            some.push(format!("and {} more", self.count - some.len()));
        }
        let message = match (self.count, &odd) {
            (1, Odd::Missing) if text.is_empty() => {
                format!("{} has no value", names.shown(*column))
            }
            (count, Odd::Missing) if count > 1 && all_missing => {
                format!("{count} cells have no value: {}", some.join("; "))
            }
            (1, Odd::Infinite) => {
                format!("{} holds `{}`", names.shown(*column), short(text))
            }
            (1, _) => {
                format!("`{}` in {} is not a number", short(text), names.shown(*column))
            }
            (count, Odd::Infinite) => {
                format!("{count} cells are not finite numbers: {}", some.join("; "))
            }
            (count, _) => format!("{count} cells are not numbers: {}", some.join("; ")),
        };
        let id = if odd == Odd::Infinite || text.eq_ignore_ascii_case("nan") {
            "data/not-finite"
        } else {
            "data/bad-number"
        };
        let hint = odd.remedy(text, &names.key(*column));
        Some(crate::error::Error::data(id, message).at(format!("{name}:{line}")).hint(hint))
    }

    /// The error for cells that should have named a class or a group.
    pub fn unnamed(
        &self,
        name: &str,
        names: &ColumnNames,
        what: &str,
    ) -> Option<crate::error::Error> {
        let (line, column, text) = self.first.first()?;
        let lines: Vec<String> = self.first.iter().map(|(line, ..)| line.to_string()).collect();
        let more = if self.count > lines.len() { ", …" } else { "" };
        let (rows, s) = match self.count {
            1 => ("1 row has".to_string(), ""),
            count => (format!("{count} rows have"), "s"),
        };
        let said = if text.is_empty() { String::new() } else { format!(" (`{}`)", short(text)) };
        let message = format!(
            "{rows} no {what} in {}: line{s} {}{more}{said}",
            names.shown(*column),
            lines.join(", ")
        );
        let hint = format!(
            "fill the {what} in, or take the rows out; `lopa predict` reads rows without labels"
        );
        Some(
            crate::error::Error::data("data/bad-label", message)
                .at(format!("{name}:{line}"))
                .hint(hint),
        )
    }
}

/// The names of a table's columns, if it has any, and their number.
pub struct ColumnNames {
    pub names: Option<Vec<String>>,
    pub width: usize,
}

impl ColumnNames {
    /// A column in a message: by name, and counted from 1.
    pub fn shown(&self, column: usize) -> String {
        let place = format!("{} of {}", column + 1, self.width);
        match &self.names {
            Some(names) => format!("column `{}` ({place})", names[column]),
            None => format!("column {place}"),
        }
    }

    /// A column as the keys of `[data]` name it.
    pub fn key(&self, column: usize) -> String {
        match &self.names {
            Some(names) => toml::Value::String(names[column].clone()).to_string(),
            None => column.to_string(),
        }
    }
}

/// The start of a long text.
fn short(text: &str) -> String {
    match text.char_indices().nth(40) {
        None => text.to_string(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_recognised() {
        let right = |text: &str| text.to_string();
        for (text, odd) in [
            ("1,5", Odd::DecimalComma(right("1.5"))),
            ("-0,25", Odd::DecimalComma(right("-0.25"))),
            ("1.234,5", Odd::DecimalComma(right("1234.5"))),
            ("1 234,5", Odd::DecimalComma(right("1234.5"))),
            ("1,234", Odd::Comma(right("1.234"))),
            ("1,234,567", Odd::Thousands(right("1234567"))),
            ("1.234.567", Odd::Thousands(right("1234567"))),
            ("1,234.5", Odd::Thousands(right("1234.5"))),
            ("12'000", Odd::Thousands(right("12000"))),
            ("12 000", Odd::Thousands(right("12000"))),
            ("12\u{a0}000", Odd::Thousands(right("12000"))),
            ("2021-03-04", Odd::Date),
            ("2021-03-04T10:00:00", Odd::Date),
            ("04.03.2021", Odd::Date),
            ("3/4/21", Odd::Date),
            ("4-Mar-2021", Odd::Date),
            ("12 March 2021", Odd::Date),
            ("12:30", Odd::Date),
            ("12 %", Odd::Unit(right("12"))),
            ("5mg", Odd::Unit(right("5"))),
            ("", Odd::Missing),
            ("NA", Odd::Missing),
            ("1e999", Odd::Infinite),
            ("red", Odd::Word),
            ("P0001", Odd::Word),
            ("1-2", Odd::Word),
            ("1.2.3", Odd::Word),
            ("10.0.0.1", Odd::Word),
        ] {
            assert_eq!(Odd::of(text), odd, "{text}");
        }
    }
}
