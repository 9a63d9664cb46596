//! Judges recordings whole and with any one source or table gone, and says where the verdict is neither right nor honest:
//! `cargo run --release -p holdup-diagnose --example without -- CULPRIT RECORDING...`, with the culprit as in a lab's `expect`
//! (`null` for none). Prints a line of JSON each, of the whole one with what share of the slowest hundredth's time the ledger owns;
//! ends with 1 if a verdict is wrong. `bench/judge/labs.py` plays labs for it.

use std::path::Path;
use std::process::ExitCode;

use holdup_diagnose::diagnose;
use holdup_recording::Recording;

#[path = "../tests/judge/removal/honest.rs"]
mod honest;
#[path = "../tests/judge/matrix/owned.rs"]
mod owned;
#[path = "../tests/judge/removal/part.rs"]
mod part;
#[path = "../tests/judge/truth.rs"]
mod truth;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [culprit, recordings @ ..] = arguments.as_slice() else {
        return Err("usage: without CULPRIT RECORDING...".into());
    };
    let truth = truth::Truth::of(culprit);
    let mut wrong = 0;
    for dir in recordings {
        let whole = Recording::open(Path::new(dir))?;
        let parts = part::Part::of(&whole).into_iter().map(Some);
        for part in std::iter::once(None).chain(parts) {
            let mut less = whole.clone();
            if let Some(part) = &part {
                part.take_from(&mut less);
            }
            let diagnosis = diagnose(&less, None);
            let is_wrong = !honest::is_honest(&diagnosis, &truth, || diagnose(&whole, None));
            wrong += usize::from(is_wrong);
            let told = serde_json::json!({
                "recording": dir,
                "owned": if part.is_none() { owned::owned(&diagnosis, &whole) } else { None },
                "without": part.map(|part| format!("{part:?}")),
                "verdict": diagnosis.verdict,
                "culprit": diagnosis.culprit,
                "confidence": honest::confidence(&diagnosis),
                "wrong": is_wrong,
            });
            println!("{told}");
        }
    }
    Ok(if wrong > 0 { ExitCode::from(1) } else { ExitCode::SUCCESS })
}
