//! Under `leave`, those that stay agree, continue from the same checkpoint, and compute what a network without the
//! others computes from there.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use lopa::algorithms::{algorithms, regroup};
use lopa::engine::{Node, Simulation};
use lopa::error::Kind;
use lopa::experiment::{AlgorithmSpec, Experiment, Precision};
use lopa::math::random::{Purpose, Stream};
use lopa::math::real::Real;
use lopa::network::{Graph, check};
use lopa::problem::scope::Scope;
use lopa::run::evaluate::mean;
use lopa::run::trace::Stop;
use lopa::run::{CameBack, Outcome, Part};

use super::cluster::{Fate, Setup, TestPolicy};
use super::faulty::{Death, Faults, seconds};
use super::{GLOBAL, PERSONAL, drawn_connections, drawn_faults, read, seeds, single_process};

/// Longer than any run.
pub const FOR_GOOD: f64 = 1e5;

pub const SILENCE: f64 = 3.0;

/// A small random experiment that can go on without a node.
pub fn drawn(stream: &mut Stream) -> Experiment {
    drawn_with(stream, 0.3, |stream| {
        [
            format!("run.seeds={}", ["[1]", "[1]", "[3,4]"][stream.below(3)]),
            format!("run.iterations={}", 5 + stream.below(60)),
            format!("run.evaluations={}", 1 + stream.below(3)),
        ]
    })
}

/// The same with other runs; `two` is the share of those with two algorithms.
pub fn drawn_with(
    stream: &mut Stream,
    two: f64,
    runs: impl FnOnce(&mut Stream) -> [String; 3],
) -> Experiment {
    let global = stream.unit() < 0.3;
    let nodes = 3 + stream.below(3);
    let graphs = ["complete", "ring", "complete", "star", "erdos-renyi"];
    let graph = graphs[stream.below(graphs.len())];
    let [seeds, iterations, evaluations] = runs(stream);
    let sets = [
        format!("network.nodes={nodes}"),
        format!("network.graph={graph}"),
        "problem.n=2".into(),
        "problem.p=2".into(),
        "problem.noise=0.5".into(),
        "problem.samples=5".into(),
        "run.batch=2".into(),
        seeds,
        iterations,
        evaluations,
        format!("run.precision={}", ["f32", "f64"][stream.below(2)]),
        "run.exact=never".into(),
        format!("checkpoint.iterations={}", 1 + stream.below(20)),
    ];
    let mut experiment = read(if global { GLOBAL } else { PERSONAL }, &sets);
    experiment.algorithms.retain(|spec| spec.choice.name != "extra");
    let first = stream.below(experiment.algorithms.len());
    experiment.algorithms.rotate_left(first);
    experiment.algorithms.truncate(1 + usize::from(stream.unit() < two));
    experiment
}

/// Whether the others are connected without a node, in all runs.
fn can_lose(experiment: &Experiment, node: usize) -> bool {
    experiment.run.seeds.iter().all(|&seed| {
        let graph = experiment.world(None, seed).unwrap().graph;
        let rank = |of: usize| if of < node { of } else { of - 1 };
        let edges = graph.edges().filter(|&(i, j)| i != node && j != node);
        let left = Graph::from_edges(graph.nodes() - 1, edges.map(|(i, j)| (rank(i), rank(j))));
        left.is_ok_and(|graph| graph.components().len() == 1)
    })
}

/// All variables of a node.
type Variables<T> = Vec<Vec<T>>;

/// The state of a node that comes back: it starts anew at the x of another, with θ and v of its own.
fn returning<T: Real>(
    setup: &lopa::run::Setup,
    method: &lopa::algorithms::AnyMethod,
    node: usize,
    own: Option<&Variables<T>>,
    helper: &Node<T>,
) -> Node<T> {
    let parts = || setup.parts_of::<T>(node..node + 1).unwrap().each;
    let mut before = setup.nodes_of(parts(), node, method).unwrap().remove(0);
    let mut v = vec![T::zero(); before.algorithm.at().theta.len()];
    if let Some(values) = own {
        restore(&mut before, values);
        let named = before.algorithm.variables().into_iter().find(|(name, _)| *name == "v");
        named.into_iter().for_each(|(_, own)| v.copy_from_slice(own));
    }
    let (x, common) = (helper.algorithm.at().x, helper.algorithm.at().theta);
    let own = before.algorithm.at().theta;
    let theta = if setup.experiment.scope == Scope::Global { common } else { own };
    setup.nodes_at(parts(), node, method, Some([x, theta, &v])).unwrap().remove(0)
}

