//! What causes look at: sums and ratios of signals, each with one name.

use crate::effect::Quantity;
use crate::signal::Signal;

/// CPU time with nothing to do.
pub const IDLE: Quantity = Quantity::of("idle share of the CPU", &[Signal::CpuIdle]);
/// CPU time in use.
pub const BUSY: Quantity = Quantity::of("busy share of the CPU", &[Signal::CpuUser, Signal::CpuSystem]);
/// CPU time of the server.
pub const SERVER_CPU: Quantity = Quantity::of("CPU time of the server", &[Signal::ServerCpu]);
/// How much of the machine's CPU time is the server's.
pub const SERVER_SHARE: Quantity =
    Quantity::per("server's share of the CPU time in use", &[Signal::ServerCpu], &[Signal::CpuUser, Signal::CpuSystem]);
/// Threads that want a CPU.
pub const RUN_QUEUE: Quantity = Quantity::of("threads that want a CPU", &[Signal::RunQueue]);
