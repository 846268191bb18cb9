//! Why bytes of another process are refused.

/// Why a frame is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// It is not a frame, or it was truncated.
    Garbage,
    /// It has another version of the layout.
    Version,
    /// Its length field does not match its bytes.
    Length,
    /// It was damaged in transit.
    Checksum,
    /// It belongs to another experiment, network or version of lopa.
    OtherRun,
    /// Its kind is unknown.
    Kind,
    /// Its sender is not a neighbour.
    Stranger,
    /// It is too many steps ahead.
    Future,
    /// Its payload has the wrong type or size, or is malformed.
    Shape,
    /// It contains a value that is not finite, without a mark.
    NotFinite,
    /// It is marked as not finite, and all its values are.
    Finite,
    /// It differs from an earlier frame for the same place.
    Equivocation,
    /// The node that it names as its author did not sign it.
    Signature,
    /// It is of another kind than the frames of its step.
    Step,
    /// It makes a claim about the receiver's past that the receiver has no record of.
    Past,
    /// It differs from what the receiver has of the same, which all nodes share.
    Differs,
}

impl Refusal {
    /// The reason, for the user.
    pub fn text(self) -> &'static str {
        match self {
            Refusal::Garbage => "it is not a lopa frame",
            Refusal::Version => "it has another format version",
            Refusal::Length => "its length field does not match its size",
            Refusal::Checksum => "it was damaged in transit",
            Refusal::OtherRun => "it belongs to another experiment, network or version of lopa",
            Refusal::Kind => "its kind is unknown",
            Refusal::Stranger => "its sender is not a neighbour in this run",
            Refusal::Future => "it is too many steps ahead",
            Refusal::Shape => "its content is malformed or has the wrong size",
            Refusal::NotFinite => "it contains a value that is not finite, and does not say so",
            Refusal::Finite => "it says that its numbers are not finite, but they are",
            Refusal::Equivocation => "it contradicts an earlier frame",
            Refusal::Signature => "the node that it names as its author did not sign it",
            Refusal::Step => "it is of another kind than the frames of its step",
            Refusal::Differs => "it differs from what this node has of the same",
            Refusal::Past => "it claims that this node had saved more than its checkpoint holds",
        }
    }
}
