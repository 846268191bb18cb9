//! The promises of an algorithm.

use std::collections::BTreeSet;

use rayon::ThreadPoolBuilder;
use schemars::generate::SchemaSettings;
use toml::Table;

use super::compare::{largest, short};
use super::lab::{Lab, Run, difference, iterate};
use super::limit::limit;
use super::{allocations, broken, ensure};
use crate::algorithms::{AnyMethod, Cost, Facts, Task};
use crate::config::{Entry, Source};
use crate::error::{Error, Result};
use crate::experiment::Registries;
use crate::math::real::Real;
use crate::network::outbox::{Outbox, Round};
use crate::problem::Dims;
use crate::problem::derivative::Counts;
use crate::problem::scope::Scope;

/// Puts an algorithm through all checks.
///
/// It is run with its [typical](Entry::typical) parameters, and again with numbers for step sizes that may be
/// left out, in every scope that its facts name, in
/// both precisions, on a small noisy quadratic: eight nodes on a path, n = 5, p = 6, 30 samples per
/// node, batches of 4. The curvature of g on all samples is between 1/2 and 1.
///
/// Messages must keep their length. Variables must be complete: nodes restored from them must
/// continue with the same bits. Runs on any number of threads must have the same bits. `cost` must
/// agree with the counters, schedules must be followed, and facts must name existing variables and
/// parameters. Without noise, a limit that is the same for two constant steps must also be that of
/// decreasing ones.
///
/// # Errors
/// The error of the first check that fails, with an id `conformance/…`, or one of the
/// algorithm's own.
pub fn algorithm(registries: &Registries, name: &str) -> Result<()> {
    let entry = registries.algorithms.find(name)?;
    let place = format!("algorithm `{name}`");
    facts(entry).map_err(|error| error.at(&place))?;
    unknown_key(registries, entry).map_err(|error| error.at(&place))?;
    let typical = entry.typical.clone().unwrap_or_default();
    let variables = runs(registries, name, &typical, entry.facts.scopes)?;
    steps(entry, &variables).map_err(|error| error.at(&place))?;
    match given(entry, &typical) {
        Some(given) => runs(registries, name, &given, entry.facts.scopes).map(drop),
        None => Ok(()),
    }
}

/// Its parameters with numbers for step sizes that may be left out, if there are such.
fn given(entry: &Entry<AnyMethod, Facts>, typical: &Table) -> Option<Table> {
    let mut given = typical.clone();
    let steps = entry.facts.steps.iter();
    for &(key, variables) in steps.filter(|(key, _)| !typical.contains_key(*key)) {
        let step = match (variables.contains(&"x"), variables.contains(&"theta")) {
            (true, true) => 0.1,
            (true, false) => 0.02,
            _ => 0.3,
        };
        given.insert(key.into(), step.into());
    }
    (given != *typical).then_some(given)
}

/// Puts an algorithm with other parameters through the same checks, except for those of its facts.
///
/// `changes` are keys of TOML, such as `order = 'first'`, that replace typical ones.
///
/// # Errors
/// As for [`algorithm`].
pub fn variant(registries: &Registries, name: &str, changes: &str, scopes: &[Scope]) -> Result<()> {
    let mut params = registries.algorithms.find(name)?.typical.clone().unwrap_or_default();
    Source::new("changes", changes).root()?; // an error with its place, if it is not TOML
    params.extend(toml::from_str::<Table>(changes).unwrap_or_default());
    runs(registries, name, &params, scopes).map(drop)
}

/// All checks of runs in these scopes; returns the names of all variables.
fn runs(
    registries: &Registries,
    name: &str,
    params: &Table,
    scopes: &[Scope],
) -> Result<BTreeSet<&'static str>> {
    let mut variables = BTreeSet::new();
    for &scope in scopes {
        let lab = Lab::new(registries, (name, params), scope, 8)?;
        let alone = Lab::new(registries, (name, params), scope, 1)?;
        let at = |precision| format!("algorithm `{name}`, {} scope, {precision}", scope.name());
        all::<f32>(&lab, &alone).map_err(|error| error.at(at("f32")))?;
        all::<f64>(&lab, &alone).map_err(|error| error.at(at("f64")))?;
        variables.extend(lab.variables()?);
        limit(lab, &registries.algorithms.find(name)?.facts)
            .map_err(|error| error.at(at("f64")))?;
    }
    Ok(variables)
}

