//! The pages on the reproduction, in Markdown: a summary, one section per figure, and an appendix.

use std::fmt::Write as _;

use serde_json::Value;

use super::claims::Judgement;
use super::paper::level;
use super::topics::ten;
use lopa_study::seeds::Count;
use lopa_study::tune::TuneSpec;

/// The content of the pages.
#[derive(Debug, Clone, Copy)]
pub struct Pages<'a> {
    /// The command that writes them.
    pub command: &'a str,
    /// The levels.
    pub entries: &'a [Value],
    /// The verdicts.
    pub judged: &'a [Judgement],
    /// The addresses of the pictures.
    pub pictures: &'a [String],
    /// The address of the appendix, relative to the first page.
    pub appendix: &'a str,
    /// The search for tuned steps, if it was the same for all files except for the ranges.
    pub search: Option<&'a TuneSpec>,
    /// Whether only a tenth was run, which is neither compared with the paper nor judged.
    pub quick: bool,
    /// Whether seconds were measured on an idle machine.
    pub times: bool,
}

/// Heading, address and figures of each section.
const SECTIONS: [(&str, &str, &[&str]); 7] = [
    ("Figure 1", "#figure-1", &["fig1"]),
    ("Figure 2", "#figure-2", &["fig2"]),
    ("Figures 3 and 4", "#figures-3-and-4", &["fig3", "fig4"]),
    ("Figures 5 and 6", "#figures-5-and-6", &["fig5", "fig6"]),
    ("Figure 7", "#figure-7", &["fig7"]),
    ("Figure 8", "#figure-8", &["fig8"]),
    ("All settings together", "#all-settings-together", &["all"]),
];

const STATISTICS: &str = "\
Every comparison is paired over seeds; where a claim is about several settings, a setting counts once, \
however many seeds it has. The interval is the 95 % confidence interval of the mean difference by \
Student's t, above zero (a factor: above 1) where it favours the claim. A claim *held*, or is *reversed*, if there is \
a difference. There is *no difference above the margin*, even if there is one, if two one-sided tests show it to be \
smaller than a margin that was set beforehand: 0.5 points of accuracy, a factor of 1.1 in cost, 1.05 in loss and Φ, 2 in \
squared distances. All tests, of a difference and of equality alike, are at the 5 % level after Holm's correction for the number \
of claims about the figure under the same steps (of a claim's two hypotheses one is false, so that claims are counted, not tests). \
Otherwise it *cannot be told*.

No test decides where an algorithm diverged on a seed: the seeds that survived are no fair sample. That a rival diverged \
where LoPA did not is a result of its own, and so is the reverse; neither counts as held. Nor where all accuracies are at \
their ceiling, within half a point of 1, where no difference above the margin is possible; nor where two variants \
ran with different given steps. Tuned steps are those of each variant: what is compared is what each can reach.

Costs are those of the level that both reach, the worse of the two at its end. Between two measurements they are interpolated \
linearly: runs of Figures 1 to 4 are measured 15 times, the others 20 times, so that a level is placed within a \
fifteenth or a twentieth of a run, and a factor near 1 means no more than that.

Given and tuned steps are judged separately. Comparisons that are nearly copies count once: those of LoPA-GT and of LoPA-LG with the \
same rival, and accuracies of the same models on all classes and on a node's own; claims about all settings together are made of \
the same runs and are shown, not counted. A sentence *holds*, *is reversed* or has *no difference above the margin* if all \
its comparisons have this verdict, *mostly* if more than half of them have it; *cannot be told* if more than half cannot, and *in \
part* if neither is so, but some held. Comparisons in which an algorithm diverged or accuracy is at its ceiling are not among \
those; they are listed.";