fn restore<T: Real>(node: &mut Node<T>, values: &Variables<T>) {
    for ((_, into), values) in node.algorithm.variables_mut().into_iter().zip(values) {
        into.copy_from_slice(values);
    }
}

/// x of all nodes in the end, as one process computes it for these parts.
fn expected<T: Real>(experiment: &Experiment, outcome: &Outcome) -> Vec<Vec<f64>> {
    let world = experiment.world(None, outcome.seed).unwrap();
    let setup = experiment.setup(None, &world, outcome.seed);
    let algorithm = experiment.algorithms.iter().find(|spec| spec.label == outcome.algorithm);
    let method = &algorithm.unwrap().choice.build;
    let mut progress = Default::default();
    let mut last: Vec<(usize, Variables<T>)> = Vec::new();
    let parts = &outcome.chapters;
    // The states that nodes come back with.
    let wanted: BTreeSet<(usize, u64)> = parts
        .iter()
        .flat_map(|part| part.back.iter().filter_map(|back| Some((back.node, back.own?))))
        .collect();
    let mut own_states: BTreeMap<(usize, u64), Variables<T>> = BTreeMap::new();
    for (at, Part { from, members, back }) in parts.iter().enumerate() {
        let values = |node: &Node<T>| -> Variables<T> {
            node.algorithm.variables().into_iter().map(|(_, values)| values.to_vec()).collect()
        };
        let rank = |node: usize| members.iter().position(|&member| member == node);
        let edges = world.graph.edges().filter_map(|(i, j)| Some((rank(i)?, rank(j)?)));
        let graph = Graph::from_edges(members.len(), edges).unwrap();
        let mixing = (experiment.network.weights.build)(&graph).unwrap();
        check(&graph, &mixing).unwrap();
        let nodes = setup.nodes::<T>(method).unwrap().into_iter().enumerate();
        let mut own: Vec<Node<T>> =
            nodes.filter(|(node, _)| members.contains(node)).map(|(_, node)| node).collect();
        if *from > 0 {
            for (node, state) in members.iter().zip(&mut own) {
                if let Some((_, values)) = last.iter().find(|(of, _)| of == node) {
                    restore(state, values);
                }
            }
            for CameBack { node, own: k, x_of } in back {
                // All nodes have the state that they begin with.
                let start = values(&setup.nodes::<T>(method).unwrap()[*node]);
                let known = |k| match own_states.get(&(*node, k)) {
                    None if k == 0 => &start,
                    None => panic!("node {node} had no state at {k}: {parts:?}"),
                    Some(values) => values,
                };
                let values = k.map(known);
                let helper = x_of.and_then(rank).expect("a neighbour helps");
                own[rank(*node).unwrap()] = returning(&setup, method, *node, values, &own[helper]);
            }
            own.iter_mut().for_each(|state| regroup(&mut *state.algorithm).unwrap());
        }
        let mut simulation = Simulation::new(own, &mixing, None).from(progress);
        let until = parts.get(at + 1).map_or(outcome.row.iteration, |next| next.from);
        loop {
            for (node, state) in members.iter().zip(simulation.nodes()) {
                let place = (*node, simulation.k());
                if wanted.contains(&place) {
                    own_states.entry(place).or_insert_with(|| values(state));
                }
            }
            if simulation.k() >= until {
                break;
            }
            simulation.iterate();
        }
        progress = simulation.progress();
        last = members.iter().copied().zip(simulation.nodes().iter().map(values)).collect();
        if at + 1 == parts.len() {
            let mut found = vec![Vec::new(); experiment.network.nodes];
            for (node, state) in members.iter().zip(simulation.nodes()) {
                found[*node] = state.algorithm.at().x.iter().map(|x| x.to_f64()).collect();
            }
            return found;
        }
    }
    unreachable!("there is a part")
}

#[derive(Debug, Default)]
pub struct Counts {
    /// Runs that lost a node, those in which one came back, and those in which it took over a neighbour's x.
    pub left: usize,
    pub back: usize,
    pub handed: usize,
    /// Nodes that were told that they were left out.
    pub told: usize,
    pub deaths: usize,
    pub finished: usize,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.left += other.left;
        self.back += other.back;
        self.handed += other.handed;
        self.told += other.told;
        self.deaths += other.deaths;
        self.finished += other.finished;
    }
}

