//! Makes a long recording out of two fixtures, to see how long it takes to judge it:
//! `cargo run --release -p holdup-diagnose --example grow -- fixtures/hidden-queue-fixed fixtures/hidden-queue-faulty 3600 RECORDING`.

use std::path::Path;
use std::process::ExitCode;

#[path = "../tests/judge/long/grow.rs"]
mod grow;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [healthy, faulty, seconds, to] = arguments.as_slice() else {
        eprintln!("usage: grow HEALTHY FAULTY SECONDS RECORDING");
        return ExitCode::from(2);
    };
    let seconds = seconds.parse().unwrap_or(3_600);
    let made = grow::Grown::of(Path::new(healthy), Path::new(faulty), seconds).and_then(|grown| {
        grown.write(Path::new(to))?;
        Ok(format!("{} s, the fault is at {:?} s", grown.seconds(), grown.fault()))
    });
    match made {
        Ok(text) => println!("{text}"),
        Err(error) => eprintln!("{error}"),
    }
    ExitCode::SUCCESS
}
