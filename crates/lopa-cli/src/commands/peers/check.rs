//! `lopa node --check`: the link to each neighbour, before a run.

use std::process::ExitCode;
use std::time::Duration;

use lopa::error::Result;
use lopa_peers::{Checked, Found, Log, Place, Reach};
use serde_json::{Value, json};

use crate::commands::signals::Signals;
use crate::output::Output;

/// Clocks that differ by more seconds than this make logs hard to compare.
const CLOCK: f64 = 5.0;

/// Round trips that take longer than this dominate a run.
const SLOW: Duration = Duration::from_millis(500);

/// Checks all links and prints what was found; the exit code is that of the worst.
pub fn check(
    place: Place,
    patience: Duration,
    signals: &Signals,
    output: &Output,
) -> Result<ExitCode> {
    let found = lopa_peers::check(place, patience, Log::new(|_, _| {}), &signals.shared())?;
    if let Some(code) = signals.code() {
        return Ok(ExitCode::from(code));
    }
    match output.json() {
        true => output.document(&Value::Array(found.iter().map(document).collect())),
        false => {
            let head = ["neighbour", "link", "round trip", "clock", "lopa", "terms", "what to do"];
            output.text(&output.list(&head, found.iter().map(row).collect()));
        }
    }
    let blocked = found.iter().any(|checked| checked.found.is_err());
    let differs =
        |checked: &Checked| matches!(&checked.found, Ok(found) if found.differs.is_some());
    let (code, said) = match (blocked, found.iter().any(differs)) {
        (_, true) => (7, "some neighbours have other terms: the run would be refused"),
        (true, false) => (6, "some neighbours were not reached"),
        (false, false) => (0, "all neighbours were reached: start the run with `lopa node`"),
    };
    match code {
        0 => output.note(said),
        _ => output.warn(said),
    }
    Ok(ExitCode::from(code))
}

/// How packets travel, in a word.
fn link(checked: &Checked) -> &'static str {
    match &checked.found {
        Ok(Found { reach: Reach::Direct(_), .. }) => "direct",
        Ok(Found { reach: Reach::Relayed(_), .. }) => "relayed",
        Err(_) => "blocked",
    }
}

fn row(checked: &Checked) -> Vec<String> {
    let mut row = vec![checked.name.clone(), link(checked).to_string()];
    match &checked.found {
        Ok(found) => row.extend([
            format!("{:.1} ms", found.round_trip.as_secs_f64() * 1e3),
            format!("{:+.1} s", found.clock),
            found.lopa.clone(),
            if found.differs.is_none() { "the same" } else { "differ" }.to_string(),
        ]),
        Err(_) => row.extend(["–"; 4].map(String::from)),
    }
    row.push(remedy(checked));
    row
}

fn document(checked: &Checked) -> Value {
    let Checked { name, .. } = checked;
    let (link, remedy) = (link(checked), remedy(checked));
    match &checked.found {
        Ok(Found { reach, round_trip, clock, lopa, differs, checking }) => {
            let (Reach::Direct(through) | Reach::Relayed(through)) = reach;
            json!({
                "neighbour": name, "link": link, "through": through,
                "round_trip_seconds": round_trip.as_secs_f64(), "clock_seconds": clock, "lopa": lopa,
                "same_terms": differs.is_none(), "differs": differs, "checking": checking,
                "remedy": remedy,
            })
        }
        Err(why) => json!({ "neighbour": name, "link": link, "why": why, "remedy": remedy }),
    }
}

/// What an operator should do about a neighbour.
fn remedy(checked: &Checked) -> String {
    let Checked { name, addresses, found } = checked;
    let found = match found {
        Ok(found) => found,
        Err(why) if addresses.is_empty() => {
            return format!(
                "start `lopa node --check` at {name} too; else it needs a relay ({why})"
            );
        }
        Err(why) => {
            let at = addresses.join(" or ");
            return format!(
                "start `lopa node --check` at {name} too; let UDP pass to {at}, or use a relay ({why})"
            );
        }
    };
    let Found { reach, round_trip, clock, differs, .. } = found;
    let mut advice = Vec::new();
    if let Some(differs) = differs {
        advice.push(format!("agree with {name}: {differs}"));
    }
    if clock.abs() > CLOCK {
        advice.push("set the clocks: logs will be hard to compare".to_string());
    }
    if *round_trip > SLOW {
        advice.push("expect slow rounds".to_string());
    }
    if advice.is_empty() {
        let fine = match reach {
            Reach::Direct(_) => "nothing",
            Reach::Relayed(_) => "nothing; an open UDP port at one end would be faster",
        };
        return fine.to_string();
    }
    advice.join("; ")
}
