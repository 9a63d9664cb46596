//! What of a server can be read, as the probe found it. It asks nothing itself.

/// What can be read.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    pub(super) status: bool,
    /// How operations are read; none if they cannot be.
    pub(super) operations: Option<OperationsBy>,
    /// Whether the use of collections is counted.
    pub(super) top: bool,
    /// Whether sizes of collections can be read.
    pub(super) sizes: bool,
    /// Whether uses of indexes are counted.
    pub(super) index_uses: bool,
    /// Whether what profilers keep can be read.
    pub(super) profiles: bool,
    /// Whether it says that it is part of a replica set.
    pub(super) replica_set: bool,
}

/// The command that shows operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperationsBy {
    Stage,
    Command,
}
