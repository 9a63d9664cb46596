//! The minimal HTTP/1.1 server that load generators are measured against: so cheap that it is not the limit, and a
//! witness of what reached it and when. It answers every request with the same bytes, keeps connections open, and
//! knows two moods: fast, and freezing (a fixed service time, and one stop of the whole server). It doesn't parse more
//! of a request than where it ends, so requests with a body are not for it.

mod connection;
mod delay;
mod requests;
mod serve;
mod socket;

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::system;

/// How the responder is started.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Cores to serve on: one thread for each, pinned to it, with a listening socket of its own
    #[arg(long, value_delimiter = ',', default_value = "0")]
    pub cpus: Vec<usize>,
    /// Port on 127.0.0.1; 0 takes a free one and prints it
    #[arg(long, default_value_t = 0)]
    pub port: u16,
    /// Answer each request this many milliseconds after it was read; any number of them wait at once
    #[arg(long, default_value_t = 0.0)]
    pub service_ms: f64,
    /// Seconds after the first request at which the server stops
    #[arg(long, requires = "freeze_for_s")]
    pub freeze_at_s: Option<f64>,
    /// Seconds for which it then neither accepts, reads nor answers
    #[arg(long, requires = "freeze_at_s")]
    pub freeze_for_s: Option<f64>,
    /// Write the kernel's receive time of every request to this file when it ends: 8 bytes each, nanoseconds since
    /// 1970, little-endian, in the order of their reading
    #[arg(long)]
    pub stamps: Option<PathBuf>,
    /// Report how long it took from the first connection until there were this many
    #[arg(long)]
    pub expect: Option<usize>,
}

/// What the responder saw, printed as one line of JSON when it is told to end.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Seen {
    /// Requests read to their end.
    pub requests: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Most connections open at once, summed over threads (each at its own most).
    pub connections_most: u64,
    /// Seconds from the first connection until as many had been accepted as `--expect` asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connected_seconds: Option<f64>,
    /// CPU time of the process in user mode.
    pub user_seconds: f64,
    /// CPU time of the process in the kernel.
    pub system_seconds: f64,
}

/// Serves until SIGTERM or SIGINT. The first line on stdout is `listening 127.0.0.1:PORT`, the last a [`Seen`].
///
/// # Errors
/// A port that is taken, a core that isn't there, a file that can't be written.
pub fn run(options: &Options) -> Result<()> {
    if options.cpus.is_empty() {
        bail!("--cpus names no core");
    }
    // Threads inherit the mask: only `wait_for_end` sees these signals.
    system::block_end_signals()?;
    let first = socket::listen(options.port, options.stamps.is_some())?;
    let port = socket::port(&first)?;
    let mut listeners = vec![first];
    for _ in 1..options.cpus.len() {
        listeners.push(socket::listen(port, options.stamps.is_some())?);
    }
    let end = system::Event::new()?;
    let mut threads = Vec::new();
    for (cpu, listener) in options.cpus.iter().zip(listeners) {
        if options.cpus.len() > 1 {
            socket::prefer_cpu(&listener, *cpu);
        }
        let server = serve::Server::new(*cpu, listener, end.watch()?, options)?;
        threads.push(std::thread::spawn(move || server.run()));
    }
    println!("listening 127.0.0.1:{port}");
    std::io::stdout().flush()?;
    system::wait_for_end()?;
    end.raise()?;
    let mut all = serve::Tally::default();
    for thread in threads {
        let Ok(tally) = thread.join() else { bail!("a serving thread broke down") };
        all.add(tally?);
    }
    if let Some(path) = &options.stamps {
        let bytes: Vec<u8> = all.stamps.iter().flat_map(|stamp| stamp.to_le_bytes()).collect();
        std::fs::write(path, bytes).with_context(|| format!("failed to write {}", path.display()))?;
    }
    println!("{}", serde_json::to_string(&seen(&mut all, options))?);
    Ok(())
}

fn seen(all: &mut serve::Tally, options: &Options) -> Seen {
    let cpu = system::own_cpu_time();
    all.accepted_ns.sort_unstable();
    let nth = options.expect.and_then(|n| all.accepted_ns.get(n.checked_sub(1)?));
    let first = all.accepted_ns.first();
    Seen {
        requests: all.requests,
        connections: all.accepted_ns.len() as u64,
        connections_most: all.connections_most,
        connected_seconds: nth.zip(first).map(|(nth, first)| (nth - first) as f64 / 1e9),
        user_seconds: cpu.user_seconds,
        system_seconds: cpu.system_seconds,
    }
}
