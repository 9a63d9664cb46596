//! Suggests the intended word for a misspelt one.

/// Longer words get no suggestion: they are not typing mistakes.
const LONGEST: usize = 64;

/// The one of `known` that is most likely meant by `word`, if any is near.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    if length > LONGEST {
        return None;
    }
    let allowed = 1 + length / 4;
    let near = known.into_iter().filter(|k| k.len().abs_diff(word.len()) <= LONGEST).map(|k| (slips(word, k), k));
    near.filter(|(distance, _)| *distance <= allowed).min().map(|(_, k)| k)
}

/// How many letters were left out, added, mistaken or swapped with the next: the distance of
/// Damerau (1964) in the form of the optimal string alignment. Case doesn't matter.
fn slips(a: &str, b: &str) -> usize {
    strsim::osa_distance(&a.to_lowercase(), &b.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_slips_of_the_keyboard() {
        for (a, b, distance) in
            [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("token", "tokn", 1), ("token", "otken", 1), ("Ab", "aB", 0)]
        {
            assert_eq!(slips(a, b), distance, "{a} {b}");
        }
    }

    #[test]
    fn finds_what_was_meant_or_nothing() {
        let known = ["token", "tenant", "user"];
        assert_eq!(nearest("tokne", known), Some("token"));
        assert_eq!(nearest("tennant", known), Some("tenant"));
        assert_eq!(nearest("password", known), None);
        assert_eq!(nearest(&"x".repeat(65), known), None);
    }
}
