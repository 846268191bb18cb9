//! Whether two names are one name, spelt differently.

/// Letters with accents, and without them.
const MARKED: [(&str, &str); 26] = [
    ("àáâãäåāăą", "a"),
    ("çćĉċč", "c"),
    ("ďđð", "d"),
    ("èéêëēĕėęě", "e"),
    ("ĝğġģ", "g"),
    ("ĥħ", "h"),
    ("ìíîïĩīĭįı", "i"),
    ("ĵ", "j"),
    ("ķ", "k"),
    ("ĺļľŀł", "l"),
    ("ñńņň", "n"),
    ("òóôõöøōŏő", "o"),
    ("ŕŗř", "r"),
    ("śŝşšș", "s"),
    ("ţťŧț", "t"),
    ("ùúûüũūŭůűų", "u"),
    ("ŵ", "w"),
    ("ýÿŷ", "y"),
    ("źżž", "z"),
    ("æ", "ae"),
    ("œ", "oe"),
    ("ß", "ss"),
    ("þ", "th"),
    ("‐‑‒–—", "-"),
    ("’‘", "'"),
    ("\u{200b}\u{feff}", ""),
];

/// A name without case, spaces and accents; `None` for a number, which has no other spelling.
pub fn fold(name: &str) -> Option<String> {
    if name.parse::<f64>().is_ok() {
        return None;
    }
    let mut folded = String::new();
    for letter in name.trim().chars().flat_map(char::to_lowercase) {
        // Accents may also be separate characters.
        if letter.is_whitespace() || ('\u{300}'..'\u{370}').contains(&letter) {
            continue;
        }
        match MARKED.iter().find(|(marked, _)| marked.contains(letter)) {
            Some((_, plain)) => folded.push_str(plain),
            None => folded.push(letter),
        }
    }
    let letters: Vec<char> = folded.chars().collect();
    // Between letters, `-` and `_` are ways of writing a space; at an end they mean something: `A-`.
    let joins = |at: usize| {
        let letter = |at: usize| letters.get(at).is_some_and(|letter| letter.is_alphanumeric());
        "-_".contains(letters[at]) && at > 0 && letter(at - 1) && letter(at + 1)
    };
    Some((0..letters.len()).filter(|&at| !joins(at)).map(|at| letters[at]).collect())
}

/// Shorter words that differ in a letter are different words.
const SHORTEST: usize = 5;

/// Whether one name is the other with a misspelling in one of its words: a letter too many, too
/// few, another one, or two of them swapped.
pub fn misspelt(a: &str, b: &str) -> bool {
    let (a, b) = (a.to_lowercase(), b.to_lowercase());
    let words = |name: &str| -> Vec<String> {
        name.split(|c: char| !c.is_alphanumeric()).map(str::to_string).collect()
    };
    let (a, b) = (words(&a), words(&b));
    if a.len() != b.len() {
        return false;
    }
    let different: Vec<(&String, &String)> = a.iter().zip(&b).filter(|(a, b)| a != b).collect();
    let [(a, b)] = different[..] else { return false };
    let word =
        |word: &str| word.chars().all(char::is_alphabetic) && word.chars().count() >= SHORTEST;
    // A prefix changes the meaning: typical, atypical.
    let prefixed = a.ends_with(b.as_str()) || b.ends_with(a.as_str());
    word(a) && word(b) && !prefixed && strsim::damerau_levenshtein(a, b) == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_spaces_and_accents_do_not_make_a_name() {
        for (a, b) in [
            ("Benign", "benign"),
            ("benign\u{a0}", "benign"),
            ("b\u{e9}nin", "benin"),
            ("be\u{301}nin", "b\u{e9}nin"),
            ("non small", "Non-Small"),
            ("GRO\u{df}", "gross"),
        ] {
            assert_eq!(fold(a), fold(b), "{a} {b}");
        }
        for (a, b) in [("A", "A-"), ("A+", "A-"), ("benign", "malignant"), ("type 1", "type 2")] {
            assert_ne!(fold(a), fold(b), "{a} {b}");
        }
        assert_eq!(fold("-1"), None);
    }

    #[test]
    fn a_slip_is_told_from_another_word() {
        for (a, b) in [("bengin", "benign"), ("malignnat", "malignant"), ("benignn", "benign")] {
            assert!(misspelt(a, b), "{a} {b}");
        }
        for (a, b) in [
            ("typical", "atypical"),
            ("stage II", "stage III"),
            ("type a", "type b"),
            ("cat", "car"),
            ("grade1", "grade2"),
            ("normal", "abnormal"),
            ("benign", "malignant"),
        ] {
            assert!(!misspelt(a, b), "{a} {b}");
        }
    }
}
