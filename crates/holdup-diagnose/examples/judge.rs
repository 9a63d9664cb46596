//! Judges a recording as `holdup diagnose --json` does, and says what that took:
//! `cargo run --release -p holdup-diagnose --example judge -- RECORDING [rows]`, with `rows` by all of its rows.

use std::path::Path;
use std::time::Instant;

use holdup_recording::Recording;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let dir = Path::new(arguments.first().ok_or("usage: judge RECORDING [rows]")?);
    let begun = Instant::now();
    let recording = match arguments.get(1) {
        Some(_) => Recording::open(dir)?,
        None => Recording::open_excerpt(dir, None, &holdup_diagnose::CHOICE)?,
    };
    let (read, kept) = (begun.elapsed(), memory("VmRSS")?);
    let diagnosis = holdup_diagnose::diagnose(&recording, None);
    println!("{}", serde_json::to_string_pretty(&diagnosis)?);
    eprintln!("read in {read:?} ({kept}), judged after {:?} (at most {})", begun.elapsed(), memory("VmHWM")?);
    Ok(())
}

/// What the kernel says of this process' memory, e.g. `1024 kB`.
fn memory(what: &str) -> std::io::Result<String> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(what));
    Ok(line.unwrap_or_default().trim_start_matches(':').trim().to_owned())
}
