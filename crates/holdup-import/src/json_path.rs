//! Translates JSONPath and JMESPath, as far as they name places, into JSON pointers in which `*` is
//! every element.

/// A pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// RFC 6901; a part `*` stands for every element.
    pub text: String,
    /// The path counts from the end (`[-1]`): it means the last match of `*`.
    pub is_last: bool,
}

/// `$.items[*].id`, `$['a b'][0]`, `$.a[-1]` -> a pointer; none for paths that search or filter.
pub fn pointer(path: &str) -> Option<Pointer> {
    let rest = path.trim().strip_prefix('$')?;
    parts(rest)
}

/// `items[0].id` -> a pointer; none for paths that search, filter or compute.
pub fn jmes_pointer(path: &str) -> Option<Pointer> {
    let path = path.trim();
    if path.contains(['\'', '"', '(', '|', '`', '&', '{', '?', '@']) || path.is_empty() {
        return None;
    }
    let start = if path.starts_with('[') { String::new() } else { ".".to_owned() };
    parts(&format!("{start}{path}"))
}

fn parts(mut rest: &str) -> Option<Pointer> {
    let mut text = String::new();
    let mut is_last = false;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let end = if let Some(quoted) = inner.strip_prefix(['\'', '"']) {
                let quote = &inner[..1];
                let close = quoted.find(quote)?;
                part(&mut text, &quoted[..close]);
                rest = quoted[close + 1..].strip_prefix(']')?;
                continue;
            } else {
                inner.find(']')?
            };
            match inner[..end].trim() {
                "*" => text.push_str("/*"),
                "-1" | "-1:" => {
                    text.push_str("/*");
                    is_last = true;
                }
                number if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => part(&mut text, number),
                _ => return None,
            }
            rest = &inner[end + 1..];
        } else {
            let inner = rest.strip_prefix('.')?;
            let end = inner.find(['.', '[']).unwrap_or(inner.len());
            let name = &inner[..end];
            if name.is_empty() || name.contains(['(', ')', ' ', '?', '@']) {
                return None;
            }
            if name == "*" {
                text.push_str("/*")
            } else {
                part(&mut text, name)
            }
            rest = &inner[end..];
        }
    }
    Some(Pointer { text, is_last })
}

/// Appends a part, escaped as RFC 6901, section 3, says.
pub fn part(pointer: &mut String, name: &str) {
    pointer.push('/');
    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
}

/// The pointer to the element with that index, if a single `*` can be replaced.
pub fn nth(pointer: &str, index: u32) -> Option<String> {
    let parts: Vec<&str> = pointer.split('/').collect();
    let mut stars = parts.iter().enumerate().filter(|(_, part)| **part == "*").map(|(i, _)| i);
    let (at, None) = (stars.next()?, stars.next()) else { return None };
    let number = index.to_string();
    let mut parts = parts;
    parts[at] = &number;
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_pointers() {
        let cases = [
            ("$.access_token", "/access_token"),
            ("$", ""),
            ("$.items[*].id", "/items/*/id"),
            ("$['a b']['c/d~e'][0]", "/a b/c~1d~0e/0"),
            ("$.a.*", "/a/*"),
        ];
        for (path, expected) in cases {
            assert_eq!(pointer(path).map(|p| p.text).as_deref(), Some(expected), "{path}");
        }
        assert!(pointer("$.a[-1].b").is_some_and(|p| p.is_last && p.text == "/a/*/b"));
        assert_eq!(jmes_pointer("a.b[1]").unwrap().text, "/a/b/1");
    }

    #[test]
    fn searches_and_filters_are_not() {
        for path in ["$..id", "$.a[?(@.b==1)]", "$.a[0:2]", "a.b", "", "$.a[0,1]", "$.length()", "$['a", "$.a["] {
            assert_eq!(pointer(path), None, "{path}");
        }
        for path in ["a[?b==`1`]", "length(a)", "", "a | b"] {
            assert_eq!(jmes_pointer(path), None, "{path}");
        }
    }

    #[test]
    fn one_star_can_be_counted_out() {
        assert_eq!(nth("/a/*/b", 2).as_deref(), Some("/a/2/b"));
        assert_eq!(nth("/a/*/*", 2), None);
        assert_eq!(nth("/a", 2), None);
    }
}
