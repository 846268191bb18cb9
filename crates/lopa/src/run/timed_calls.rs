//! The time of oracle calls on this machine.

use std::time::{Duration, Instant};

use crate::data::Data;
use crate::error::Result;
use crate::experiment::{Experiment, Precision};
use crate::math::random::{Purpose, Stream};
use crate::math::real::{Real, cast};
use crate::network::time::{Calls, Compute};
use crate::problem::At;

/// Seconds for which each kind of call is repeated.
const LONG: Duration = Duration::from_millis(50);

/// The fewest repetitions.
const OFTEN: usize = 7;

impl Experiment {
    /// The experiment with the measured seconds of its oracle calls, if its file has `compute =
    /// "measured"`: the median of several calls at node 0, with three digits.
    pub fn measured(mut self, data: Option<&Data>) -> Result<Experiment> {
        let Some(spec) = self.time.take_if(|spec| spec.compute.calls().is_none()) else {
            return Ok(self);
        };
        let calls = match self.run.precision {
            Precision::F32 | Precision::Tf32 => self.calls::<f32>(data)?,
            Precision::F64 => self.calls::<f64>(data)?,
        };
        self.time = Some(crate::network::time::TimeSpec { compute: Compute::Each(calls), ..spec });
        Ok(self)
    }

    fn calls<T: Real>(&self, data: Option<&Data>) -> Result<Calls> {
        let seed = self.run.seeds[0];
        let world = self.world(data, seed)?;
        let mut part = self.setup(data, &world, seed).parts_of::<T>(0..1)?.each.swap_remove(0);
        let x: Vec<T> = cast(&part.start_x(&mut Stream::new(seed, Purpose::Start, 0)));
        let theta: Vec<T> = cast(&part.start_theta(&mut Stream::new(seed, Purpose::Start, 1)));
        let at = At { x: &x, theta: &theta };
        let batches = self.run.batch.batches();
        let some = |size: Option<usize>, all: usize| -> Vec<u32> {
            (0..size.unwrap_or(all).min(all) as u32).collect()
        };
        let all = part.samples_g();
        let [gradient, hessian, jacobian] =
            [batches.grad_g, batches.hess_g, batches.cross_g].map(|size| some(size, all));
        let (v, mut long) = (vec![T::of(0.5); theta.len()], vec![T::zero(); theta.len()]);
        let mut short = vec![T::zero(); x.len()];
        Ok(Calls {
            gradient: median(|| part.grad_theta_g(at, &gradient, &mut long)),
            hessian: median(|| part.hess_g(at, &hessian, &v, &mut long)),
            jacobian: median(|| part.cross_g(at, &jacobian, &v, &mut short)),
            sample: 0.0,
        })
    }
}

/// The median of several calls, in seconds, with three digits.
fn median(mut call: impl FnMut()) -> f64 {
    call(); // the first has memory to fetch
    let (begun, mut taken) = (Instant::now(), Vec::new());
    while taken.len() < OFTEN || begun.elapsed() < LONG {
        let before = Instant::now();
        call();
        taken.push(before.elapsed());
    }
    taken.sort_unstable();
    let median = taken[taken.len() / 2].as_secs_f64();
    format!("{median:.2e}").parse().unwrap_or(median)
}