pub fn check_fates(
    experiment: &Experiment,
    seed: u64,
    dead: Option<usize>,
    fates: &[Fate],
) -> Counts {
    let deaths = fates.iter().map(|fate| fate.lives - 1).sum();
    let mut counts = Counts { deaths, ..Counts::default() };
    let done = |node: usize| fates[node].done.as_ref().ok();
    let alive: Vec<usize> = (0..fates.len()).filter(|&node| Some(node) != dead).collect();
    let Some(first) = alive.iter().find_map(|&node| done(node)) else {
        // Nobody goes on where the rest is too small or not connected, or where not all had met: that is an
        // error that says so, and no wrong number.
        let simple = counts.deaths == 1 && dead.is_some_and(|dead| can_lose(experiment, dead));
        let met = alive.iter().any(|&node| fates[node].disk.lock().unwrap().written > 0);
        assert!(dead.is_some() && !(simple && met), "seed {seed}: {:?}", errors(fates));
        for &node in &alive {
            let error = fates[node].done.as_ref().unwrap_err();
            let says =
                ["nodes are left", "not connected"].iter().any(|why| error.message.contains(why));
            // The graph of a later seed may not be connected without it.
            let known = matches!(error.kind, Kind::Left | Kind::Network);
            let known = known || error.kind == Kind::Peer && (says || !met);
            let written: Vec<usize> =
                fates.iter().map(|fate| fate.disk.lock().unwrap().written).collect();
            let all = errors(fates);
            assert!(
                known,
                "seed {seed}, node {node}, {dead:?} died, checkpoints {written:?}: {all:#?}"
            );
        }
        return counts;
    };
    for alone in single_process(experiment) {
        let is_this = |run: &&Outcome| run.is_of(&alone.algorithm, alone.seed);
        let all = (0..fates.len()).filter_map(|node| Some((node, done(node)?)));
        let all = all.filter_map(|(node, runs)| Some((node, runs.iter().find(is_this)?)));
        let all: Vec<(usize, &Outcome)> = all.collect();
        let Some(&(_, run)) = all.first() else { continue };
        for (node, other) in &all {
            assert_eq!(run.digest, other.digest, "seed {seed}, node {node}");
            assert_eq!(run.chapters, other.chapters, "seed {seed}, node {node}");
            assert_eq!(run.row.iteration, other.row.iteration, "seed {seed}, node {node}");
            // The costs that do not depend on a clock.
            let costs = |run: &Outcome| (run.row.bytes, run.row.exchanges);
            assert_eq!(costs(run), costs(other), "seed {seed}, node {node}");
            let last = run.chapters.last();
            let member = last.is_none_or(|part| part.members.contains(node));
            assert!(member, "seed {seed}: node {node} was left out, and ended");
        }
        check_run(experiment, seed, run, &alone, &mut counts);
    }
    let last = first.last().unwrap().chapters.last();
    let members: BTreeSet<usize> = match last {
        Some(part) => part.members.iter().copied().collect(),
        None => (0..fates.len()).collect(),
    };
    for &node in &alive {
        match &fates[node].done {
            Ok(_) => counts.finished += 1,
            Err(error) => {
                // One that was away for longer than the silence asks in vain if the others end, or finds nobody.
                let away = fates[node].lives > 1 || !members.contains(&node);
                let away = away && error.kind == Kind::Peer;
                assert!(away || error.kind == Kind::Left, "seed {seed}, node {node}: {error}");
                counts.told += usize::from(error.kind == Kind::Left);
            }
        }
    }
    counts
}

/// Checks a run against one process, and against the computation that its parts describe.
pub fn check_run(
    experiment: &Experiment,
    seed: u64,
    run: &Outcome,
    alone: &Outcome,
    counts: &mut Counts,
) {
    if run.chapters.is_empty() {
        assert_eq!(run.digest, alone.digest, "seed {seed}");
        return;
    }
    counts.left += 1;
    counts.back += usize::from(run.chapters.iter().any(|part| !part.back.is_empty()));
    let handed = |part: &Part| part.back.iter().any(|back| back.x_of.is_some());
    counts.handed += usize::from(run.chapters.iter().any(handed));
    assert_ne!(run.digest, alone.digest, "seed {seed}: it looks as if nobody had left");
    let parts = &run.chapters;
    assert!(parts.is_sorted_by(|a, b| a.from < b.from), "seed {seed}: {parts:?}");
    assert_eq!(parts[0].from, 0, "seed {seed}: {parts:?}");
    let last = parts.last().map(|part| part.members.len() as f64);
    assert_eq!(run.row.value("members"), last, "seed {seed}");
    let tracking = run.row.value("tracking");
    if run.stop == Stop::Diverged {
        return;
    }
    assert!(tracking.is_none_or(|gap| gap < 1e-2), "seed {seed}: {tracking:?}");
    let want = match experiment.run.precision {
        Precision::F64 => expected::<f64>(experiment, run),
        _ => expected::<f32>(experiment, run),
    };
    for (node, ((x, _), want)) in run.models.iter().zip(want).enumerate() {
        match want.is_empty() {
            true => assert!(x.iter().all(|x| x.is_nan()), "seed {seed}, node {node}"),
            false => assert_eq!(*x, want, "seed {seed}, node {node}: {parts:?}"),
        }
    }
}

