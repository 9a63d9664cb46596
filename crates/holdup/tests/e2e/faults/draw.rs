//! What a seed stands for: what records, which fault comes when, and for how long. Pure; it plays nothing.

use std::time::Duration;

/// Which fault comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// SIGKILL to holdup.
    Killed,
    /// SIGHUP to holdup.
    HungUp,
    /// SIGTERM to holdup.
    Terminated,
    /// The recording's disk is full for a while.
    Full,
    /// The same to the end.
    FullToTheEnd,
    /// Writes to the recording's disk fail with EIO for a while.
    Broken,
    /// The same to the end.
    BrokenToTheEnd,
    /// holdup can open no more files for a while (`RLIMIT_NOFILE`).
    NoDescriptors,
    /// SIGKILL to the server, which is started again later.
    ServerKilled,
    /// SIGSTOP to the server and all its processes, and SIGCONT later.
    ServerHung,
    /// The server ends holdup's sessions and refuses its account for a while.
    ServerRefuses,
    /// holdup's wall clock is an hour ahead for a while.
    ClockAhead,
    /// holdup's wall clock is an hour behind for a while.
    ClockBehind,
}

/// In this order they take turns, so that as many seeds in a row as there are faults have each of them.
const FAULTS: [Fault; 13] = [
    Fault::Killed,
    Fault::Full,
    Fault::ServerHung,
    Fault::HungUp,
    Fault::Broken,
    Fault::ServerKilled,
    Fault::Terminated,
    Fault::FullToTheEnd,
    Fault::ServerRefuses,
    Fault::NoDescriptors,
    Fault::BrokenToTheEnd,
    Fault::ClockAhead,
    Fault::ClockBehind,
];

impl Fault {
    /// Whether it hits a server that is watched, and not holdup.
    pub fn is_of_server(self) -> bool {
        matches!(self, Self::ServerKilled | Self::ServerHung | Self::ServerRefuses)
    }

    /// Whether it ends holdup.
    pub fn ends(self) -> bool {
        matches!(self, Self::Killed | Self::HungUp | Self::Terminated)
    }

    /// Whether it is over before the recording is.
    pub fn passes(self) -> bool {
        !self.ends() && !matches!(self, Self::FullToTheEnd | Self::BrokenToTheEnd)
    }

    /// Whether it sets the wall clock.
    pub fn is_of_clock(self) -> bool {
        matches!(self, Self::ClockAhead | Self::ClockBehind)
    }

    /// Whether writes of the recording fail.
    pub fn is_of_writes(self) -> bool {
        !self.ends() && !self.is_of_server() && !self.is_of_clock()
    }
}

/// What records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// `holdup run` against the test service, with the host.
    Run,
    /// `holdup watch` of the host, a MariaDB and a PostgreSQL, which have a small load.
    Watch,
}

/// Which server a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    MariaDb,
    PostgreSql,
}

/// One draw.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    pub seed: u64,
    pub subject: Subject,
    pub fault: Fault,
    pub server: Which,
    /// How long is recorded, if nothing ends it before.
    pub length: Duration,
    /// When the fault comes, from the first segment on.
    pub at: Duration,
    /// How long it lasts, if it passes.
    pub lasts: Duration,
}

/// The draw of `seed`: 10 to 20 s long, with the fault in the first half and 2 to 5 s of it.
pub fn of(seed: u64) -> Draw {
    let mut numbers = Numbers(seed);
    let fault = FAULTS[(seed % FAULTS.len() as u64) as usize];
    let subject = if fault.is_of_server() || numbers.next(2) == 1 { Subject::Watch } else { Subject::Run };
    let server = if numbers.next(2) == 1 { Which::MariaDb } else { Which::PostgreSql };
    let ms = Duration::from_millis;
    let length = ms(10_000 + numbers.next(10_001));
    let at = ms(1_000 + numbers.next(length.as_millis() as u64 / 2 - 2_000));
    Draw { seed, subject, fault, server, length, at, lasts: ms(2_000 + numbers.next(3_001)) }
}

/// SplitMix64.
struct Numbers(u64);

impl Numbers {
    /// From 0 to below `most`.
    fn next(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % most
    }
}

#[test]
fn any_twenty_seeds_have_every_fault_within_the_recording() {
    for from in 0..40 {
        let draws: Vec<Draw> = (from..from + 20).map(of).collect();
        assert!(FAULTS.iter().all(|fault| draws.iter().any(|draw| draw.fault == *fault)), "from seed {from}");
        assert!([Subject::Run, Subject::Watch].iter().all(|s| draws.iter().any(|draw| draw.subject == *s)));
        assert!(draws.iter().all(|draw| draw.at + draw.lasts < draw.length), "from seed {from}");
    }
}