/// All checks of runs.
fn all<T: Real>(lab: &Lab, alone: &Lab) -> Result<()> {
    messages::<T>(lab)?;
    named::<T>(lab)?;
    finite::<T>(lab)?;
    threads::<T>(lab)?;
    restored::<T>(lab, &lab.method, "a variable that is not listed in `variables`?")?;
    if let Some(staged) = lab.staged(&lab.schedules()) {
        let cause = "the iteration is `oracle.k()`: does the node count for itself?";
        restored::<T>(lab, &staged, cause)?;
    }
    cost::<T>(lab)?;
    one_node::<T>(alone)?;
    tracked::<T>(lab)?;
    for key in lab.schedules() {
        schedule::<T>(lab, &key)?;
    }
    allocates_nothing::<T>(lab)
}

/// Facts that every algorithm has.
fn facts(entry: &Entry<AnyMethod, Facts>) -> Result<()> {
    let Facts { source, scopes, steps, .. } = entry.facts;
    let missing = [
        ("source", source.is_empty(), "say who published it"),
        ("scopes", scopes.is_empty(), "name the scopes that it serves"),
        ("steps", steps.is_empty(), "say which step size drives which variable"),
    ];
    match missing.into_iter().find(|(_, missing, _)| *missing) {
        None => Ok(()),
        Some((fact, _, hint)) => {
            Err(broken("conformance/facts", format!("`{fact}` is empty in its facts")).hint(hint))
        }
    }
}

/// The steps of its facts name variables and parameters that exist.
fn steps(entry: &Entry<AnyMethod, Facts>, variables: &BTreeSet<&'static str>) -> Result<()> {
    let inline = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = entry.schema(&mut inline.into_generator()).to_value();
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|key| key.as_str())
        .collect();
    for (parameter, driven) in entry.facts.steps {
        let (id, known) = ("conformance/facts", &schema["properties"]);
        ensure(!entry.facts.finds_steps || !required.contains(parameter), id, || {
            format!("its facts say that it finds its step sizes, and `{parameter}` is required")
        })?;
        for variable in *driven {
            ensure(variables.contains(variable), id, || {
                format!("its `steps` name the variable `{variable}`, and there are {variables:?}")
            })?;
        }
        ensure(known.get(parameter).is_some(), id, || {
            format!("its `steps` name the parameter `{parameter}`, which it does not have")
        })?;
    }
    Ok(())
}

/// An unknown key is refused by name.
fn unknown_key(registries: &Registries, entry: &Entry<AnyMethod, Facts>) -> Result<()> {
    let mut params = entry.typical.clone().unwrap_or_default();
    params.insert("momentun".into(), 0.9.into());
    let read = registries.algorithms.choose(&entry.name, &params);
    let named =
        |error: &Error| error.id == "config/unknown-key" && error.message.contains("`momentun`");
    ensure(read.err().as_ref().is_some_and(named), "conformance/unknown-key", || {
        "the unknown key `momentun` is not refused".into()
    })
    .map_err(|error| error.hint("declare parameters with `params!`, or `deny_unknown_fields`"))
}

/// Messages keep their length, at every node and in every iteration; their vectors have names.
fn messages<T: Real>(lab: &Lab) -> Result<()> {
    let mut simulation = lab.start::<T>(&lab.method, None)?;
    let mut lengths = vec![None; simulation.nodes()[0].algorithm.exchanges()];
    for k in 0..10 {
        for (i, node) in simulation.nodes().iter().enumerate() {
            for (e, length) in lengths.iter_mut().enumerate() {
                let mut out = Outbox::default();
                node.algorithm.share(Round { k, e }, &mut out);
                let names: BTreeSet<_> = out.vectors().iter().map(|(name, _)| *name).collect();
                ensure(names.len() == out.vectors().len(), "conformance/share", || {
                    format!("a name stands twice in exchange {e}: {:?}", out.vectors())
                })?;
                let here = out.values().len();
                let first = *length.get_or_insert(here);
                ensure(here == first, "conformance/message-length", || {
                    format!(
                        "messages of exchange {e} change their length: {here} at node {i} in \
                         iteration {k}, {first} at node 0 in iteration 0"
                    )
                })?;
            }
        }
        iterate(&mut simulation, 1)?;
    }
    Ok(())
}

