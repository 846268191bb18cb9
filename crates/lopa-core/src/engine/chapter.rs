//! Parts of runs with the same members.

/// Where a node can continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The index of a run in the experiment.
    pub job: u32,
    /// The iterations done; `None` for the start of the run.
    pub k: Option<u64>,
}

impl Position {
    /// The run and the iterations done.
    pub fn iterations(self) -> (u32, u64) {
        (self.job, self.k.unwrap_or(0))
    }
}

/// A part of the runs with the same members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chapter {
    /// The members, in order.
    pub members: Vec<usize>,
    /// Where it begins.
    pub from: Position,
    /// The members that take over the shared part of their state there, in order.
    pub back: Vec<Back>,
}

/// A node that comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Back {
    /// The node.
    pub node: usize,
    /// The iteration of its own state that it continues with, in the run of the cut; `None` if it has none.
    pub own: Option<u64>,
}

impl Chapter {
    /// How a node comes back in it, if it does.
    pub fn back(&self, node: usize) -> Option<&Back> {
        self.back.iter().find(|back| back.node == node)
    }

    /// The index of the chapter that a run ends in, or that it is in: the last one that does not begin later.
    pub fn of(all: &[Chapter], job: u32) -> usize {
        all.iter().rposition(|chapter| chapter.from.job <= job).unwrap_or(0)
    }
}
