//! Judges a recording as `holdup diagnose --json` does, and says what that took:
//! `cargo run --release -p holdup-diagnose --example judge -- RECORDING [rows]`, with `rows` by all of its rows.

use std::path::Path;
use std::time::Instant;

use holdup_recording::Recording;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let dir = Path::new(arguments.first().ok_or("usage: judge RECORDING [rows]")?);
    let begun = Instant::now();
    let recording = if arguments.len() > 1 { Recording::open(dir)? } else { Recording::open_condensed(dir)? };
    let read = begun.elapsed();
    let diagnosis = holdup_diagnose::diagnose(&recording, None);
    println!("{}", serde_json::to_string_pretty(&diagnosis)?);
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    eprintln!("read in {read:?}, judged after {:?}; {peak}", begun.elapsed());
    Ok(())
}
