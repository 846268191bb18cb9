//! Text files: their bytes must be UTF-8.

use crate::error::{Error, Result};

/// The text of a file, without a byte-order mark; bytes that are not UTF-8 are refused with their
/// line.
pub fn utf8<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a str> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let bad = |message: String, line: usize, hint: &str| {
        Err(Error::data("data/bad-text", message).at(format!("{name}:{line}")).hint(hint))
    };
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return bad("the text is UTF-16, not UTF-8".into(), 1, "save it as UTF-8");
    }
    if bytes.starts_with(b"PK\x03\x04") {
        let message = "this is a ZIP file, perhaps of a spreadsheet, and no text";
        return bad(message.into(), 1, "save the sheet as CSV (UTF-8)");
    }
    let Err(error) = std::str::from_utf8(bytes) else {
        return Ok(std::str::from_utf8(bytes).unwrap_or_default());
    };
    let at = error.valid_up_to();
    let line = 1 + bytes[..at].iter().filter(|&&byte| byte == b'\n').count();
    let byte = bytes[at];
    let message = match byte {
        0xa0.. => format!(
            "the text is not UTF-8: byte {byte:#x}, which is `{}` in Latin-1",
            char::from(byte)
        ),
        _ => format!("the text is not UTF-8: byte {byte:#x}"),
    };
    bad(message, line, "save it as UTF-8: `iconv -f latin1 -t utf-8 OLD > NEW` if it is Latin-1")
}

/// The separator of a table's cells: the character that occurs equally often in all of the first
/// lines, or most often in the first one; the usual one if there is none.
pub fn delimiter(text: &str, usual: u8) -> u8 {
    let lines: Vec<&str> =
        text.lines().filter(|line| !line.trim().is_empty()).take(LINES).collect();
    let Some(first) = lines.first() else { return usual };
    // Commas come last: they may also be decimal commas.
    let known = [b';', b'\t', b'|', b','];
    let all_alike = |delimiter: &&u8| {
        let count = outside_quotes(first, **delimiter);
        count > 0 && lines.iter().all(|line| outside_quotes(line, **delimiter) == count)
    };
    if let Some(&found) = known.iter().find(all_alike) {
        return found;
    }
    let mut best = usual;
    for other in known {
        if outside_quotes(first, other) > outside_quotes(first, best) {
            best = other;
        }
    }
    best
}

/// The number of lines from which the separator is detected.
const LINES: usize = 20;

/// How often a line has a character outside of quotes.
fn outside_quotes(line: &str, wanted: u8) -> usize {
    let mut quoted = false;
    let mut count = 0;
    for byte in line.bytes() {
        quoted ^= byte == b'"';
        count += usize::from(byte == wanted && !quoted);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delimiter_is_what_all_lines_have_alike() {
        for (text, found) in [
            ("a,b,c\n1,2,x\n", b','),
            ("a;b;c\n1;2;x\n", b';'),
            ("1,5;2,3;4,1\n1,0;3;2,2\n", b';'),
            ("a;b\n1,5;2,3\n1;2\n", b';'),
            ("a\tb\n1\t2\n", b'\t'),
            ("a|b\n1|2\n", b'|'),
            ("\"a;b\",c\n\"1;2\",3\n", b','),
            ("a,b\n1,\"x;y\"\n", b','),
            ("single\n1\n", b','),
            ("", b','),
        ] {
            assert_eq!(delimiter(text, b','), found, "{text}");
        }
    }
}
