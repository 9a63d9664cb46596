//! What seeds draw from. Later seeds have more topologies and kinds to draw from than earlier ones, so that a seed that
//! was played keeps its draw for ever: a new topology or kind belongs to the last edition, or begins another one.

/// What a seed draws from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edition {
    /// App and database, and perhaps a link between them.
    First,
    /// Poolers and proxies as well, and their faults.
    Proxies,
    /// Shops in frameworks of others that tell nothing, and faults of what changed.
    Shops,
}

impl Edition {
    /// Every edition, the first one first.
    pub const ALL: [Self; 3] = [Self::First, Self::Proxies, Self::Shops];

    /// The edition of a seed.
    pub fn of_seed(seed: u64) -> Self {
        let begun = Self::ALL.into_iter().rev().find(|edition| seed >= edition.first_seed());
        begun.unwrap_or(Self::First)
    }

    /// The first seed that draws from it.
    pub fn first_seed(self) -> u64 {
        match self {
            Self::First => 0,
            Self::Proxies => 1_200,
            Self::Shops => 1_500,
        }
    }
}
