//! Things a user picks by name: each registry is a table, and from its lines come the parser, the
//! list, the documentation, the editor's schema and the conformance tests.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::Table;

use crate::config::Section;
use crate::error::{Error, Result, nearest};

/// The parameters of one choice: a plain struct, checked once, at the door.
///
/// Derive `Serialize`, `Deserialize` (with `deny_unknown_fields`) and `JsonSchema`; the doc
/// comments of the fields become the documentation that users and editors see.
pub trait Params: DeserializeOwned + Serialize + JsonSchema + 'static {
    /// Whether the values make sense; the first one that does not is named.
    fn check(&self) -> std::result::Result<(), Fault> {
        Ok(())
    }
}

/// A choice without parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoParams {}

impl Params for NoParams {}

/// A value out of its range: which key, and what it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The key.
    pub key: &'static str,
    /// What is wrong with it.
    pub message: String,
}

impl Fault {
    /// `Ok` if `holds`; else the fault that `key` = `value` must be as `must` says.
    pub fn unless(
        holds: bool,
        key: &'static str,
        value: impl std::fmt::Display,
        must: &str,
    ) -> std::result::Result<(), Fault> {
        match holds {
            true => Ok(()),
            false => Err(Fault { key, message: format!("`{key} = {value}` must be {must}") }),
        }
    }
}

/// One line of a registry. `B` is the type of the function that builds the thing.
pub struct Entry<B: ?Sized> {
    /// The name in experiment files.
    pub name: &'static str,
    /// One line on what it is.
    pub about: &'static str,
    /// Builds it from its resolved parameters.
    pub build: Box<B>,
    resolve: fn(Section) -> Result<Table>,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

impl<B: ?Sized> Entry<B> {
    /// A line for something with parameters `P`.
    pub fn new<P: Params>(name: &'static str, about: &'static str, build: Box<B>) -> Entry<B> {
        let resolve = |section: Section| {
            let place = section.place();
            let params: P = section.read()?;
            Table::try_from(params).map_err(|error| {
                let message = format!("a number is too large: {error}");
                Error::config("config/out-of-range", message).at(place)
            })
        };
        Entry { name, about, build, resolve, schema: SchemaGenerator::subschema_for::<P> }
    }

    /// Reads and checks its parameters; the table that comes back has every default filled in.
    pub fn resolve(&self, section: Section) -> Result<Table> {
        (self.resolve)(section)
    }

    /// The JSON Schema of its parameters.
    pub fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        (self.schema)(generator)
    }
}

/// The typed parameters of a resolved table.
///
/// # Panics
/// If the table did not come from [`Entry::resolve`] with the same `P`.
pub fn params<P: Params>(table: &Table) -> P {
    table.clone().try_into().expect("the table was resolved with these parameters")
}

/// Finds a line by name; an unknown name is answered with the known ones.
pub fn find<'a, B: ?Sized>(
    what: &str,
    registry: &'a [Entry<B>],
    name: &str,
) -> Result<&'a Entry<B>> {
    registry.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let known: Vec<_> = registry.iter().map(|entry| entry.name).collect();
        let error = Error::config("config/unknown-name", format!("unknown {what} `{name}`"));
        match nearest(name, known.iter().copied()) {
            Some(near) => error.hint(format!("did you mean `{near}`? known: {}", known.join(", "))),
            None => error.hint(format!("known: {}", known.join(", "))),
        }
    })
}
