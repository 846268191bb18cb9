//! The messages of a run: unmodified, or according to its file's `[messages]` and `[attack]`.

use super::Observers;
use super::processes::Processes;
use super::world::Job;
use crate::engine::messages::Messages;
use crate::engine::{Delivery, Direct, Lossy, Node, Site, Transport, pieces};
use crate::error::{Error, Result};
use crate::math::real::Real;

impl Job<'_> {
    /// Whether its messages are modified in any way.
    pub(super) fn mails(&self) -> bool {
        self.setup.experiment.mails()
    }

    /// The delivery of the messages of this process, at the start.
    pub(super) fn delivery<T: Real>(
        &self,
        node: &Node<T>,
        transport: &mut dyn Transport,
    ) -> Result<Box<dyn Delivery<T>>> {
        let world = self.setup.world;
        let (size, rank) = (transport.size(), transport.rank());
        if !self.mails() {
            return Ok(Box::new(Direct::new(&world.mixing, size, rank)));
        }
        let usual = Messages::default();
        let messages = self.setup.experiment.messages.as_ref().unwrap_or(&usual);
        let skips = Processes::of(transport).skip_links();
        if skips && messages.compress.as_ref().is_some_and(|with| with.feedback) {
            let message = "compressed messages build on those before: no link may be skipped";
            return Err(Error::config("config/messages-skipped", message)
                .at("[messages] compress")
                .hint("let nodes wait for their neighbours: `--policy wait`"));
        }
        let site = Site {
            mixing: &world.mixing,
            changes: world.rounds.is_some(),
            spread: 1.0 - world.analysis.lambda_min,
            seed: self.setup.seed,
            size,
            rank,
            pieces: &pieces(&*node.algorithm),
        };
        let attack = self.setup.experiment.attack.as_ref();
        Ok(Box::new(Lossy::new(messages, attack, site)?))
    }

    /// Warns the user about settings of messages.
    pub(super) fn warn_of_messages(&self, observers: &mut Observers) {
        let (label, facts) = (&self.algorithm.label, &self.algorithm.choice.build.facts);
        let mut warn = |text: &str| observers.listener.warn(&format!("{label}: {text}"));
        if let Some(attack) = &self.setup.experiment.attack {
            let honest = self.setup.experiment.network.nodes - attack.nodes.len();
            let liars: Vec<String> = attack.nodes.iter().map(usize::to_string).collect();
            let liars = liars.join(", ");
            warn(&format!("node {liars} lies; measures are of the {honest} honest nodes"));
        }
        let messages = self.setup.experiment.messages.as_ref();
        let clips = messages.is_some_and(|messages| messages.rules.clip.is_some());
        if facts.needs_lazy && (clips || self.setup.experiment.attack.is_some()) {
            warn(
                "it adds up what neighbours send, so that one lie stays for ever: clipping bounds the \
                 harm of each message, not that of all. Against liars use lopa-lg",
            );
        }
        if messages
            .and_then(|messages| messages.compress.as_ref())
            .is_some_and(|with| !with.feedback)
        {
            warn(
                "without feedback, what compression loses is lost: nodes do not agree in the end, and \
                 no method reaches the solution",
            );
        }
        if let Some(text) = facts.messages.filter(|_| self.mails()) {
            warn(text);
        }
    }
}
