//! The rule that finds step sizes, in kernels: `Finding` of kernels/steps.cuh, field by field.

use lopa::algorithms::parts::steps::{Finder, Rule, number};
use lopa::algorithms::update_rule::Turn;
use lopa::engine::Node;
use lopa::error::Result;

use crate::driver::Card;
use crate::finds::{Finds, SENT};
use crate::job::{Address, Common, Scalar};
use crate::plan::Plan;
use crate::run::State;

/// Threads of a block.
pub const FINDERS: u32 = 512;

/// The parameters of a launch: see kernels/steps.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Finding {
    pub rule: Address,
    sent: Address,
    units: Address,
    pub state: Address,
    probes: Address,
    y: [Address; 2],
    of_theta: Address,
    of_v: Address,
    d: Address,
    h: Address,
    v: Address,
    theta: Address,
    hess: Address,
    product: Address,
    old_d: Address,
    old_h: Address,
    mean: Address,
    w: Address,
    links: Address,
    linked: Address,
    weights: Address,
    table: Address,
    clock: Address,
    m: u32,
    n: u32,
    p: u32,
    row: u32,
    ahead: u32,
    flags: u32,
    of: [u32; 4],
}

const SETTLES: u32 = 1;
const MIXES: u32 = 2;
const FINDS: [u32; 3] = [16, 4, 8]; // of x, θ and v
const NOTES: u32 = 32;
const SHOWS: u32 = 64;
const LEAVES: u32 = 128;
const ADAPTIVE: u32 = 256;
const GLOBAL: u32 = 512;
const GIVEN: [u32; 3] = [1024, 2048, 4096];
const SENDS: u32 = 8192;
const AVERAGES: u32 = 1 << 17;

impl Finds {
    /// The flags of a turn.
    fn flags(&self, turn: Turn) -> u32 {
        let Finder { given, global, .. } = self.finder;
        let all = |bits: [u32; 3], which: [bool; 3]| -> u32 {
            bits.into_iter().zip(which).filter(|(_, of)| *of).map(|(bit, _)| bit).sum()
        };
        let measures = self.measures.is_some();
        let own = [
            (SETTLES, turn.settles && measures),
            (MIXES, turn.mixes),
            (NOTES, turn.notes && measures),
            (SHOWS, turn.shows && measures),
            (LEAVES, turn.leaves && measures),
            (AVERAGES, turn.shows && self.mean.is_some()),
            (ADAPTIVE, given.rule == Rule::Adaptive),
            (GLOBAL, global),
        ];
        let sent = self.finder.sends().map(|(.., sent)| sent);
        let sends = (0..4).filter(|&at| sent[at]).map(|at| (SENDS << at, true));
        let own = own.into_iter().chain(sends).filter(|(_, of)| *of);
        own.map(|(bit, _)| bit).sum::<u32>()
            + all(FINDS, turn.finds.map(|of| of.is_some()))
            + all(GIVEN, given.finds().map(|found| !found))
    }
}

/// The launches of the three turns of an iteration of LoPA or D-SOBA; the graph and the clock are those of `common`.
pub fn findings<T: Scalar>(
    card: &Card,
    state: &mut State<T>,
    plan: &Plan<T>,
    common: &Common,
    nodes: &[Node<T>],
) -> Result<Option<[Finding; 3]>> {
    let Some(finds) = &plan.finds else { return Ok(None) };
    let m = common.m as usize;
    let mut sent = Vec::with_capacity(m * SENT.len());
    plan.variables.hand_over(nodes, finds.rule, |_, rules| {
        sent.extend(rules.chunks_exact(number::ALL).flat_map(|rule| SENT.map(|at| rule[at])));
        Ok(())
    })?;
    let sent = state.copy(card, &sent)?;
    let units = state.copy(card, &finds.units)?;
    let awake = state.empty::<u32>(card, m)?;
    let probes = state.counters(card)?;
    let at = |array: usize| state.address(array, 0);
    let measures = finds.measures.map(|of| (of.old.map(at), at(of.hess), at(of.w), at(of.product)));
    let ([old_d, old_h], hess, w, product) = measures.unwrap_or_default();
    let finding = Finding {
        rule: at(finds.rule),
        sent,
        units,
        state: awake,
        probes,
        y: [common.y[0], common.y[1]],
        of_theta: common.d,
        of_v: common.h,
        d: common.d,
        h: common.h,
        v: common.v,
        theta: common.theta,
        hess,
        product,
        old_d,
        old_h,
        mean: finds.mean.map_or(0, at),
        w,
        links: common.links,
        linked: common.linked,
        weights: common.w,
        table: common.steps,
        clock: common.clock,
        m: common.m,
        n: common.n,
        p: common.p,
        row: 5,
        ahead: 0,
        flags: 0,
        of: [0, 1, 2, 4],
    };
    let of = |turn: Turn| Finding { ahead: turn.ahead as u32, flags: finds.flags(turn), ..finding };
    Ok(Some(finds.turns.map(of)))
}

#[cfg(test)]
mod tests {
    use super::Finding;
    use crate::kernels::ptx;
    use crate::kernels::tests::general_ptx;

    /// The kernels' parameters have the same size.
    #[test]
    fn it_is_as_large_as_the_kernels_take_it_for() {
        for (text, name) in [(ptx(), "find_f32"), (ptx(), "find_f64"), (general_ptx(), "find")] {
            let parameter = format!(".param .align 8 .b8 {name}_param_0[{}]", size_of::<Finding>());
            assert!(text.contains(&parameter), "{parameter}");
        }
    }
}
