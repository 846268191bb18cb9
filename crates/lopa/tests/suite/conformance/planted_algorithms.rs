//! Algorithms with a mistake each, and the check that must find it.

use std::sync::atomic::{AtomicU64, Ordering};

use lopa::algorithms::prelude::*;
use lopa::conformance::algorithm;
use lopa::error::Kind;
use lopa::prelude::*;

/// Each mistake, and the id of the check that must find it.
const MISTAKES: &[(&str, &str)] = &[
    ("none", ""),
    ("a variable that is not listed", "conformance/not-restored"),
    ("iterations counted by the node", "conformance/not-restored"),
    ("a message that grows", "conformance/message-length"),
    ("a message whose length depends on x", "conformance/message-length"),
    ("two vectors of one name", "conformance/share"),
    ("cost without the second gradient", "conformance/cost"),
    ("allocation in the step", "conformance/allocates"),
    ("steps that are too large", "conformance/not-finite"),
    ("two variables of one name", "conformance/variables"),
    ("no theta among the variables", "conformance/variables"),
    ("variables_mut in another order", "conformance/variables"),
    ("at is another point", "conformance/variables"),
    ("state shared by all nodes", "conformance/threads"),
    ("schedule read once", "conformance/schedule"),
    ("schedule an iteration early", "conformance/schedule"),
    ("tracked variables that differ", "conformance/tracked"),
    ("old gradients with today's step", "conformance/limit"),
    ("nothing moves", "conformance/does-nothing"),
    ("a division by zero without neighbours", "conformance/alone"),
    ("facts without a source", "conformance/facts"),
    ("facts with an unknown variable", "conformance/facts"),
    ("facts with an unknown parameter", "conformance/facts"),
];

params! {
    /// Step sizes.
    struct Steps {
        /// Step size of x.
        alpha: Schedule = 0.02, step;
        /// Step size of θ.
        beta: Schedule = 0.5, step;
        /// Step size of v.
        lambda: Schedule = 0.5, step;
    }
}

fn facts(mistake: &str) -> Facts {
    Facts {
        source: if mistake == "facts without a source" { "" } else { "a test" },
        scopes: &[Scope::Personal],
        steps: match mistake {
            "facts with an unknown variable" => &[("alpha", &["y"])],
            "facts with an unknown parameter" => &[("eta", &["x"])],
            _ => &[("beta", &["theta"]), ("lambda", &["v"]), ("alpha", &["x"])],
        },
        ..Facts::LOOPLESS
    }
}

/// LoPA-LG without momentum and relaxation, with a mistake.
struct Planted {
    mistake: &'static str,
    params: Steps,
}

impl Method for Planted {
    fn cost(&self, _: Task) -> Cost {
        let mut cost = Cost::loopless();
        if self.mistake != "cost without the second gradient" {
            cost.grad_theta_g = 2.0.into();
        }
        cost
    }

    fn start<T: Real>(&self, start: Start<T>) -> Result<Box<dyn Algorithm<T>>> {
        let Planted { mistake, params } = self;
        let Start { x, theta, v, oracle, .. } = start;
        let mut now = DirectionBuffers::new(x.len(), theta.len(), FIVE);
        oracle.answer(now.at(At { x: &x, theta: &theta }, &v));
        let (mean, grad) = (vec![T::zero(); x.len()], vec![T::zero(); theta.len()]);
        let (mistake, params, k) = (*mistake, params.clone(), 0);
        let (old, moved) = (grad.clone(), grad.clone());
        Ok(Box::new(PlantedNode { mistake, params, x, theta, v, now, old, moved, mean, grad, k }))
    }
}

struct PlantedNode<T> {
    mistake: &'static str,
    params: Steps,
    x: Vector<T>,
    theta: Vector<T>,
    v: Vector<T>,
    now: DirectionBuffers<T>,
    old: Vec<T>,   // d of the iteration before
    moved: Vec<T>, // the last change of θ
    mean: Vec<T>,  // a moving average of s
    grad: Vec<T>,
    k: u64,
}

static STEPS: AtomicU64 = AtomicU64::new(0);

impl<T: Real> PlantedNode<T> {
    fn is(&self, mistake: &str) -> bool {
        self.mistake == mistake
    }

    /// The iteration whose step sizes are taken.
    fn iteration(&self, k: u64) -> u64 {
        match self.mistake {
            "iterations counted by the node" => self.k,
            "schedule read once" => 0,
            "schedule an iteration early" => k + 1,
            _ => k,
        }
    }
}

impl<T: Real> Algorithm<T> for PlantedNode<T> {
    fn share(&self, _: Round, out: &mut Outbox<T>) {
        out.vector("x", &self.x);
        let longer = match self.mistake {
            "a message that grows" => self.k > 3,
            "a message whose length depends on x" => self.x[0] > T::zero(),
            _ => false,
        };
        out.vector_if(longer, "more", &[T::zero()]);
        if self.is("two vectors of one name") {
            out.vector("x", &[T::zero()]);
        }
    }

