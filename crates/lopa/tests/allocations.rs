//! Iterations in steady state allocate nothing, and nodes use the memory that the documentation
//! states.
#![allow(unsafe_code)]

#[path = "suite/common/mod.rs"]
mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::bench::Bench;
use lopa::math::real::Real;

struct Counting;

thread_local! {
    // Per thread, so that the test harness is not counted.
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static ALLOCATED: Cell<i64> = const { Cell::new(0) };
}

fn count(calls: u64, bytes: i64) {
    // A thread that is ending has no counters any more.
    let _ = CALLS.try_with(|count| count.set(count.get() + calls));
    let _ = ALLOCATED.try_with(|count| count.set(count.get() + bytes));
}

// SAFETY: every call is forwarded unchanged to the system allocator; counting touches only the
// thread's own counters, which need no allocation.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as i64);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(0, -(layout.size() as i64));
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(1, new_size as i64 - layout.size() as i64);
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const QUADRATIC: &str = "problem = { name = 'quadratic', noise = 0.2, samples = 30 }";

fn learning(problem: &str, sparsity: f64) -> String {
    format!(
        "problem = {{ name = '{problem}' }}
         data = {{ name = 'blobs', rows = 200, features = 6, sparsity = {sparsity} }}"
    )
}

/// Allocations in ten iterations.
fn allocated<T: Real>(problem: &str, batch: &str, algorithm: &str) -> u64 {
    let setup = format!(
        "{problem}
         network = {{ nodes = 4, graph = 'ring', weights = 'lazy-metropolis' }}
         run = {{ iterations = 1, batch = {batch} }}"
    );
    let mut simulation = Bench::new(&setup, algorithm).run::<T>(5);
    let before = CALLS.get();
    (0..10).for_each(|_| simulation.iterate());
    CALLS.get() - before
}

fn check(problem: &str) {
    let steps = "alpha = 0.001, beta = 0.1, lambda = 0.1";
    check_each(
        problem,
        &[
            format!("name = 'lopa-gt', {steps}"),
            format!("name = 'lopa-lg', {steps}"),
            format!("name = 'local', {steps}"),
            format!("name = 'spdb', {steps}, hv_steps = 4"),
            format!("name = 'spdb', {steps}, inverse = 'shia', consensus = 'gt', inner_steps = 2"),
            format!("name = 'ma-dsbo', {steps}"),
            "name = 'dgd', alpha = 0.001".to_string(),
        ],
    );
}

/// Algorithms for both scopes, then those for one scope only.
fn check_others(problem: &str) {
    let steps = "alpha = 0.001, beta = 0.1, lambda = 0.1";
    let both = [
        format!("name = 'lopa-gt', {steps}"),
        format!("name = 'lopa-lg', {steps}"),
        format!("name = 'ma-dsbo', {steps}"),
        format!("name = 'gossip-dsbo', {steps}, gamma = 0.1"),
        format!("name = 'gossip-dsbo-mf', {steps}, gamma = 0.1"),
        format!("name = 'mdbo', {steps}, eta = 0.5, gamma = 0.1"),
        format!("name = 'vrdbo', {steps}, eta = 0.5, gamma = 0.1"),
        format!("name = 'd-soba', {steps}"),
        format!("name = 'd-soba', {steps}, order = 'first'"),
        format!("name = 'sldbo', {steps}, radius = 1"),
        format!("name = 'zhang', {steps}, eta = 0.5, gamma = 0.1"),
        format!("name = 'zhang', {steps}, eta = 0.5, gamma = 0.1, order = 'alternating'"),
        "name = 'gt-sgd', alpha = 0.001".to_string(),
        "name = 'extra', alpha = 0.001".to_string(),
        "name = 'exact-diffusion', alpha = 0.001".to_string(),
    ];
    check_each(problem, &both);
    let personal = [
        format!("name = 'prometheus', {steps}, period = 3, l1 = 0.1"),
        format!("name = 'interact', {steps}"),
    ];
    check_each(problem, &personal);
    let global = format!("scope = 'global'\n{problem}");
    check_each(&global, &both);
    check_each(&global, &[format!("name = 'slam', {steps}")]);
}

