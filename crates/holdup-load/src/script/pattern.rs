//! Regular expressions as scenarios give them: compiled within limits, so that no pattern takes the memory of the run, and
//! refused in one line. What is matched against them is not decided here.

use regex::bytes::{Regex, RegexBuilder};

/// Most bytes that a compiled pattern may take, and again its cache: some hundred times what patterns in use do.
const MAX_BYTES: usize = 1 << 20;

/// Most groups in groups of a pattern.
const MAX_NESTING: u32 = 64;

/// Compiles a pattern.
///
/// # Errors
/// What is wrong with it, without repeating it.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(MAX_BYTES).dfa_size_limit(MAX_BYTES).nest_limit(MAX_NESTING);
    builder.build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "the pattern takes too much memory: repeat less in it".to_owned(),
        // The library draws the pattern, which may hold a secret; its last line says what is wrong.
        error => match error.to_string().lines().last().map(|line| line.trim_start_matches("error: ").to_owned()) {
            Some(reason) => format!("the pattern is wrong: {reason}"),
            None => "the pattern is wrong".to_owned(),
        },
    })
}