    fn step(&mut self, _: usize, mixed: Mixed<T>, oracle: &mut Oracle<T>) {
        let k = self.iteration(oracle.k());
        let [alpha, beta, lambda] =
            [self.params.alpha, self.params.beta, self.params.lambda].map(|step| T::of(step.at(k)));
        self.k += 1;
        if self.is("nothing moves") {
            return;
        }
        // A second gradient, which nothing needs.
        oracle.grad_theta_g(At { x: &self.x, theta: &self.theta }, XI1.pass(1), &mut self.grad);
        let wx = mixed.sums().together(1);
        if self.is("a division by zero without neighbours") && k > 10 {
            let gap = dot(&self.x, &self.x) - dot(wx, &self.x);
            self.mean.fill(gap * gap.recip());
        }
        let half = T::of(0.5);
        update(&mut self.mean, [&self.now.s], |mean, [s]| half * mean + half * s);
        let hidden = ["a variable that is not listed", "a division by zero without neighbours"];
        let s = if hidden.contains(&self.mistake) { &self.mean[..] } else { &self.now.s };
        let alpha = if self.is("steps that are too large") { T::of(100.0) } else { alpha };
        if self.is("old gradients with today's step") {
            update(&mut self.x, [wx], |x, [wx]| wx - (half + alpha) * (x - T::one()));
            update(&mut self.moved, [&self.now.d, &self.old], |moved, [d, old]| {
                moved - beta * (d - old)
            });
            axpy(T::one(), &self.moved, &mut self.theta);
            self.old.copy_from_slice(&self.now.d);
        } else {
            update(&mut self.x, [wx, s], |_, [wx, s]| wx - alpha * s);
            axpy(-beta, &self.now.d, &mut self.theta);
        }
        axpy(-lambda, &self.now.h, &mut self.v);
        match self.mistake {
            "state shared by all nodes" => {
                self.x[0] += T::of(STEPS.fetch_add(1, Ordering::Relaxed) as f64 * 1e-6);
            }
            "allocation in the step" => drop(std::hint::black_box(self.x.clone())),
            _ => {}
        }
    }

    fn asks(&mut self, _: usize) -> Option<DirectionRequest<'_, T>> {
        Some(self.now.at(At { x: &self.x, theta: &self.theta }, &self.v))
    }

    fn at(&self) -> At<'_, T> {
        let x = if self.is("at is another point") { &self.now.s[..] } else { &self.x };
        At { x, theta: &self.theta }
    }

    fn variables(&self) -> Vec<(&'static str, &[T])> {
        let DirectionBuffers { d, h, s, .. } = &self.now;
        let theta = match self.mistake {
            "no theta among the variables" => "inner",
            "two variables of one name" => "v",
            _ => "theta",
        };
        let (old, moved) = (("old", &self.old[..]), ("moved", &self.moved[..]));
        let here = [(theta, &self.theta[..]), ("d", d), ("v", &self.v), ("h", h), ("s", s)];
        here.into_iter().chain([("x", &self.x[..]), old, moved]).collect()
    }

    fn variables_mut(&mut self) -> Vec<(&'static str, &mut [T])> {
        let names: Vec<&'static str> = self.variables().into_iter().map(|(name, _)| name).collect();
        let swapped = self.is("variables_mut in another order");
        let DirectionBuffers { d, h, s, .. } = &mut self.now;
        let (old, moved) = (&mut self.old, &mut self.moved);
        let vectors: [&mut [T]; 8] =
            [&mut self.theta, d, &mut self.v, h, s, &mut self.x, old, moved];
        let mut all: Vec<_> = names.into_iter().zip(vectors).collect();
        if swapped {
            all.swap(0, 1);
        }
        all
    }

    fn tracked(&self) -> Option<(&[T], &[T])> {
        let differ = self.is("tracked variables that differ");
        Some((&self.x, if differ { &self.now.s } else { &self.x }))
    }
}

fn registries() -> Registries {
    let mut registries = Registries::default();
    for &(mistake, _) in MISTAKES {
        let method = move |params: Steps| Planted { mistake, params };
        registries.algorithms.add(algorithm_entry(mistake, "a test", facts(mistake), method));
    }
    registries
}

#[test]
fn every_mistake_in_an_algorithm_is_found() {
    let registries = registries();
    for &(mistake, id) in MISTAKES {
        let found = algorithm(&registries, mistake).err();
        let said = found.as_ref().map_or("", |error| error.id);
        assert_eq!(said, id, "{mistake}: {found:?}");
        assert!(found.is_none_or(|error| error.kind == Kind::Mismatch), "{mistake}");
    }
}

#[test]
fn keys_that_are_let_pass_are_found() {
    use lopa::macros::{Deserialize, JsonSchema, Serialize};

    #[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(crate = "lopa::macros::serde")]
    #[schemars(crate = "lopa::macros::schemars")]
    struct Loose {}

    impl Params for Loose {}

    let mut registries = registries();
    let method = |_: Loose| Planted { mistake: "none", params: Steps::default() };
    registries.algorithms.add(algorithm_entry("loose", "a test", facts("none"), method));
    let error = algorithm(&registries, "loose").unwrap_err();
    assert_eq!(error.id, "conformance/unknown-key", "{error}");
}

#[test]
fn messages_name_the_place_and_the_cause() {
    let message = |mistake: &str| algorithm(&registries(), mistake).unwrap_err().to_string();
    let hidden = message("a variable that is not listed");
    let place = "algorithm `a variable that is not listed`, personal scope, f32: ";
    assert!(hidden.starts_with(place) && hidden.contains("`theta` of node 0 differs"), "{hidden}");
    assert!(hidden.contains("a variable that is not listed in `variables`?"), "{hidden}");
    assert!(message("iterations counted by the node").contains("`oracle.k()`"));
    let cost = message("cost without the second gradient");
    assert!(cost.contains("cost says 1 calls of grad_theta_g per iteration, and a run shows 2"));
}