/// Variables have their own names, x and θ among them, the same for reading and for restoring.
fn named<T: Real>(lab: &Lab) -> Result<()> {
    let mut simulation = lab.start::<T>(&lab.method, None)?;
    iterate(&mut simulation, 3)?;
    let id = "conformance/variables";
    for node in simulation.nodes_mut() {
        let shape = |(name, values): (&'static str, &[T])| (name, values.len());
        let listed: Vec<_> = node.algorithm.variables().into_iter().map(shape).collect();
        let restored = node.algorithm.variables_mut().into_iter();
        let restored: Vec<_> = restored.map(|(name, values)| shape((name, values))).collect();
        ensure(listed == restored, id, || {
            format!("`variables` are {listed:?}, and `variables_mut` {restored:?}")
        })?;
        let names: BTreeSet<_> = listed.iter().map(|(name, _)| *name).collect();
        ensure(names.len() == listed.len(), id, || format!("a name stands twice: {listed:?}"))?;
        let at = node.algorithm.at();
        for (wanted, values) in [("x", at.x), ("theta", at.theta)] {
            let found = node.algorithm.variables().into_iter().find(|(name, _)| *name == wanted);
            ensure(found.is_some_and(|(_, found)| found == values), id, || {
                format!("the variable `{wanted}` must be listed, and be that of `at`")
            })?;
        }
    }
    Ok(())
}

/// Variables stay finite, and x or θ moves.
fn finite<T: Real>(lab: &Lab) -> Result<()> {
    let (start, end) = (lab.run::<T>(0)?, lab.run::<T>(200)?);
    for (i, node) in end.nodes().iter().enumerate() {
        for (name, values) in node.algorithm.variables() {
            let bad = values.iter().position(|value| !value.is_finite());
            ensure(bad.is_none(), "conformance/not-finite", || {
                let j = bad.unwrap_or(0);
                let value = values[j];
                format!("`{name}` of node {i} is not finite after 200 iterations: [{j}] is {value}")
            })
            .map_err(|error| error.hint("typical step sizes that are too large?"))?;
        }
    }
    let moved = difference(&start, &end, |name| ["x", "theta"].contains(&name));
    ensure(moved.is_some(), "conformance/does-nothing", || {
        "neither x nor theta moved in 200 iterations".into()
    })
}

/// Every number of threads gives the same bits.
fn threads<T: Real>(lab: &Lab) -> Result<()> {
    let alone = lab.run::<T>(30)?;
    let pool = ThreadPoolBuilder::new().num_threads(3).build().map_err(|error| {
        broken("conformance/threads", format!("threads cannot be started: {error}"))
    })?;
    let mut shared = lab.start::<T>(&lab.method, Some(&pool))?;
    iterate(&mut shared, 30)?;
    match difference(&alone, &shared, |_| true) {
        None => Ok(()),
        Some(found) => {
            Err(broken("conformance/threads", format!("on 1 and on 3 threads, {found}"))
                .hint("does a node change something outside itself?"))
        }
    }
}

/// Fresh nodes restored from the variables of others continue like these.
fn restored<T: Real>(lab: &Lab, method: &AnyMethod, cause: &str) -> Result<()> {
    let mut straight = lab.start::<T>(method, None)?;
    iterate(&mut straight, 13)?;
    let mut resumed = lab.resumed(method, &straight)?;
    iterate(&mut straight, 17)?;
    iterate(&mut resumed, 17)?;
    let (id, whole) = ("conformance/not-restored", (straight.counts(), straight.progress()));
    if let Some(found) = difference(&straight, &resumed, |_| true) {
        let message = format!("in a run and in one that was resumed from its variables, {found}");
        return Err(broken(id, message).hint(cause));
    }
    ensure(whole == (resumed.counts(), resumed.progress()), id, || {
        format!(
            "a resumed run asks for other derivatives: {:?}, not {:?}",
            resumed.counts(),
            whole.0
        )
    })
}

/// `cost` agrees with the counters, and messages have the lengths derived from a small node.
fn cost<T: Real>(lab: &Lab) -> Result<()> {
    const ITERATIONS: u64 = 40;
    let mut simulation = lab.start::<T>(&lab.method, None)?;
    iterate(&mut simulation, 20)?;
    let counts = |simulation: &Run<T>| -> Vec<Counts> {
        simulation.nodes().iter().map(|node| node.oracle.counts()).collect()
    };
    let (counts_before, before) = (counts(&simulation), simulation.progress());
    iterate(&mut simulation, ITERATIONS)?;
    let (counts_after, after) = (counts(&simulation), simulation.progress());
    let at = simulation.nodes()[0].algorithm.at();
    let dims = Dims { n: at.x.len(), p: at.theta.len() };
    let task = Task { scope: lab.experiment.scope, ..Task::default() };
    let (said, sent) = (lab.method.cost(task), lab.method.sent(task)?);
    let floats = (after.floats - before.floats) as f64 / lab.links() as f64;
    let rounds = (after.exchanges - before.exchanges) as f64;
    for (what, said, found) in
        [("floats", sent.floats.at(dims), floats), ("rounds", sent.rounds as f64, rounds)]
    {
        exactly(what, said, found / ITERATIONS as f64)?;
    }
    let spent: Vec<[f64; 7]> = counts_before
        .iter()
        .zip(&counts_after)
        .map(|(before, after)| {
            let (before, after) = (before.to_array(), after.to_array());
            std::array::from_fn(|c| (after[c] - before[c]) as f64 / ITERATIONS as f64)
        })
        .collect();
    calls(&said, dims, &spent)
}

/// Calls of derivatives at each node in an iteration, in the order of [`Counts::to_array`].
fn calls(cost: &Cost, dims: Dims, spent: &[[f64; 7]]) -> Result<()> {
    let Cost { grad_theta_g, hess_g, cross_g, grad_theta_f, grad_x_f, grad_x_g, .. } = cost;
    let said = [
        ("grad_theta_g", grad_theta_g),
        ("hess_g", hess_g),
        ("cross_g", cross_g),
        ("grad_theta_f", grad_theta_f),
        ("grad_x_f", grad_x_f),
        ("grad_x_g", grad_x_g),
    ];
    for (c, (what, count)) in said.into_iter().enumerate() {
        let (said, mut found) = (count.at(dims), spent.iter().map(|node| node[c]));
        if cost.probes && ["grad_theta_g", "hess_g", "grad_x_g"].contains(&what) {
            // A product is one call, or the difference of two gradients.
            let most = said + if what == "hess_g" { 1.0 } else { 2.0 };
            let found = found.find(|found| !(said..=most).contains(found));
            ensure(found.is_none(), "conformance/cost", || {
                let found = short(found.unwrap_or(0.0));
                format!("cost says {said} to {most} calls of {what} per iteration, not {found}")
            })?;
            continue;
        }
        // A series of random length differs from node to node, and is right on average.
        let random = what == "hess_g" && spent.iter().any(|node| node[c] != spent[0][c]);
        if random {
            let mean = found.sum::<f64>() / spent.len() as f64;
            ensure((mean - said).abs() <= 0.2 * said, "conformance/cost", || {
                format!(
                    "cost says {said} calls of {what} per iteration, the mean is {}",
                    short(mean)
                )
            })?;
            continue;
        }
        for found in found {
            exactly(&format!("calls of {what}"), said, found)?;
        }
    }
    Ok(())
}

fn exactly(what: &str, said: f64, found: f64) -> Result<()> {
    ensure((said - found).abs() <= 1e-9, "conformance/cost", || {
        let (said, found) = (short(said), short(found));
        format!("cost says {said} {what} per iteration, and a run shows {found}")
    })
}

/// A node without neighbours sends nothing, and stays finite.
fn one_node<T: Real>(alone: &Lab) -> Result<()> {
    let simulation = alone.run::<T>(100)?;
    let (floats, variables) = (simulation.floats(), simulation.nodes()[0].algorithm.variables());
    let finite = variables.iter().all(|(_, values)| values.iter().all(|value| value.is_finite()));
    ensure(finite && floats == 0, "conformance/alone", || {
        format!("a node alone: its variables are finite: {finite}; it sends {floats} numbers")
    })
}

/// Two variables that are declared to have the same mean do.
fn tracked<T: Real>(lab: &Lab) -> Result<()> {
    let simulation = lab.run::<T>(50)?;
    let pairs: Vec<_> =
        simulation.nodes().iter().filter_map(|node| node.algorithm.tracked()).collect();
    let (some, all, id) = (pairs.len(), simulation.nodes().len(), "conformance/tracked");
    ensure(some == 0 || some == all, id, || format!("{some} of {all} nodes have `tracked`"))?;
    let Some((first, _)) = pairs.first() else { return Ok(()) };
    let mut gap = vec![0.0; first.len()];
    let mut size = 1.0f64;
    for (y, z) in &pairs {
        ensure(y.len() == gap.len() && z.len() == gap.len(), id, || "lengths differ".into())?;
        for (gap, (&y, &z)) in gap.iter_mut().zip(y.iter().zip(*z)) {
            *gap += (y.to_f64() - z.to_f64()) / all as f64;
            size = size.max(y.to_f64().abs()).max(z.to_f64().abs());
        }
    }
    ensure(largest(&gap) <= 1e4 * T::epsilon().to_f64() * size, id, || {
        let gap = short(largest(&gap));
        format!("the means of the two variables of `tracked` differ by {gap} after 50 iterations")
    })
}

/// A step size that is halved every five iterations changes nothing before iteration 5, and
/// something after it.
fn schedule<T: Real>(lab: &Lab, key: &str) -> Result<()> {
    let Some(staged) = lab.staged(&[key.to_string()]) else { return Ok(()) };
    let mut constant = lab.start::<T>(&lab.method, None)?;
    let mut lowered = lab.start::<T>(&staged, None)?;
    let id = "conformance/schedule";
    let early = |found: Option<String>| match found {
        None => Ok(()),
        Some(found) => {
            let message = format!("`{key}` is lowered in iteration 5, and before it {found}");
            Err(broken(id, message).hint("take it at `oracle.k()`, which begins with 0"))
        }
    };
    iterate(&mut constant, 4)?;
    iterate(&mut lowered, 4)?;
    early(difference(&constant, &lowered, |_| true))?;
    iterate(&mut constant, 1)?;
    iterate(&mut lowered, 1)?;
    // Other variables may already hold values for the next iteration.
    early(difference(&constant, &lowered, |name| ["x", "theta"].contains(&name)))?;
    iterate(&mut constant, 15)?;
    iterate(&mut lowered, 15)?;
    let differs = difference(&constant, &lowered, |_| true).is_some();
    ensure(differs, id, || format!("`{key}` is lowered in iteration 5, without any effect"))
        .map_err(|error| error.hint("take it at `oracle.k()` in every iteration"))
}

/// Iterations 6 to 15 allocate nothing, where allocations are counted.
fn allocates_nothing<T: Real>(lab: &Lab) -> Result<()> {
    let mut simulation = lab.run::<T>(5)?;
    let mut ended = Ok(());
    let counted = allocations(|| ended = iterate(&mut simulation, 10));
    ended?;
    ensure(counted.is_none_or(|counted| counted == 0), "conformance/allocates", || {
        format!("iterations 6 to 15 allocate {} times", counted.unwrap_or(0))
    })
    .map_err(|error| error.hint("make vectors in `start`, and write over them"))
}
