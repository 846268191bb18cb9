//! The page on the measured rates.

use super::{Rate, Seen, Sense};

/// The text above the table.
const HEAD: &str = "# Measured rates

The powers that the paper's corollaries predict, and those that runs show. This page is written by
`lopa theory rates --page docs/theory.md`; see [the theory](theory-guide.md) and
[differences from the paper](errata.md) for the background.

Every line is a power law y ~ x^e. For each seed a straight line is fitted to the logarithms of the
points; the exponent is the mean of the seeds' slopes, with its 95 % confidence interval by Student's
t. A prediction is *seen* if the whole interval lies within 0.1 of it, a margin set beforehand, and *not
seen* if none of it does; an interval that reaches across *cannot* tell. \"At most\" marks upper bounds:
runs that grow less are *within* them, which neither contradicts nor confirms the power law.

";

/// The page in Markdown; `figure` names the file of a claim's figure.
pub fn page(rates: &[Rate], seeds: u64, figure: &dyn Fn(&str) -> Option<String>) -> String {
    let mut text = HEAD.to_string();
    text.push_str(&format!(
        "Seeds 1 to {seeds}, on random quadratics with exact gradients. The unit of alpha is 1 over \
         the largest curvature of the Phi_i, which differs between seeds.\n\n"
    ));
    text.push_str("| claim | paper | predicted | fitted | 95 % interval | verdict |\n|---|---|---|---|---|---|\n");
    for rate in rates {
        let (fitted, range) = match &rate.fitted {
            Some(f) => (format!("{:.3}", f.mean), format!("{:.3} to {:.3}", f.low, f.high)),
            None => ("–".into(), "–".into()),
        };
        let verdict = match rate.seen() {
            Seen::Yes => rate.verdict().to_string(),
            Seen::No | Seen::Open => format!("**{}**", rate.verdict()),
        };
        let cells = [rate.claim, rate.place, &rate.prediction(), &fitted, &range, &verdict]
            .map(|s| s.replace('|', "\\|"));
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text.push_str("\n## How each was measured\n");
    for rate in rates {
        text.push_str(&format!(
            "\n### {}\n\n{}. {}.",
            rate.id,
            capital(rate.claim),
            capital(rate.settings)
        ));
        text.push_str(&format!(" Measured: {}, over {}.", rate.y, rate.x));
        if rate.diverged > 0 {
            text.push_str(&format!(" {} seed(s) diverged and are omitted.", rate.diverged));
        }
        if let Some(remark) = remark(rate) {
            text.push_str(&format!(" {}.", capital(&remark)));
        }
        text.push('\n');
        if let Some(file) = figure(rate.id) {
            text.push_str(&format!("\n![{}]({file})\n", rate.claim));
        }
    }
    text
}

fn remark(rate: &Rate) -> Option<String> {
    let unseen = match (rate.sense, rate.seen()) {
        (Sense::Equal, Seen::No) => Some("the predicted exponent is not seen".to_string()),
        (Sense::AtMost, Seen::No) => Some("the bound is exceeded".to_string()),
        (_, Seen::Open) => Some("the seeds differ too much to tell".to_string()),
        (_, Seen::Yes) => None,
    };
    match (rate.remark, unseen) {
        ("", unseen) => unseen,
        (remark, None) => Some(remark.to_string()),
        (remark, Some(unseen)) => Some(format!("{unseen}; {remark}")),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
