//! A site's own page: what it gained, what it sent, who could learn what from it, and where its model comes from.

use lopa::folder::model::Spent;
use lopa::folder::serve::{AnyScore, DRAWS, Interval, Judged, Site};
use lopa::network::Exposure;

use crate::html::document;
use crate::html::number::{bytes, count};
use crate::html::tables::table;
use crate::svg::escape;

/// The contents of the page.
#[derive(Debug, Clone)]
pub struct SitePage {
    /// The site.
    pub name: String,
    /// The experiment, and which of its runs.
    pub run: String,
    /// How its models do on its own rows.
    pub site: Site,
    /// Who took part in which iterations, if not all nodes did in all of them.
    pub took_part: Option<String>,
    /// What it sent.
    pub sent: Sent,
    /// What its peers can reconstruct, and their names; `None` where neighbours change.
    pub exposure: Option<(Exposure, Vec<String>)>,
    /// The privacy budget that the run has spent, if it has one.
    pub privacy: Option<Spent>,
    /// Titles and values for the registry of models.
    pub lineage: Vec<(&'static str, String)>,
}

/// What a site sent.
#[derive(Debug, Clone)]
pub struct Sent {
    /// Rounds of communication.
    pub rounds: u64,
    /// The names of the neighbours.
    pub neighbours: Vec<String>,
    /// Bytes of a message, on average.
    pub message: f64,
    /// The vectors in them, by their names in the algorithm.
    pub vectors: Vec<&'static str>,
    /// Whether messages may be compressed or lost.
    pub alters: bool,
}

impl Sent {
    /// Whether the part that is not shared by itself is sent as well.
    fn shares_theta(&self) -> bool {
        self.vectors.contains(&"theta")
    }

    /// Whether these are the vectors of LoPA in the personal scope.
    fn is_of_lopa(&self) -> bool {
        matches!(self.vectors[..], ["x"] | ["x", "y"])
    }
}

impl SitePage {
    /// The page.
    pub fn html(&self) -> String {
        let title = format!("{}: what the run gave, and what it took", escape(&self.name));
        let part = |title: &str, content: String| {
            format!("<section><h2>{title}</h2>\n{content}</section>\n")
        };
        let sections = [
            part("Was it worth it?", self.worth()),
            part("What left the site", paragraphs(&self.sent())),
            part("Who could learn what", paragraphs(&self.exposed())),
            part("Where the model comes from", self.lineage()),
        ]
        .concat();
        let body = format!(
            "<header><h1>{title}</h1></header>\n<main id=\"main\">\n<p class=\"closing\">{run}</p>\n{sections}</main>\n\
             <footer>Created by lopa {version} at the site. Nothing was sent to make this page.</footer>\n",
            run = escape(&self.run),
            version = env!("CARGO_PKG_VERSION"),
        );
        document(&title, "", "", &body)
    }

    /// The sentence that answers whether it was worth it.
    pub fn verdict(&self) -> String {
        let Site { judged, rows, measure, models, .. } = &self.site;
        let Some((ours, others)) = models.split_first() else { return String::new() };
        let mut said = format!(
            "On {} {rows}, {} has {} {} with the model that was trained together.",
            count(*judged, "row"),
            self.name,
            article(measure),
            shown(measure, &ours.value)
        );
        for Judged { name, value, gain, .. } in others {
            let whose = match *name {
                "alone" => "a model of its own rows alone",
                _ => "the mean of all models",
            };
            let Some(gain) = gain else { continue };
            let judged = match gain.sign() {
                1 => "training together is better",
                -1 => "training together is worse",
                _ => "neither is better beyond what the choice of rows explains",
            };
            said += &format!(
                " With {whose} it is {}; the gain of {} means that {judged}.",
                shown(measure, value),
                difference(measure, gain)
            );
        }
        said
    }

