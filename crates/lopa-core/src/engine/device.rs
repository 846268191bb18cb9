//! The nodes of a process on a device, such as a graphics card.
//!
//! A device takes over whole iterations: it receives the update rule ([`UpdateRule`]) and the
//! arrays of each node's part ([`Form`](crate::problem::form::Form)), starts from the variables of
//! the nodes, and returns them on request. Nodes are still created, restored, measured and saved on
//! the processor. With several processes each has a device, or shares one; before the device mixes, what
//! neighbours in other processes need goes through the same transport as on the processor ([`Exchange`]).

use super::Node;
pub use super::company::{Company, Facts};
pub use super::delivery::Border;
use super::transport::Parcel;
use crate::algorithms::update_rule::{Evaluation, UpdateRule};
use crate::config::{Entry, NoParams, Registry};
use crate::error::Result;
use crate::math::real::{Both, Family, Real};
use crate::network::Mixing;
use crate::network::outbox::{Outbox, Round};
use crate::problem::derivative::Batches;

use std::sync::Arc;

/// A run for a device to take over.
pub struct Program<'a, T: Real> {
    /// The nodes of this process, with the variables to start from.
    pub nodes: &'a [Node<T>],
    /// This process among those of the run.
    pub company: &'a Company<'a>,
    /// W of all nodes.
    pub mixing: &'a Mixing,
    /// Samples per minibatch.
    pub batches: Batches,
    /// Whether all derivatives use one minibatch of f and one of g.
    pub shared: bool,
    /// Whether factors of products may be rounded to 11 bits, as in tf32.
    pub rounds: bool,
    /// The seed.
    pub seed: u64,
    /// The iterations done.
    pub k: u64,
}

/// Sends parcels to other processes and fills those from them; all processes call it equally often.
pub type Exchange<'a> = &'a mut dyn FnMut(&[Parcel], &mut [Parcel]) -> Result<()>;

/// Computes the iterations of the nodes of a process.
pub trait DeviceRun<T: Real>: Send {
    /// Begins the next iteration; it may still be running when this returns. Calls `exchange` for what
    /// mixing needs of other processes; without others, never.
    fn advance(&mut self, exchange: Exchange) -> Result<()>;
    /// Waits until all iterations that were begun have finished.
    fn wait(&mut self) -> Result<()>;
    /// Writes the variables back into the nodes, and counts as [`count`](DeviceRun::count) does.
    fn fetch(&mut self, nodes: &mut [Node<T>]) -> Result<()>;
    /// Counts, in the nodes' oracles, the products that measured curvatures since the last call: only the device
    /// knows which nodes needed one.
    fn count(&mut self, _: &mut [Node<T>]) -> Result<()> {
        Ok(())
    }
    /// The largest entry of each variable of each node, in the order in which algorithms list
    /// them; NaN if an entry is not finite.
    fn sizes(&mut self) -> Result<Vec<Vec<f64>>>;
}

/// The device of a run, with the cost of an iteration as the processor would count it.
pub(super) struct OnDevice<T: Real> {
    pub run: Box<dyn DeviceRun<T>>,
    /// The numbers that a node sends in each exchange.
    pub lengths: Vec<u64>,
    evaluations: Vec<Evaluation>,
    /// Whether nodes measure curvatures when they need to.
    pub probes: bool,
}

impl<T: Real> OnDevice<T> {
    pub fn new(run: Box<dyn DeviceRun<T>>, nodes: &[Node<T>]) -> OnDevice<T> {
        let algorithm = &nodes[0].algorithm;
        let rule = algorithm.update_rule().ok();
        let probes =
            rule.as_ref().and_then(UpdateRule::finder).is_some_and(|of| of.given.measures());
        let evaluations = rule.map(|rule| rule.evaluations()).unwrap_or_default();
        let length = |e: usize| {
            let mut out = Outbox::default();
            algorithm.share(Round { k: 0, e }, &mut out);
            out.values().len() as u64
        };
        let lengths = (0..algorithm.exchanges()).map(length).collect();
        OnDevice { run, lengths, evaluations, probes }
    }

    /// Counts the derivatives of iteration `k`.
    pub fn count_derivatives(&self, k: u64, nodes: &mut [Node<T>]) {
        for evaluation in self.evaluations.iter().filter(|evaluation| k >= evaluation.from) {
            let wanted = evaluation.into.map(|array| array.is_some());
            let count = |node: &mut Node<T>| node.oracle.count(wanted, evaluation.single);
            nodes.iter_mut().for_each(count);
        }
    }
}

/// Where iterations are computed: the choice of `device` in a file.
pub struct Device(Option<Driver>);

/// A device other than the processor.
pub struct Driver {
    /// Takes over a run; the error has the reason why it cannot.
    pub open: Both<Opens>,
    /// The name of the device that the process with this number among those of its machine uses, for
    /// manifests; an error if there is none.
    pub describe: Box<dyn Fn(usize) -> Result<String> + Send + Sync>,
}

impl Device {
    /// The processor.
    pub fn processor() -> Device {
        Device(None)
    }

    /// A device: the functions that take over a run in each precision, and its name.
    pub fn new(
        single: impl Fn(Program<f32>) -> Result<Box<dyn DeviceRun<f32>>> + Send + Sync + 'static,
        double: impl Fn(Program<f64>) -> Result<Box<dyn DeviceRun<f64>>> + Send + Sync + 'static,
        describe: impl Fn(usize) -> Result<String> + Send + Sync + 'static,
    ) -> Device {
        let open = Both::new(Box::new(single) as <Opens as Family>::Of<f32>, Box::new(double) as _);
        Device(Some(Driver { open, describe: Box::new(describe) }))
    }

    /// The device, unless it is the processor.
    pub fn driver(&self) -> Option<&Driver> {
        self.0.as_ref()
    }
}

/// The function that takes over a run, as a family over precisions.
pub struct Opens;

impl Family for Opens {
    type Of<T: Real> = Box<dyn Fn(Program<T>) -> Result<Box<dyn DeviceRun<T>>> + Send + Sync>;
}

/// An entry of the registry of devices.
pub fn device_entry(
    name: impl Into<String>,
    about: impl Into<String>,
    device: Device,
) -> Entry<Device> {
    let device = Arc::new(device);
    Entry::new(name, about, move |_: NoParams| device.clone())
}

/// The devices that come with the library: the processor.
pub fn devices() -> Registry<Device> {
    Registry::new("device", vec![device_entry(CPU, "the processor", Device::processor())])
}

/// The name of the processor in files.
pub const CPU: &str = "cpu";
