//! The page on the measured rates.

use super::{Rate, Seen, Sense};

/// The text above the sentences.
const HEAD: &str = "# Measured rates

The powers that the paper's corollaries predict, and those that runs show. This page is written by
`lopa theory rates --page docs/theory.md`; see [the theory](theory-guide.md) and
[differences from the paper](errata.md) for the background.

";

/// The text above the table.
const METHOD: &str = "## The table

Every line is a power law y ~ x^e. For each seed a straight line is fitted to the logarithms of the
points; the exponent is the mean of the seeds' slopes, with its 95 % confidence interval by Student's
t. A prediction is *seen* if the whole interval lies within 0.1 of it, a margin set beforehand, and *not
seen* if none of it does; an interval that reaches across *cannot* tell. Nor can seeds that survived where
others diverged: they are no fair sample. \"At most\" marks upper bounds: runs that grow less are *within*
them, which neither contradicts nor confirms the power law.

";

/// The page in Markdown; `figure` names the file of a claim's figure.
pub fn page(rates: &[Rate], seeds: u64, figure: &dyn Fn(&str) -> Option<String>) -> String {
    let mut text = HEAD.to_string() + &summary(rates) + METHOD;
    text.push_str(&format!(
        "Seeds 1 to {seeds}, on random quadratics, whose gradients are known in closed form, and on \
         logistic regression with learnt regularisation, whose gradients are solved for to 1e-10. On \
         quadratics the unit of alpha is 1 over the largest curvature of the Phi_i, which differs between \
         seeds. Predictions and margins were fixed before any run. The steps, the scaling and the numbers \
         of iterations of the logistic problem were not: larger steps and raw features had diverged on \
         seeds 1, 2, 5 and 6.\n\n"
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
        if rate.lost() > 0 {
            let (lost, of, diverged) = (rate.lost(), rate.points.len(), rate.diverged);
            text.push_str(&format!(
                " {lost} of {of} seeds have no exponent, because a run diverged ({diverged}) or a point has no \
                 logarithm; the fit of the others is shown, and decides nothing."
            ));
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

/// One sentence per claim, grouped by verdict, each with a link to its evidence.
fn summary(rates: &[Rate]) -> String {
    let all = [
        ("What holds", "seen", "These powers are seen, with the whole interval within 0.1:"),
        ("", "within", "These are upper bounds, which runs stay below without confirming them:"),
        (
            "What does not hold",
            "not seen",
            "These powers are not seen: none of the interval is within 0.1.",
        ),
        ("", "exceeded", "These upper bounds are exceeded:"),
        (
            "What cannot be told",
            "cannot be told",
            "The seeds differ too much, the power is too near to the margin, or runs diverged:",
        ),
    ];
    let mut text = String::new();
    for (head, verdict, opening) in all {
        let own: Vec<&Rate> = rates.iter().filter(|rate| rate.verdict() == verdict).collect();
        if !head.is_empty() {
            text += &format!("## {head}\n\n");
        }
        match (own.is_empty(), head.is_empty()) {
            (true, true) => continue,
            (true, false) => text += "Nothing.\n\n",
            (false, _) => {
                text += &format!("{opening}\n\n");
                own.iter().for_each(|rate| text += &format!("- {}\n", sentence(rate)));
                text.push('\n');
            }
        }
    }
    text
}

/// The claim, the finding, and its most important caveat.
fn sentence(rate: &Rate) -> String {
    let found = match &rate.fitted {
        Some(f) => format!("{:.2} ({:.2} to {:.2})", f.mean, f.low, f.high),
        None => "nothing could be fitted".into(),
    };
    let found = match (rate.lost(), rate.points.len()) {
        (0, _) => found,
        (lost, of) => format!("{found} on the seeds that are left: {lost} of {of} were lost"),
    };
    let remark = match rate.remark {
        "" => String::new(),
        remark => format!(" {}.", capital(remark)),
    };
    let (claim, id) = (capital(rate.claim), rate.id);
    format!("[{claim}](#{id}): {found}, where {} is predicted.{remark}", rate.prediction())
}

fn remark(rate: &Rate) -> Option<String> {
    let unseen = match (rate.sense, rate.seen()) {
        (Sense::Equal, Seen::No) => Some("the predicted exponent is not seen".to_string()),
        (Sense::AtMost, Seen::No) => Some("the bound is exceeded".to_string()),
        (_, Seen::Open) if rate.lost() > 0 => None,
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