fn check_each(problem: &str, algorithms: &[String]) {
    for algorithm in algorithms {
        for batch in ["7", "'full'"] {
            let found = allocated::<f64>(problem, batch, algorithm);
            assert_eq!(found, 0, "{problem}, {algorithm}, batch {batch}");
            let found = allocated::<f32>(problem, batch, algorithm);
            assert_eq!(found, 0, "{problem}, {algorithm}, batch {batch}, f32");
        }
    }
}

#[test]
fn the_counter_counts() {
    let before = CALLS.get();
    let mut grown = vec![0.0f64];
    grown.extend([1.0; 100]);
    drop(std::hint::black_box(grown));
    assert_eq!(CALLS.get() - before, 2);
}

#[test]
fn quadratic() {
    check(QUADRATIC);
}

#[test]
fn algorithms_of_other_papers() {
    check_others(QUADRATIC);
    check_others(&learning("hyperparameter", 0.0));
}

#[test]
fn hyperparameter() {
    check(&learning("hyperparameter", 0.0));
    check(&learning("hyperparameter", 0.6));
    // Sparse bytes and one column of weights.
    check(
        "problem = { name = 'hyperparameter' }
         data = { name = 'digits', classes = [0, 1], sparse = true }",
    );
}

#[test]
fn representation() {
    check(&learning("representation', hidden = [5], activation = 'tanh", 0.0));
    check(&learning(
        "representation', hidden = [5, 4], validation = 0.3, activation = 'sigmoid",
        0.6,
    ));
}

#[test]
fn meta_learning() {
    check(&learning("meta-learning", 0.0));
    check(&learning("meta-learning", 0.6));
}

#[test]
fn hyper_cleaning() {
    check(&learning("hyper-cleaning", 0.0));
    check(&learning("hyper-cleaning", 0.6));
}

/// Bytes that a node of LoPA-GT uses after some iterations, and as stated in `docs/performance.md`.
fn memory<T: Real>(hidden: usize, batch: usize) -> (f64, f64) {
    let (nodes, rows, features, classes) = (40, 4000, 64, 10);
    let setup = format!(
        "problem = {{ name = 'representation', hidden = [{hidden}] }}
         data = {{ name = 'blobs', rows = {rows}, features = {features}, centres = {classes}, test = 0.01 }}
         network = {{ nodes = {nodes}, graph = 'ring', weights = 'lazy-metropolis' }}
         run = {{ iterations = 1, batch = {batch} }}"
    );
    let bench = Bench::new(&setup, "name = 'lopa-gt', alpha = 0.001, beta = 0.1, lambda = 0.1");
    drop(bench.run::<T>(0)); // so that the shared features exist in this precision
    let before = ALLOCATED.get();
    let simulation = bench.run::<T>(3);
    let held = (ALLOCATED.get() - before) as f64 / nodes as f64;
    let n = (features + 1) * hidden;
    let p = (hidden + 1) * classes;
    let samples = rows as f64 * 0.99 / nodes as f64;
    let numbers = 9 * n + 4 * p;
    drop(simulation);
    let row_numbers = 5.0 * samples + rows as f64 * 0.01 + 5.0 * batch as f64;
    (held, (numbers * T::BYTES) as f64 + 4.0 * row_numbers + 3000.0)
}

#[test]
fn memory_is_as_stated() {
    for (hidden, batch) in [(28, 50), (5, 20), (100, 10)] {
        for (held, stated) in [memory::<f32>(hidden, batch), memory::<f64>(hidden, batch)] {
            let ratio = held / stated;
            assert!((0.8..=1.2).contains(&ratio), "{hidden}, {batch}: {held} against {stated}");
        }
    }
}
