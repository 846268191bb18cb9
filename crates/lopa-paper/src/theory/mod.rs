//! The paper's theory as code: constants, step sizes, bounds, and measurements of each.
//!
//! Names and equation numbers are those of the paper (Niu et al., JMLR 26(76), 2025), sections 2 to
//! 4 and appendix; where its text and its proofs disagree, the formula here is the one that follows
//! from the lemmas, and `docs/errata.md` lists the difference.
//!
//! | paper | here |
//! |---|---|
//! | Assumptions 1–5 | [`Constants`], found by [`measure`] over a [`Region`](measure::Region) |
//! | Propositions 1–2, κ, φ, ω_θ | [`Derived`] |
//! | V^k and d_0 … d_6, (25), (53), (92) | [`snapshot`](lopa_study::practical::snapshot), [`Weights`] |
//! | Lemmas on each error term, (26)–(37) | [`lemmas`] |
//! | conditions (47)–(51), (87)–(90), u, u' | [`conditions`], [`steps`] |
//! | Theorems 1–2, Corollaries 1–4 | [`bound`] |
//! | Lemma 1 | [`measure::heterogeneity`] |
//!
//! A [`Study`] does all of it for an experiment; [`rates`] measures the exponents of the corollaries.

pub mod bound;
pub mod conditions;
pub mod constants;
pub mod derived;
pub mod lemmas;
pub mod measure;
pub mod rates;
pub mod steps;
pub mod study;
pub mod trace;
pub mod weights;

pub use constants::{Constants, Known, Origin};
pub use derived::Derived;
pub use lopa_study::practical::{Scheme, Steps};
pub use study::Study;
pub use weights::Weights;

use lopa_study::practical::{Parts, all_samples};