pub fn errors(fates: &[Fate]) -> Vec<String> {
    let text = |fate: &Fate| match &fate.done {
        Ok(_) => "done".to_string(),
        Err(error) => error.to_string(),
    };
    fates.iter().map(text).collect()
}

fn clusters(seeds: Range<u64>, connects: bool) -> Counts {
    let mut all = Counts::default();
    for seed in seeds {
        let mut stream = Stream::new(seed, Purpose::Tuning, 0);
        let experiment = drawn(&mut stream);
        let nodes = experiment.network.nodes;
        let mut faults = match connects {
            true => drawn_connections(&mut stream, nodes),
            false => drawn_faults(&mut stream, nodes),
        };
        let dead = (stream.unit() < 0.8).then(|| stream.below(nodes));
        if let Some(node) = dead {
            // From then on it does nothing: its other deaths come before.
            let at = seconds(stream.between(0.05, 2.0));
            faults.deaths.retain(|death| death.node != node || death.at < at);
            faults.deaths.push(Death { node, at, downtime: seconds(FOR_GOOD) });
            faults.deaths.sort_by_key(|death| death.at);
        }
        let setup = Setup::new(&experiment, seed, faults, TestPolicy::Leave(SILENCE));
        all += check_fates(&experiment, seed, dead, &setup.run());
    }
    all
}

#[test]
fn those_that_stay_agree_and_end_with_the_same_digest() {
    let seeds = seeds("LOPA_LEAVES", 0..200);
    let count = seeds.clone().count();
    let counts = clusters(seeds, false);
    eprintln!("{counts:?}");
    let Counts { left, deaths, finished, .. } = counts;
    assert!(
        left >= count / 4 && finished >= count && deaths >= count / 2,
        "{left} {finished} {deaths}"
    );
}

#[test]
fn the_same_over_connections_that_machines_must_make() {
    let seeds = seeds("LOPA_LEAVES", 0..60);
    let count = seeds.clone().count();
    let Counts { left, finished, .. } = clusters(seeds, true);
    assert!(left >= count / 4 && finished >= count, "{left} {finished}");
}

/// The largest difference of the means of two variables over nodes.
fn gap(nodes: &[Node<f64>], tracker: &str, own: Option<&str>) -> Option<f64> {
    let of = |name: &str| -> Option<Vec<f64>> {
        let find = |node: &Node<f64>| {
            let all = node.algorithm.variables().into_iter();
            all.filter(|(known, _)| *known == name).map(|(_, values)| values.to_vec()).next()
        };
        let all: Option<Vec<Vec<f64>>> = nodes.iter().map(find).collect();
        all.map(|all| mean(all.iter().map(|values| &values[..])))
    };
    let tracker = of(tracker)?;
    let own = own.map_or(Some(vec![0.0; tracker.len()]), of)?;
    Some(tracker.iter().zip(own).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max))
}

