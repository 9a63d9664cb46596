//! JSON Pointer (RFC 6901), with `*` as a part that stands for every element of an array or object.

/// Most parts of a pointer: less than the depth at which the JSON reader gives up (128).
const MAX_PARTS: usize = 100;

/// A place in a JSON text, or with `*` several places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    parts: Box<[Part]>,
}

/// A step down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Into every element.
    Every,
    /// Into the member of that name, or the element of that index.
    One {
        /// The name in an object.
        key: Box<str>,
        /// The index in an array, if it can be one.
        index: Option<usize>,
    },
}

impl Pointer {
    /// Reads a pointer: `/items/0/id`; the empty text is the whole. Error messages fit after "the
    /// JSON pointer".
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self { parts: Box::default() });
        }
        let Some(rest) = text.strip_prefix('/') else {
            return Err(format!("'{text}' does not begin with '/'; write {}", example(text)));
        };
        let parts: Box<[Part]> = rest.split('/').map(Part::parse).collect::<Result<_, _>>()?;
        if parts.len() > MAX_PARTS {
            return Err(format!("has more than {MAX_PARTS} parts"));
        }
        Ok(Self { parts })
    }

    /// Its steps down from the whole.
    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }
}

/// The likely intended pointer, for a path in another notation.
fn example(text: &str) -> String {
    let path = text.strip_prefix('$').unwrap_or(text).replace("[*]", "/*").replace(['.', '['], "/").replace(']', "");
    let path = path.replace("//", "/");
    if path.starts_with('/') { format!("'{path}'") } else { format!("'/{path}'") }
}

impl Part {
    fn parse(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Every);
        }
        let mut key = String::with_capacity(text.len());
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            key.push(match character {
                '~' => match characters.next() {
                    Some('0') => '~',
                    Some('1') => '/',
                    _ => return Err(format!("has a '~' in '{text}' that is neither ~0 (for ~) nor ~1 (for /)")),
                },
                other => other,
            });
        }
        // The grammar of array-index allows no leading zeros and no signs.
        let is_index = key.bytes().all(|byte| byte.is_ascii_digit()) && (key == "0" || !key.starts_with('0'));
        let index = if is_index { key.parse().ok() } else { None };
        Ok(Self::One { key: key.into(), index })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(key: &str, index: Option<usize>) -> Part {
        Part::One { key: key.into(), index }
    }

    #[test]
    fn parts_are_names_indices_or_every_element() {
        let pointer = Pointer::parse("/a~1b/m~0n/~01/0/10/01/-/*/**//x").expect("a pointer");
        let wanted = [
            one("a/b", None),
            one("m~n", None),
            one("~1", None),
            one("0", Some(0)),
            one("10", Some(10)),
            one("01", None),
            one("-", None),
            Part::Every,
            one("**", None),
            one("", None),
            one("x", None),
        ];
        assert_eq!(pointer.parts(), wanted);
        assert_eq!(Pointer::parse("").expect("the whole").parts(), []);
        assert_eq!(Pointer::parse("/").expect("a pointer").parts(), [one("", None)]);
        let beyond = format!("/{}", "9".repeat(40));
        assert_eq!(Pointer::parse(&beyond).expect("a name").parts(), [one(&beyond[1..], None)]);
    }

    #[test]
    fn slips_are_explained() {
        let error = |text: &str| Pointer::parse(text).expect_err("an error");
        assert_eq!(error("token"), "'token' does not begin with '/'; write '/token'");
        assert_eq!(error("$.items[*].id[0]"), "'$.items[*].id[0]' does not begin with '/'; write '/items/*/id/0'");
        assert!(error("/a~2").contains("neither ~0"));
        assert!(error("/a~").contains("neither ~0"));
        assert!(error(&"/a".repeat(101)).contains("more than 100"));
        assert!(Pointer::parse(&"/a".repeat(100)).is_ok());
    }
}