    fn worth(&self) -> String {
        let Site { trained, judged, rows, measure, models, missing } = &self.site;
        let row = |one: &Judged| {
            let name = match one.name {
                "together" => "trained together, personal to the site",
                "alone" => "of the site's rows alone (linear, with a ridge)",
                _ => "mean of all sites' models",
            };
            let cell = |text: String| format!("<td class=\"number\">{text}</td>");
            let gain = one.gain.map_or("–".into(), |gain| difference(measure, &gain));
            let (first, second) = further(&one.score);
            vec![
                format!("<th scope=\"row\">{name}</th>"),
                cell(shown(measure, &one.value)),
                cell(gain),
                cell(first),
                cell(second),
            ]
        };
        let further = match models.first().map(|one| &one.score) {
            Some(AnyScore::Classes(_)) => ["log-loss", "calibration error"],
            Some(AnyScore::Numbers { .. }) => ["MAE", "R²"],
            _ => ["rows with an event", "rows"],
        };
        let titles = ["model", measure, "gain of training together", further[0], further[1]];
        let caption = format!(
            "{} {rows}; {} to train on. In parentheses, 95 % intervals over rows ({DRAWS} draws with replacement)",
            count(*judged, "row"),
            count(*trained, "row"),
        );
        let mut words = vec![self.verdict()];
        if let Some(took_part) = &self.took_part {
            words.push(format!("Not all sites took part in all iterations: {took_part}."));
        }
        let mut after = missing.clone();
        if let Some(AnyScore::Classes(score)) = models.first().map(|one| &one.score) {
            after.extend(score.calibration.map(|error| {
                format!(
                    "The probabilities that the model states differ from the shares that were observed by {:.1} points on \
                     average (calibration error).",
                    100.0 * error
                )
            }));
        }
        if *judged < 100 {
            after.push(format!(
                "{judged} rows are few: the intervals are wide, and a small gain cannot be seen."
            ));
        }
        let rows = models.iter().map(row).collect();
        format!(
            "{}{}{}",
            paragraphs(&words),
            table("site", &caption, &titles, rows),
            paragraphs(&after)
        )
    }

    /// What was sent, in sentences.
    fn sent(&self) -> Vec<String> {
        let Sent { rounds, neighbours, message, vectors, alters } = &self.sent;
        let all = *rounds as f64 * neighbours.len() as f64 * message;
        let mut said = vec![format!(
            "{} sent {rounds} messages to each of {}: {}. A message has {} on average, {} in all.",
            self.name,
            count(neighbours.len(), "neighbour"),
            neighbours.join(", "),
            bytes(*message),
            bytes(all)
        )];
        let meaning = |name: &&str| match *name {
            "x" => "x (the shared part of the model)".to_string(),
            "y" => "y (the direction in which the shared part moves)".to_string(),
            "theta" => {
                "theta (the site's copy of the part that is not shared by itself)".to_string()
            }
            other => other.to_string(),
        };
        let vectors: Vec<String> = vectors.iter().map(meaning).collect();
        let personal = match self.sent.shares_theta() {
            true => "this method sends the whole model, not only the shared part",
            false => "no part of the personal model leaves the site",
        };
        said.push(format!(
            "Messages hold {}. No row and no label is sent, and {personal}. At each measurement the site also sends its \
             losses and accuracies, and before the first iteration, if sites agree on how to scale columns, sums over its rows.",
            vectors.join(", ")
        ));
        if *alters {
            said.push(
                "The experiment has [messages]: what is sent may be compressed or lost, and the sizes are means over all sites."
                    .into(),
            );
        }
        said
    }

