//! Registries: lists from which experiment files choose by name.
//!
//! A registry is a list of entries. From an entry come the parser of its parameters, its line in
//! `lopa list`, its part of the editor's schema, and its place in the conformance tests. Registries
//! are plain values: add entries of your own and pass them on.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::Table;

use super::{Section, Source};
use crate::error::{Error, Fault, Result, nearest};

/// The parameters of an entry: a plain struct, checked once, when a file is read.
///
/// [`params!`](crate::params) declares one; the doc comments of the keys become the documentation that
/// users and editors see.
pub trait Params: DeserializeOwned + Serialize + JsonSchema + Send + Sync + 'static {
    /// The keys that a file must give, although they have a default.
    fn required() -> Vec<&'static str> {
        Vec::new()
    }

    /// Checks the values; the error names the first invalid one.
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }
}

/// An entry without parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoParams {}

impl Params for NoParams {}

/// One entry of a registry: it builds a `B` from its parameters and has metadata `F`.
pub struct Entry<B: ?Sized, F = ()> {
    /// The name in experiment files.
    pub name: String,
    /// A description in one line.
    pub about: String,
    /// Its metadata.
    pub facts: F,
    /// Parameters that make sense on a small problem, for lists and conformance tests.
    pub typical: Option<Table>,
    read: Box<ReadFn<B>>,
    schema: fn(&mut SchemaGenerator) -> Schema,
    /// The reader for when no code may run, if it differs.
    inert: Option<Box<ReadFn<B>>>,
    /// Whether its parameters name code that was not run because of [`Registry::run_no_code`].
    pub unrun: bool,
}

type ReadFn<B> = dyn Fn(Section) -> Result<(Table, Arc<B>)> + Send + Sync;

impl<B: ?Sized> Entry<B> {
    /// An entry that builds something from parameters `P`.
    pub fn new<P: Params>(
        name: impl Into<String>,
        about: impl Into<String>,
        build: impl Fn(P) -> Arc<B> + Send + Sync + 'static,
    ) -> Entry<B> {
        Entry::with_facts(name, about, (), build)
    }
}

impl<B: ?Sized, F> Entry<B, F> {
    /// An entry with metadata.
    pub fn with_facts<P: Params>(
        name: impl Into<String>,
        about: impl Into<String>,
        facts: F,
        build: impl Fn(P) -> Arc<B> + Send + Sync + 'static,
    ) -> Entry<B, F> {
        Entry {
            name: name.into(),
            about: about.into(),
            facts,
            typical: None,
            read: reader(build),
            schema: SchemaGenerator::subschema_for::<P>,
            inert: None,
            unrun: false,
        }
    }

    /// For an entry whose parameters name code that reading or building runs: the same without running it.
    /// The built object fails with a message when it is used.
    pub fn inert<P: Params>(
        mut self,
        build: impl Fn(P) -> Arc<B> + Send + Sync + 'static,
    ) -> Entry<B, F> {
        self.inert = Some(reader(build));
        self
    }

    /// The JSON Schema of its parameters.
    pub fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        (self.schema)(generator)
    }
}

/// Reads the parameters `P` of a section, and builds something from them.
fn reader<B: ?Sized, P: Params>(
    build: impl Fn(P) -> Arc<B> + Send + Sync + 'static,
) -> Box<ReadFn<B>> {
    Box::new(move |section: Section| {
        let place = section.place();
        let params: P = section.read()?;
        let table = Table::try_from(&params).map_err(|error| {
            let message = format!("a number is too large: {error}");
            Error::config("config/out-of-range", message).at(place)
        })?;
        Ok((table, build(params)))
    })
}

/// Entries of one kind, in the order they are listed.
pub struct Registry<B: ?Sized, F = ()> {
    what: &'static str,
    entries: Vec<Entry<B, F>>,
}

impl<B: ?Sized, F> Registry<B, F> {
    /// A registry of these entries; `what` names their kind in messages: "unknown graph `rign`".
    pub fn new(what: &'static str, entries: Vec<Entry<B, F>>) -> Registry<B, F> {
        Registry { what, entries }
    }

    /// Adds an entry; one of the same name is replaced.
    pub fn add(&mut self, entry: Entry<B, F>) {
        self.entries.retain(|known| known.name != entry.name);
        self.entries.push(entry);
    }

    /// From here on, entries that run code are [inert](Entry::inert).
    pub fn run_no_code(&mut self) {
        for entry in &mut self.entries {
            if let Some(inert) = entry.inert.take() {
                entry.read = inert;
                entry.unrun = true;
            }
        }
    }