#[test]
fn sums_over_all_nodes_hold_again_after_a_node_has_left_in_every_algorithm_and_scope() {
    let (mut repaired, mut tracking) = (BTreeSet::new(), BTreeSet::new());
    for (scope, text) in [("personal", PERSONAL), ("global", GLOBAL)] {
        let sets = [
            "network.nodes=5",
            "network.graph=complete",
            "problem.noise=0.5",
            "problem.heterogeneity=1.0",
        ];
        let mut experiment = read(text, &sets.map(String::from));
        // All algorithms of this scope, with the parameters that lists use.
        let known = algorithms();
        experiment.algorithms.clear();
        for name in known.names() {
            let scopes = known.find(name).unwrap().facts.scopes;
            if scopes.contains(&experiment.scope) {
                let choice = known.typical(name).unwrap().unwrap();
                experiment.algorithms.push(AlgorithmSpec { label: name.into(), choice });
            }
        }
        let world = experiment.world(None, 1).unwrap();
        let setup = experiment.setup(None, &world, 1);
        for spec in &experiment.algorithms {
            let Ok(nodes) = setup.nodes::<f64>(&spec.choice.build) else { continue };
            let Ok(trackers) = nodes[0].algorithm.trackers() else {
                assert_eq!(spec.label, "extra", "{scope}");
                continue;
            };
            let mut simulation = Simulation::new(nodes, &world.mixing, None);
            (0..7).for_each(|_| simulation.iterate());
            let progress = simulation.progress();
            let rest = &mut simulation.nodes_mut()[..4];
            let gaps = |nodes: &[Node<f64>]| -> Vec<Option<f64>> {
                trackers.iter().map(|&(tracker, own)| gap(nodes, tracker, own)).collect()
            };
            let before = gaps(rest);
            rest.iter_mut().for_each(|node| regroup(&mut *node.algorithm).unwrap());
            for (((tracker, _), before), after) in trackers.iter().zip(before).zip(gaps(rest)) {
                let (Some(before), Some(after)) = (before, after) else { continue };
                let name = (spec.label.clone(), scope, *tracker);
                assert!(after < 1e-12 * (1.0 + before), "{name:?}: {before} {after}");
                if before > 1e-9 {
                    repaired.insert(name);
                }
            }
            if rest[0].algorithm.tracked().is_some() {
                tracking.insert((spec.label.clone(), scope));
            }
            // And they go on holding on a network of those that stay.
            let graph =
                Graph::from_edges(4, (0..4).flat_map(|i| (0..i).map(move |j| (i, j)))).unwrap();
            let mixing = (experiment.network.weights.build)(&graph).unwrap();
            let variables: Vec<Vec<Vec<f64>>> = simulation.nodes()[..4]
                .iter()
                .map(|node| {
                    node.algorithm.variables().into_iter().map(|(_, v)| v.to_vec()).collect()
                })
                .collect();
            let mut nodes = setup.nodes::<f64>(&spec.choice.build).unwrap();
            nodes.truncate(4);
            for (node, values) in nodes.iter_mut().zip(&variables) {
                for ((_, into), values) in node.algorithm.variables_mut().into_iter().zip(values) {
                    into.copy_from_slice(values);
                }
            }
            let mut rest = Simulation::new(nodes, &mixing, None).from(progress);
            for _ in 0..5 {
                rest.iterate();
                let pairs: Option<Vec<_>> =
                    rest.nodes().iter().map(|node| node.algorithm.tracked()).collect();
                let Some(pairs) = pairs else { break };
                let y = mean(pairs.iter().map(|(y, _)| *y));
                let z = mean(pairs.iter().map(|(_, z)| *z));
                for (y, z) in y.iter().zip(z) {
                    assert!(
                        (y - z).abs() < 1e-9 * (1.0 + y.abs()),
                        "{} {scope}: {y} {z}",
                        spec.label
                    );
                }
            }
        }
    }
    // Without the repair all of these would be wrong: the check above can fail.
    for (name, scope) in &tracking {
        let any = repaired.iter().any(|(of, in_, _)| of == name && in_ == scope);
        assert!(any, "{name}, {scope}: {repaired:?}");
    }
    assert!(tracking.len() >= 8, "{tracking:?}");
    for (scope, tracker) in
        [("personal", "y"), ("global", "y"), ("global", "y_theta"), ("global", "y_v")]
    {
        assert!(repaired.contains(&("lopa-gt".to_string(), scope, tracker)), "{scope} {tracker}");
    }
}

#[test]
fn two_of_four_are_too_few_to_go_on_and_two_halves_never_both_do() {
    let sets = [
        "network.nodes=4",
        "network.graph=complete",
        "problem.n=2",
        "problem.p=2",
        "run.seeds=[1]",
        "run.iterations=1200",
        "run.evaluations=2",
        "run.exact=never",
        "checkpoint.iterations=10",
    ];
    let mut experiment = read(PERSONAL, &sets.map(String::from));
    experiment.algorithms.truncate(1);
    let halves = [(0, 2), (0, 3), (1, 2), (1, 3)];
    let both = halves.into_iter().flat_map(|(i, j)| [(i, j), (j, i)]);
    let cut =
        |(from, to)| super::faulty::Cut { from, to, since: seconds(2.0), until: seconds(FOR_GOOD) };
    let faults = Faults { cuts: both.map(cut).collect(), delay: 0.02, ..Faults::default() };
    let setup =
        Setup { deadline: 30.0, ..Setup::new(&experiment, 1, faults, TestPolicy::Leave(SILENCE)) };
    for fate in setup.run() {
        let error = fate.done.unwrap_err();
        assert_eq!((error.id, error.kind.exit_code()), ("peers/lost", 6));
        assert!(error.message.contains("2 of 4 nodes are left"), "{error}");
    }
}