    /// Who can reconstruct what, in sentences.
    fn exposed(&self) -> Vec<String> {
        let mut said = Vec::new();
        match &self.exposure {
            None => said.push(
                "Neighbours change during the run: what they can reconstruct of each other is known for fixed networks only."
                    .into(),
            ),
            Some(_) if !self.sent.is_of_lopa() => said.push(
                "Each neighbour receives these vectors as they are, unless they are compressed or have noise in them; what several \
                 of them can compute together was worked out for LoPA only."
                    .into(),
            ),
            Some((Exposure { one, pairs, two_hops }, names)) => {
                let name = |node: &usize| names.get(*node).cloned().unwrap_or(format!("node {node}"));
                let list = |nodes: &[usize]| nodes.iter().map(name).collect::<Vec<_>>().join(", ");
                let gradient = format!(
                    "the direction in which {}'s rows move the shared part, in every round; from it, something about the rows \
                     can be inferred",
                    self.name
                );
                said.push(match one.is_empty() {
                    true => format!("No single peer can compute {gradient}."),
                    false => format!("These peers can each compute {gradient}: {}.", list(one)),
                });
                if !pairs.is_empty() {
                    let pair = |(a, b): &(usize, usize)| format!("{} with {}", name(a), name(b));
                    let pairs: Vec<String> = pairs.iter().take(12).map(pair).collect();
                    said.push(format!("These can if they work together: {}.", pairs.join("; ")));
                }
                if !two_hops.is_empty() {
                    said.push(format!(
                        "Where gradients are tracked, these peers know the site's copy of the shared part without being its \
                         neighbours: {}.",
                        list(two_hops)
                    ));
                }
            }
        }
        said.push(match self.privacy {
            None => "No noise was added (the experiment has no [privacy]): nothing bounds what these messages say about a \
                     row."
                .into(),
            Some(Spent { simulated: true, .. }) => {
                "The noise came from a known seed, to study its effect: it hides nothing.".into()
            }
            Some(Spent { epsilon, delta, .. }) => format!(
                "Noise was added to all that is sent. The run has spent ε = {epsilon:.3} at δ = {delta:.1e}: whatever somebody \
                 concludes from all messages about a row, its odds change by at most a factor of {:.1}, but for a probability of δ.",
                lopa::math::portable::exp(epsilon)
            ),
        });
        said
    }

    fn lineage(&self) -> String {
        let entry = |(title, value): &(&str, String)| {
            format!("<div><dt>{title}</dt><dd>{}</dd></div>", escape(value))
        };
        let entries: String = self.lineage.iter().map(entry).collect();
        format!("<dl class=\"facts\">{entries}</dl>\n")
    }
}

fn paragraphs(said: &[String]) -> String {
    said.iter().map(|text| format!("<p class=\"closing\">{}</p>\n", escape(text))).collect()
}

fn article(measure: &str) -> String {
    match measure {
        "RMSE" => "an RMSE of".into(),
        "accuracy" => "an accuracy of".into(),
        other => format!("a {other} of"),
    }
}

/// The measure, with its interval.
fn shown(measure: &str, Interval { value, low, high }: &Interval) -> String {
    match measure {
        "accuracy" => {
            format!("{:.1} % ({:.1} to {:.1})", 100.0 * value, 100.0 * low, 100.0 * high)
        }
        _ => format!("{value:.4} ({low:.4} to {high:.4})"),
    }
}

/// A difference of two measures, with its interval.
fn difference(measure: &str, Interval { value, low, high }: &Interval) -> String {
    let text = match measure {
        "accuracy" => {
            format!("{:+.1} points ({:+.1} to {:+.1})", 100.0 * value, 100.0 * low, 100.0 * high)
        }
        _ => format!("{value:+.4} ({low:+.4} to {high:+.4})"),
    };
    text.replace('-', "\u{2212}")
}

/// Two further measures.
fn further(score: &AnyScore) -> (String, String) {
    let number = |value: Option<f64>| value.map_or("–".into(), |value| format!("{value:.3}"));
    match score {
        AnyScore::Classes(score) => (number(score.log_loss), number(score.calibration)),
        AnyScore::Numbers { errors, .. } => {
            (number(errors.map(|errors| errors.mae)), number(errors.map(|errors| errors.r2)))
        }
        AnyScore::Survival { rows, events, .. } => (events.to_string(), rows.to_string()),
    }
}
