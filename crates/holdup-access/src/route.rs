//! The route of a request's path, where the log has only the path.

/// The pattern of a path: without its query, and with `{id}` in place of whatever looks like a key.
pub fn pattern(path: &str) -> String {
    let path = path.split('?').next().unwrap_or(path);
    let parts: Vec<&str> = path.split('/').map(|part| if is_id(part) { "{id}" } else { part }).collect();
    parts.join("/")
}

/// Digits, a UUID, a long hexadecimal number, or a long mix of letters and digits, with or without
/// an extension.
fn is_id(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or(part);
    let digits = stem.bytes().filter(u8::is_ascii_digit).count();
    let joined = stem.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    let hex = stem.bytes().filter(|&b| b != b'-').all(|b| b.is_ascii_hexdigit());
    if digits == 0 || !joined {
        return false;
    }
    let all_digits = stem.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'_'));
    all_digits || hex && stem.len() >= 8 || stem.len() >= 16 && digits >= 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (path, expected) in [
            ("/", "/"),
            ("/users/42?x=1", "/users/{id}"),
            ("/users/42/orders/7.json", "/users/{id}/orders/{id}"),
            ("/a/550e8400-e29b-41d4-a716-446655440000", "/a/{id}"),
            ("/blob/deadbeef01", "/blob/{id}"),
            ("/2024-05-01/news", "/{id}/news"),
            ("/s/dQw4w9WgXcQ1234567", "/s/{id}"),
            ("/api/v2/search", "/api/v2/search"),
            ("/css/main.css", "/css/main.css"),
            ("/feedface", "/feedface"),
            ("/very-long-slug-without-any-number", "/very-long-slug-without-any-number"),
        ] {
            assert_eq!(pattern(path), expected);
        }
    }
}