    /// The names of all entries.
    pub fn names(&self) -> Vec<&str> {
        self.entries.iter().map(|entry| &entry.name[..]).collect()
    }

    /// Finds an entry by name; the error for an unknown name lists the known ones.
    pub fn find(&self, name: &str) -> Result<&Entry<B, F>> {
        self.entries.iter().find(|entry| entry.name == name).ok_or_else(|| {
            let known = self.names();
            let message = format!("unknown {} `{name}`", self.what);
            let error = Error::config("config/unknown-name", message);
            let all = format!("known: {}", known.join(", "));
            match nearest(name, known) {
                Some(near) => error.hint(format!("did you mean `{near}`? {all}")),
                None => error.hint(all),
            }
        })
    }

    /// Reads a section of a file as a choice: its `name`, and the parameters of that entry.
    pub fn read(&self, mut section: Section) -> Result<Choice<B>> {
        let place = section.place_of("name");
        let Some(name) = section.value::<String>("name")? else {
            let message = format!("which {}? `name` is missing{}", self.what, section.inside());
            return Err(Error::config("config/missing-key", message)
                .at(place)
                .hint(format!("known: {}", self.names().join(", "))));
        };
        let entry = self.find(&name).map_err(|error| error.at(place))?;
        let read = (entry.read)(section);
        let (params, build) = read.map_err(|error| self.with_example(error, entry))?;
        Ok(Choice { name, params, build })
    }

    /// Adds a typical value to the error for a key that is missing.
    fn with_example(&self, error: Error, entry: &Entry<B, F>) -> Error {
        let key = error.message.split('`').nth(1).unwrap_or_default();
        let typical = entry.typical.as_ref().and_then(|typical| typical.get(key));
        let list = if self.what == "data set" { "data".into() } else { plural(self.what) };
        let hint = match (error.id, typical) {
            ("config/missing-key", Some(value)) if self.what == "algorithm" => format!(
                "for example `{key} = {value}`; `lopa init` finds step sizes for data, and `lopa theory \
                 steps` for an experiment"
            ),
            ("config/missing-key", Some(value)) => format!("for example `{key} = {value}`"),
            ("config/missing-key", None) => {
                format!("`lopa list {list} {}` explains it", entry.name)
            }
            _ => return error,
        };
        error.hint(hint)
    }

    /// The same, from a name and a table of parameters.
    pub fn choose(&self, name: &str, params: &Table) -> Result<Choice<B>> {
        let mut table = Table::new();
        table.insert("name".into(), name.into());
        table.extend(params.clone());
        let text = toml::to_string(&table).expect("a table is TOML");
        let source = Source::new(format!("{} `{name}`", self.what), text);
        self.read(source.root()?)
    }

    /// An entry with its [typical](Entry::typical) parameters, if it has any.
    pub fn typical(&self, name: &str) -> Result<Option<Choice<B>>> {
        let typical = self.find(name)?.typical.as_ref();
        typical.map(|params| self.choose(name, params)).transpose()
    }
}

/// `graphs` for `graph`, as in `lopa list`.
fn plural(what: &str) -> String {
    if what.ends_with('s') { what.into() } else { format!("{what}s") }
}

impl<B: ?Sized, F> Deref for Registry<B, F> {
    type Target = [Entry<B, F>];

    fn deref(&self) -> &[Entry<B, F>] {
        &self.entries
    }
}

impl<'a, B: ?Sized, F> IntoIterator for &'a Registry<B, F> {
    type Item = &'a Entry<B, F>;
    type IntoIter = std::slice::Iter<'a, Entry<B, F>>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter()
    }
}

/// An entry chosen from a registry: its parameters, and the object built from them.
pub struct Choice<B: ?Sized> {
    /// Its name in the registry.
    pub name: String,
    params: Table,
    /// The object that the entry built from its parameters.
    pub build: Arc<B>,
}

impl<B: ?Sized> Choice<B> {
    /// Its parameters, defaults filled in.
    pub fn params(&self) -> &Table {
        &self.params
    }

    /// The table that a file would hold: the name, then the parameters.
    pub fn to_table(&self) -> Table {
        let mut table = Table::new();
        table.insert("name".into(), self.name.clone().into());
        table.extend(self.params.clone());
        table
    }

