//! `lopa list algorithms lopa-gt`, `lopa list run`: the keys of an entry or of a section.

use lopa::config::{Entry, Registry};
use lopa::data::Preparation;
use lopa::engine::messages::Attack;
use lopa::error::{Error, Result, nearest};
use lopa::experiment::keys::{Key, Meaning, keys};
use lopa::experiment::{CheckpointSpec, PrivacySpec, Registries, RunSpec, schema};
use lopa::network::time::TimeSpec;
use lopa_study::tune::TuneSpec;
use serde_json::{Value, json};

use super::What;
use crate::output::Output;

/// The keys of one entry or section.
pub struct Page {
    title: String,
    about: String,
    keys: Vec<Key>,
    note: Option<&'static str>,
}

/// The page of an entry, or of a section, or of one of its keys; `None` for a list of entries.
pub fn page(what: What, name: Option<&str>, registries: &Registries) -> Result<Option<Page>> {
    let Some(section) = section(what) else {
        return name.map(|name| entry(what, name, registries)).transpose();
    };
    let Some(name) = name else { return Ok(Some(section)) };
    let inside = format!("{name}.");
    let own = |key: &&Key| key.key == name || key.key.starts_with(&inside);
    let keys: Vec<Key> = section.keys.iter().filter(own).cloned().collect();
    match keys.is_empty() {
        false => Ok(Some(Page { keys, ..section })),
        true => {
            let known = section.keys.iter().map(|key| &key.key[..]);
            Err(unknown(&format!("key `{name}` of {}", section.title), name, known.collect()))
        }
    }
}

fn entry(what: What, name: &str, registries: &Registries) -> Result<Page> {
    fn of<B: ?Sized, F>(registry: &Registry<B, F>, name: &str) -> Result<Page> {
        let found: &Entry<B, F> = registry.find(name)?;
        let keys = keys(&schema::parameters(found), found.typical.as_ref());
        Ok(Page { title: name.into(), about: found.about.clone(), keys, note: None })
    }
    let shared = "every source also takes the keys of `lopa list preparation`";
    match what {
        What::Algorithms => of(&registries.algorithms, name),
        What::Problems => of(&registries.problems, name),
        What::Graphs => of(&registries.graphs, name),
        What::Weights => of(&registries.weights, name),
        What::Compressors => of(&registries.compressors, name),
        What::Partitions => of(&registries.partitions, name),
        What::Data => Ok(Page { note: Some(shared), ..of(&registries.sources, name)? }),
        What::Scaling => {
            let all = scaling();
            let value = format!("{name:?}");
            let Some(Meaning { meaning, .. }) = all.iter().find(|one| one.value == value) else {
                let known = all.iter().map(|one| one.value.trim_matches('"')).collect();
                return Err(unknown(&format!("scaling `{name}`"), name, known));
            };
            let about = meaning.trim_end_matches('.').to_string();
            Ok(Page { title: name.into(), about, keys: Vec::new(), note: None })
        }
        _ => Err(Error::config("config/missing-key", format!("in which list is `{name}`?"))
            .hint("for example `lopa list algorithms lopa-gt` or `lopa list data csv`")),
    }
}

/// The sections of experiment files whose keys are the same in every file.
fn section(what: What) -> Option<Page> {
    let (title, schema) = match what {
        What::Preparation => ("data", schema::section::<Preparation>()),
        What::Messages => ("messages", schema::messages()),
        What::Attack => ("attack", schema::section::<Attack>()),
        What::Time => ("time", schema::section::<TimeSpec>()),
        What::Privacy => ("privacy", schema::section::<PrivacySpec>()),
        What::Run => ("run", schema::section::<RunSpec>()),
        What::Checkpoint => ("checkpoint", schema::section::<CheckpointSpec>()),
        What::Tune => ("tune", schema::section::<TuneSpec>()),
        _ => return None,
    };
    let about = schema["description"].as_str().unwrap_or_default();
    let about = about.split_whitespace().collect::<Vec<_>>().join(" ");
    let (title, about) = (format!("[{title}]"), about.trim_end_matches('.').to_string());
    Some(Page { title, about, keys: keys(&schema, None), note: None })
}

/// The keys of `[run]`.
pub fn run_keys() -> Vec<String> {
    keys(&schema::section::<RunSpec>(), None).into_iter().map(|key| key.key).collect()
}

fn scaling() -> Vec<Meaning> {
    let all = keys(&schema::section::<Preparation>(), None);
    all.into_iter().find(|key| key.key == "scaling").map(|key| key.values).unwrap_or_default()
}

/// The ways to scale, as a list of entries.
pub fn scalings() -> Value {
    let one = |one: Meaning| {
        let name = one.value.trim_matches('"');
        json!({ "name": name, "about": one.meaning })
    };
    scaling().into_iter().map(one).collect()
}

fn unknown(what: &str, name: &str, known: Vec<&str>) -> Error {
    let error = Error::config("config/unknown-name", format!("unknown {what}"));
    let all = format!("known: {}", known.join(", "));
    match nearest(name, known) {
        Some(near) => error.hint(format!("did you mean `{near}`? {all}")),
        None => error.hint(all),
    }
}

impl Page {
    pub fn print(&self, output: &Output) {
        if output.json() {
            output.document(&json!({
                "name": self.title, "about": self.about, "keys": self.keys
            }));
        } else {
            output.text(&self.text(output));
            self.note.iter().for_each(|note| output.note(note));
        }
    }

    fn text(&self, output: &Output) -> String {
        let code = |text: &str| match output.markdown() && !text.is_empty() {
            true => format!("`{text}`"),
            false => text.to_string(),
        };
        let head = match (&self.title, &self.about) {
            (title, about) if about.is_empty() => code(title),
            (title, about) => format!("{}: {about}", code(title)),
        };
        if self.keys.is_empty() {
            return format!("{head}\n\nno parameters");
        }
        let (mut rows, mut told): (_, Vec<&[Meaning]>) = (Vec::new(), Vec::new());
        for key in &self.keys {
            let default = match (&key.default, &key.example, key.required) {
                (Some(default), ..) => code(default),
                (None, Some(example), _) => format!("required, e.g. {}", code(example)),
                (None, None, true) => "required".into(),
                (None, None, false) => "–".into(),
            };
            rows.push(vec![code(&key.key), key.kind.clone(), default, key.meaning.clone()]);
            // An explanation common to several keys is printed at the first.
            if !told.contains(&&key.values[..]) {
                let row = |Meaning { value, meaning }: &Meaning| {
                    vec![String::new(), format!("  {value}"), String::new(), meaning.clone()]
                };
                rows.extend(key.values.iter().map(row));
                told.push(&key.values);
            }
        }
        format!("{head}\n\n{}", output.list(&["key", "type", "default", "what it does"], rows))
    }
}