impl Pages<'_> {
    /// The first page: ten sentences, then a section per figure.
    pub fn first(&self) -> String {
        let mut text = String::from("# Reproduction\n\n");
        if self.quick {
            text.push_str(
                "**A tenth of the iterations on two seeds: this shows that everything runs. It is \
                 neither compared with the paper nor judged.**\n\n",
            );
        } else {
            text.push_str("What of the paper's experiments holds, in ten sentences:\n\n");
            let link = |figure: &str| {
                let section = SECTIONS.iter().find(|(.., figures)| figures.contains(&figure));
                section.map_or(("Statistics", "#statistics"), |&(name, address, _)| (name, address))
            };
            text.push_str(&ten(self.judged, link));
        }
        for picture in self.pictures.iter().filter(|picture| picture.ends_with("savings.svg")) {
            let _ = write!(text, "\n![What LoPA-GT saves]({picture})\n");
        }
        let _ = write!(text, "\n{}\n", self.lost());
        if let Some(far) = self.far() {
            let _ = write!(text, "\n{far}\n");
        }
        let _ = write!(
            text,
            "\nEvery number was measured by this software and is written by the command that ran it:\n\n\
             ```sh\n{}\n```\n\n\
             Settings are in `experiments/fig*.toml`. *Given* steps are the paper's where it has \
             any, which is for LoPA in Figures 1 to 4; all others were chosen here, as the top of each \
             file says, and are not the same for every algorithm: where they decide, a comparison says \
             more about them than about the algorithms. The reported seeds count as seen \
             by the baselines' given steps: in Figures 1 and 2 these are the largest that are stable on them, elsewhere it is \
             not recorded on which seeds they were chosen. *Tuned* steps come from `lopa tune \
             FILE --data data`{}. Levels are mean ± standard deviation over seeds at the end of \
             the run; the paper's are read from its figures by eye. [All numbers]({}) are in an \
             appendix, and [Differences from the paper](errata.md) states what is done here where the \
             paper is silent or wrong.\n\n## Statistics\n\n{STATISTICS}\n",
            self.command,
            self.search.map_or(", as the top of each file says".into(), searched),
            self.appendix,
        );
        if !self.times {
            text.push_str(
                "\nSeconds were not measured on an idle machine; they are left out, and claims about \
                 them are not judged.\n",
            );
        }
        for (heading, _, figures) in SECTIONS {
            self.section(&mut text, heading, figures);
        }
        text
    }

    fn section(&self, text: &mut String, heading: &str, figures: &[&str]) {
        let levels: Vec<&Value> =
            self.entries.iter().filter(|entry| entry["figure"] == figures[0]).collect();
        let judged: Vec<&Judgement> =
            self.judged.iter().filter(|one| figures.contains(&one.figure)).collect();
        if levels.is_empty() && judged.is_empty() {
            return;
        }
        let _ = write!(text, "\n## {heading}\n");
        let own = own(&levels);
        if !levels.is_empty() {
            text.push_str("\n| data | algorithm | steps | seeds | loss | test accuracy |");
            let paper = if self.quick { "" } else { " paper's |" };
            let own = own.map_or(String::new(), |(_, head)| format!(" {head} |"));
            let seconds = if self.times { " seconds |" } else { "" };
            let _ = writeln!(text, "{paper}{own} Φ(x̄) | consensus |{seconds}");
            let columns =
                8 + [!self.quick, !own.is_empty(), self.times].into_iter().filter(|x| *x).count();
            let _ = writeln!(text, "|{}", "---|".repeat(columns));
        }
        for entry in levels {
            let _ = write!(
                text,
                "| {} | {} | {} | {} | {} | {} |",
                data(entry),
                word(entry, "algorithm"),
                word(entry, "steps"),
                seeds(entry),
                cell(&entry["loss"], 4),
                cell(&entry["test_accuracy"], 3),
            );
            if !self.quick {
                let paper = level(entry).map_or(String::new(), |one| one.test_accuracy.to_string());
                let _ = write!(text, " {paper} |");
            }
            if let Some((measure, _)) = own {
                let _ = write!(text, " {} |", cell(&entry[measure], 3));
            }
            let consensus = entry["consensus"]["mean"].as_f64();
            let consensus = consensus.map_or(String::new(), |mean| format!("{mean:.1e}"));
            let _ = write!(text, " {} | {consensus} |", cell(&entry["phi"], 4));
            if self.times {
                let _ = write!(text, " {} |", cell(&entry["seconds"], 2));
            }
            text.push('\n');
        }
        claims(text, &judged);
        for picture in self.pictures {
            let name = picture.rsplit('/').next().unwrap_or(picture).trim_end_matches(".svg");
            if figures.contains(&name.split('-').next().unwrap_or(name)) {
                let _ = write!(text, "\n![{name}]({picture})\n");
            }
        }
    }

    /// One sentence about the runs that diverged.
    fn lost(&self) -> String {
        let (mut runs, mut diverged, mut who) = (0, 0, Vec::new());
        for entry in once(self.entries) {
            let count = count(entry);
            runs += count.of;
            diverged += count.diverged();
            if count.diverged() > 0 {
                let (algorithm, steps) = (word(entry, "algorithm"), word(entry, "steps"));
                let (figure, data) = (word(entry, "figure"), data(entry));
                let (lost, of) = (count.diverged(), count.of);
                who.push(format!(
                    "{algorithm} on {lost} of {of} seeds ({figure}, {data}, {steps} steps)"
                ));
            }
        }
        match diverged {
            0 => format!("None of the {runs} runs diverged."),
            _ => format!("{diverged} of the {runs} runs diverged: {}.", who.join("; ")),
        }
    }

    /// Where the levels are far from the paper's.
    fn far(&self) -> Option<String> {
        let far = |entry: &Value| {
            let paper = level(entry)?.test_accuracy;
            let ours = entry["test_accuracy"]["mean"].as_f64()?;
            let here = entry["steps"] == "given" && entry["algorithm"] == "lopa-gt";
            (here && (ours - paper).abs() > 0.05).then(|| {
                format!(
                    "{} ({}): {ours:.3}, where the paper has {paper}",
                    data(entry),
                    word(entry, "figure")
                )
            })
        };
        let all: Vec<String> = once(self.entries).filter_map(far).collect();
        (!self.quick && !all.is_empty()).then(|| {
            format!(
                "LoPA-GT's test accuracy with given steps is more than 5 points from the paper's in: \
                 {}. There the paper's setting is not known well enough to repeat it, and a claim that \
                 holds or fails here may do otherwise in it; [Readings](readings.md) says which other \
                 settings come near.",
                all.join("; ")
            )
        })
    }

    /// The appendix: every number.
    pub fn tables(&self) -> String {
        let mut text = String::from(
            "# Reproduction: all numbers\n\n## Levels\n\n\
             | figure | data | algorithm | steps | seeds | loss | train accuracy | test accuracy | on own classes | \
             on own rows | Φ(x̄) | \\|∇Φ(x̄)\\|² | consensus | Hessians |\n\
             |---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        );
        let mean = |entry: &Value, key: &str| entry[key]["mean"].as_f64();
        for entry in once(self.entries) {
            let power = |key| mean(entry, key).map_or(String::new(), |mean| format!("{mean:.1e}"));
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                word(entry, "figure"),
                data(entry),
                word(entry, "algorithm"),
                word(entry, "steps"),
                seeds(entry),
                cell(&entry["loss"], 4),
                cell(&entry["train_accuracy"], 3),
                cell(&entry["test_accuracy"], 3),
                cell(&entry["own_test_accuracy"], 3),
                cell(&entry["holdout_accuracy"], 3),
                cell(&entry["phi"], 4),
                power("grad_phi_sq"),
                power("consensus"),
                mean(entry, "hessians").map_or(String::new(), |mean| format!("{mean:.0}")),
            );
        }
        if !self.judged.is_empty() {
            let _ = write!(text, "\n## Claims\n\n{}", table(self.judged));
        }
        text
    }
}

