//! Regular expressions of scenarios: compiled within limits, so that no pattern exhausts memory.
//! Errors take one line. It does not match anything itself.

use regex::bytes::{Regex, RegexBuilder};

/// Most bytes that a compiled pattern may take, and again its cache: some hundred times the size of
/// usual patterns.
const MAX_BYTES: usize = 1 << 20;

/// Deepest nesting of groups.
const MAX_NESTING: u32 = 64;

/// Compiles a pattern.
///
/// # Errors
/// A message that says what is wrong, without repeating the pattern.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(MAX_BYTES).dfa_size_limit(MAX_BYTES).nest_limit(MAX_NESTING);
    builder.build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "the pattern takes too much memory: repeat less in it".to_owned(),
        // The library's message repeats the pattern, which may hold a secret; only its last line
        // says what is wrong.
        error => match error.to_string().lines().last().map(|line| line.trim_start_matches("error: ").to_owned()) {
            Some(reason) => format!("the pattern is wrong: {reason}"),
            None => "the pattern is wrong".to_owned(),
        },
    })
}
