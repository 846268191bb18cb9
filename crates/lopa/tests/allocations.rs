//! Iterations in steady state allocate nothing.
#![allow(unsafe_code)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::bench::Bench;
use lopa::real::Real;

struct Counting;

thread_local! {
    // This thread alone, so that the test harness is not counted.
    static SEEN: Cell<u64> = const { Cell::new(0) };
}

fn note() {
    // A thread that is going away has no counter any more.
    let _ = SEEN.try_with(|seen| seen.set(seen.get() + 1));
}

// SAFETY: every call is handed to the system's allocator as it came; counting touches no memory
// but the thread's own counter, which needs no allocation.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        note();
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
    let before = SEEN.get();
    (0..10).for_each(|_| simulation.iterate());
    SEEN.get() - before
}

fn check(problem: &str) {
    let steps = "alpha = 0.001, beta = 0.1, lambda = 0.1";
    for algorithm in [
        format!("name = 'lopa-gt', {steps}"),
        format!("name = 'lopa-lg', {steps}"),
        format!("name = 'local', {steps}"),
        format!("name = 'spdb', {steps}, hv_steps = 4"),
        format!("name = 'spdb', {steps}, inverse = 'shia', consensus = 'gt', inner_steps = 2"),
        format!("name = 'ma-dsbo', {steps}"),
        "name = 'dgd', alpha = 0.001".to_string(),
    ] {
        for batch in ["7", "'full'"] {
            let found = allocated::<f64>(problem, batch, &algorithm);
            assert_eq!(found, 0, "{problem}, {algorithm}, batch {batch}");
            let found = allocated::<f32>(problem, batch, &algorithm);
            assert_eq!(found, 0, "{problem}, {algorithm}, batch {batch}, f32");
        }
    }
}

#[test]
fn the_counter_counts() {
    let before = SEEN.get();
    let mut grown = vec![0.0f64];
    grown.extend([1.0; 100]);
    drop(std::hint::black_box(grown));
    assert_eq!(SEEN.get() - before, 2);
}

#[test]
fn quadratic() {
    check(QUADRATIC);
}

#[test]
fn hyperparameter() {
    check(&learning("hyperparameter", 0.0));
    check(&learning("hyperparameter", 0.6));
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