/// The measure on a node's own classes or rows, if there is one that is not the test accuracy, and its name.
fn own(levels: &[&Value]) -> Option<(&'static str, &'static str)> {
    let known = [("holdout_accuracy", "on own rows"), ("own_test_accuracy", "on own classes")];
    let differs = |(measure, _): &(&str, &str)| {
        let mean = |entry: &Value, name: &str| entry[name]["mean"].as_f64();
        levels.iter().any(|entry| {
            mean(entry, measure).is_some_and(|own| Some(own) != mean(entry, "test_accuracy"))
        })
    };
    known.into_iter().find(differs)
}

/// A section's claims, with both kinds of steps side by side.
fn claims(text: &mut String, judged: &[&Judgement]) {
    if judged.is_empty() {
        return;
    }
    text.push_str(
        "\n| claim | compared | margin | with given steps | with tuned steps |\n|---|---|---|---|---|\n",
    );
    let mut shown: Vec<(&str, &str)> = Vec::new();
    for one in judged {
        let key = (one.claim.as_str(), one.test.as_str());
        if shown.contains(&key) {
            continue;
        }
        shown.push(key);
        let cell = |steps: &str| {
            let is = |other: &&&Judgement| (other.claim.as_str(), other.test.as_str()) == key;
            let found = judged.iter().filter(is).find(|other| other.steps == steps);
            found.map_or(String::new(), |one| match one.effect() {
                none if none.is_empty() => one.words(),
                effect => format!("{}: {effect}, {}", one.words(), one.number()),
            })
        };
        let (claim, test, margin) = (&one.claim, &one.test, one.margin.words);
        let (given, tuned) = (cell("given"), cell("tuned"));
        let _ = writeln!(text, "| {claim} | {test} | {margin} | {given} | {tuned} |");
    }
}