    /// The parameters as the struct they were read into; `None` if they are not such parameters.
    pub fn typed<P: Params>(&self) -> Option<P> {
        self.params.clone().try_into().ok()
    }
}

impl<B: ?Sized> Clone for Choice<B> {
    fn clone(&self) -> Choice<B> {
        let Choice { name, params, build } = self;
        Choice { name: name.clone(), params: params.clone(), build: build.clone() }
    }
}

impl<B: ?Sized> PartialEq for Choice<B> {
    fn eq(&self, other: &Choice<B>) -> bool {
        (&self.name, &self.params) == (&other.name, &other.params)
    }
}

impl<B: ?Sized> fmt::Debug for Choice<B> {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{} {:?}", self.name, self.params)
    }
}

/// Declares the parameters of an entry of a registry: their meaning, defaults and ranges.
///
/// The doc comments become the help that users and editors see; a key that is missing from a file
/// has its default, an unknown key is an error. After the default come the ranges, functions of
/// [`config::range`](crate::config::range): `step`, `weight`, `positive`, `from_to(1, 9)`, … A key
/// that is `required` must be given; its default is used in lists and tests only. Conditions on
/// several keys are checked by a function after the struct.
///
/// ```
/// use lopa::algorithms::prelude::*;
///
/// params! {
///     /// Parameters of `ridge`.
///     pub struct Ridge {
///         /// Entries of θ.
///         features: usize = 5, from_to(1, 1000);
///         /// Step size of x.
///         alpha: Schedule = 0.1, required, step;
///         /// Samples of f; by default as many as there are entries.
///         samples: Option<usize> = None, at_least(1);
///     }
///     check |ridge| {
///         let samples = ridge.samples.unwrap_or(ridge.features);
///         Fault::unless(samples >= ridge.features, "samples", samples, "at least `features`")
///     }
/// }
///
/// assert_eq!(Ridge::default().features, 5);
/// assert!(Ridge { features: 0, ..Ridge::default() }.check().is_err());
/// ```
#[macro_export]
macro_rules! params {
    (
        $(#[$about:meta])*
        $visibility:vis struct $name:ident {
            $(
                $(#[$doc:meta])*
                $key:ident: $type:ty = $default:expr $(, $range:ident $(($($bound:expr),+))?)*;
            )*
        }
        $(check $check:expr)?
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, $crate::macros::Serialize, $crate::macros::Deserialize)]
        #[derive($crate::macros::JsonSchema)]
        #[serde(crate = "lopa::macros::serde", default, deny_unknown_fields)]
        #[schemars(crate = "lopa::macros::schemars", transform = lopa::macros::require::<$name>)]
        $visibility struct $name {
            $($(#[$doc])* pub $key: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                $name {
                    $($key: <$type as $crate::config::range::FromDefault<_>>::from_default($default),)*
                }
            }
        }

        impl $crate::config::Params for $name {
            fn required() -> Vec<&'static str> {
                let words: &[(&str, &str)] = &[$($((stringify!($key), stringify!($range)),)*)*];
                let required = words.iter().filter(|(_, word)| *word == "required");
                required.map(|(key, _)| *key).collect()
            }

            fn check(&self) -> ::std::result::Result<(), $crate::error::Fault> {
                $($(
                    $crate::config::range::$range(&self.$key, stringify!($key) $(, $($bound),+)?)?;
                )*)*
                $($crate::macros::check(self, $check)?;)?
                Ok(())
            }
        }
    };
}

/// Declares an enumeration of the words that a parameter can be; the first is the default.
///
/// ```
/// use lopa::algorithms::prelude::*;
///
/// choices! {
///     /// Which derivatives are asked for.
///     pub enum Order {
///         /// Second.
///         Second,
///         /// First.
///         First,
///     }
/// }
///
/// assert_eq!(Order::default(), Order::Second);
/// ```
#[macro_export]
macro_rules! choices {
    (
        $(#[$about:meta])*
        $visibility:vis enum $name:ident {
            $(#[$first_doc:meta])* $first:ident,
            $($(#[$doc:meta])* $choice:ident,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[derive($crate::macros::Serialize, $crate::macros::Deserialize, $crate::macros::JsonSchema)]
        #[serde(crate = "lopa::macros::serde", rename_all = "kebab-case")]
        #[schemars(crate = "lopa::macros::schemars")]
        $visibility enum $name {
            $(#[$first_doc])*
            #[default]
            $first,
            $($(#[$doc])* $choice,)*
        }
    };
}
