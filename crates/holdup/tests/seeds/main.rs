//! The fuzzers' seeds, and a thousand inputs made of them for each target, through the same functions as the fuzzers', by the ordinary
//! compiler: what was found once is not found again. What nobody has thought of is found by `cargo xtask fuzz`.

// The targets of `fuzz/` know no other name for what calls them.
extern crate self as libfuzzer_sys;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

/// Inputs made of the seeds of a target: by count, so that they are the same on every machine.
const MADE: usize = 1_000;

/// As the fuzzers' own macro, but what is made is a function.
macro_rules! fuzz_target {
    (|$input:ident: &[u8]| $body:block) => {
        pub fn fuzz($input: &[u8]) $body
    };
}
pub(crate) use fuzz_target;

/// Each target as a module, and a test of its name.
macro_rules! targets {
    ($($name:ident: $path:literal,)*) => {
        $(
            #[path = $path]
            // A program of the fuzzer's has no `main` of its own, and takes the macro by name.
            #[allow(unused_attributes, unused_imports)]
            mod $name;
        )*

        const NAMES: &[&str] = &[$(stringify!($name)),*];

        mod seeds_of {
            $(#[test]
            fn $name() {
                super::replay(stringify!($name), super::$name::fuzz);
            })*
        }
    };
}

targets! {
    access: "../../../../fuzz/fuzz_targets/access.rs",
    app_servers: "../../../../fuzz/fuzz_targets/app_servers.rs",
    capture: "../../../../fuzz/fuzz_targets/capture.rs",
    cloud: "../../../../fuzz/fuzz_targets/cloud.rs",
    growing: "../../../../fuzz/fuzz_targets/growing.rs",
    hpack: "../../../../fuzz/fuzz_targets/hpack.rs",
    http1_response: "../../../../fuzz/fuzz_targets/http1_response.rs",
    http2_session: "../../../../fuzz/fuzz_targets/http2_session.rs",
    import: "../../../../fuzz/fuzz_targets/import.rs",
    kernel_files: "../../../../fuzz/fuzz_targets/kernel_files.rs",
    kubernetes: "../../../../fuzz/fuzz_targets/kubernetes.rs",
    logs: "../../../../fuzz/fuzz_targets/logs.rs",
    mongodb: "../../../../fuzz/fuzz_targets/mongodb.rs",
    otlp: "../../../../fuzz/fuzz_targets/otlp.rs",
    packets: "../../../../fuzz/fuzz_targets/packets.rs",
    pasted: "../../../../fuzz/fuzz_targets/pasted.rs",
    recording: "../../../../fuzz/fuzz_targets/recording.rs",
    scenario: "../../../../fuzz/fuzz_targets/scenario.rs",
    statement: "../../../../fuzz/fuzz_targets/statement.rs",
    template: "../../../../fuzz/fuzz_targets/template.rs",
    together: "../../../../fuzz/fuzz_targets/together.rs",
    wire: "../../../../fuzz/fuzz_targets/wire.rs",
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// Every seed of `name`, as it is and changed.
fn replay(name: &str, fuzz: fn(&[u8])) {
    let files = std::fs::read_dir(folder().join("seeds").join(name)).unwrap();
    let mut seeds: Vec<Vec<u8>> = files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect();
    seeds.sort();
    assert!(!seeds.is_empty());
    for seed in &seeds {
        run(name, seed, fuzz);
    }
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for _ in 0..MADE {
        run(name, &numbers.changed(&seeds), fuzz);
    }
    println!("{name}: {MADE} inputs beside {} seeds", seeds.len());
}

/// With what it was, if it does harm.
fn run(name: &str, input: &[u8], fuzz: fn(&[u8])) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| fuzz(input))) {
        eprintln!("{name} is harmed by {}", input.escape_ascii());
        resume_unwind(panic);
    }
}

/// Marsaglia's xorshift of 64 bits (2003).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }

    /// A seed with some bytes set, left out, doubled, or taken from another.
    fn changed(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut input = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(4) {
            let at = self.below(input.len() + 1);
            let end = (at + self.below(16)).min(input.len());
            match self.below(5) {
                0 if at < input.len() => input[at] = self.below(256) as u8,
                1 if at < input.len() => input[at] ^= 1 << self.below(8),
                2 => drop(input.drain(at..end)),
                3 => {
                    let piece = input[at..end].to_vec();
                    input.splice(at..at, piece);
                }
                _ => {
                    let other = &seeds[self.below(seeds.len())];
                    let from = self.below(other.len() + 1);
                    let to = (from + self.below(64)).min(other.len());
                    input.splice(at..end, other[from..to].iter().copied());
                }
            }
        }
        input
    }
}

#[test]
fn every_target_is_here() {
    let files = std::fs::read_dir(folder().join("fuzz_targets")).unwrap();
    let mut found: Vec<String> =
        files.map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect();
    found.sort();
    assert_eq!(found, NAMES);
}