/// The table of claims, with all computed values.
pub fn table(judgements: &[Judgement]) -> String {
    let mut text = format!(
        "{STATISTICS}\n\n\
         | figure | claim | test | steps | mean (95 % interval) | number | p | corrected | margin | p of equality | corrected | verdict |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for judgement in judgements {
        let Judgement { figure, claim, test, steps, margin, .. } = judgement;
        let number = judgement.number();
        let p = |p: Option<f64>| match p {
            None => String::new(),
            Some(p) if p < 1e-3 => "< 0.001".into(),
            Some(p) => format!("{p:.3}"),
        };
        let _ = writeln!(
            text,
            "| {figure} | {claim} | {test} | {steps} | {} | {number} | {} | {} | {} | {} | {} | {} |",
            judgement.effect(),
            p(judgement.p),
            p(judgement.p_corrected),
            margin.words,
            p(judgement.p_equal),
            p(judgement.p_equal_corrected),
            judgement.words(),
        );
    }
    text
}

/// ": 21 trials …", the search behind every tuned file.
fn searched(TuneSpec { trials, seeds, share, metric, confirm, .. }: &TuneSpec) -> String {
    let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
    let seeds = seeds.join(", ");
    let length = match share {
        1.0 => "at full length".to_string(),
        share => format!("with {share} of the budget"),
    };
    format!(
        ": {trials} trials for every algorithm in every file, on seeds {seeds}, which are not those \
         reported, {length}, by {metric}; around the file's own steps, and with the loops of SPDB and MA-DSBO and SPDB's \
         `inverse` and `consensus` among what is searched. Where the best was at the edge of its range, the range moved, and \
         all algorithms got half as many trials again, up to three times. The best trial was taken that survived {confirm} \
         further seeds at full length, there also with steps a quarter larger; the top of each file says which, which \
         ranges moved, and where a value is still the largest or smallest tried, so that a better one may lie beyond"
    )
}

fn word(entry: &Value, key: &str) -> String {
    entry[key].as_str().unwrap_or_default().to_string()
}

fn data(entry: &Value) -> String {
    match entry["variant"].as_str() {
        Some(variant) => format!("{}, {variant}", word(entry, "dataset")),
        None => word(entry, "dataset"),
    }
}

fn seeds(entry: &Value) -> String {
    match count(entry) {
        Count { sound, of } if sound == of => of.to_string(),
        Count { sound, of } => format!("{sound} of {of}, the others diverged"),
    }
}

fn cell(value: &Value, digits: usize) -> String {
    match (value["mean"].as_f64(), value["std"].as_f64()) {
        (Some(mean), Some(std)) => format!("{mean:.digits$} ± {std:.digits$}"),
        (Some(mean), None) => format!("{mean:.digits$}"),
        _ => "".into(),
    }
}

/// Every run once: Figures 5 and 6 show the same.
pub fn once(entries: &[Value]) -> impl Iterator<Item = &Value> {
    entries.iter().filter(|entry| entry["figure"] != "fig6")
}

/// The seeds of an entry.
pub fn count(entry: &Value) -> Count {
    let of = entry["seeds"].as_array().map_or(0, Vec::len);
    let diverged = entry["diverged"].as_u64().unwrap_or(0) as usize;
    Count { sound: of.saturating_sub(diverged), of }
}
