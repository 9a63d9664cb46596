//! XML as a tree with line numbers: elements, attributes and text, as much as a JMeter plan uses.
//! It is bounded: no DOCTYPE, and so only the five entities of XML itself, and limits on depth and
//! number of elements.

use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::error::ImportError;

/// Deepest nesting: a plan nests two levels for each controller within another.
pub const DEEPEST: usize = 256;

/// Most elements in a file.
const MOST_ELEMENTS: usize = 2_000_000;

/// One element.
#[derive(Debug, Default)]
pub struct Element {
    /// Its tag.
    pub name: String,
    /// Its attributes in their order.
    attributes: Vec<(String, String)>,
    /// Its text, from all pieces between its children.
    pub text: String,
    /// Line of its start tag, from 1.
    pub line: usize,
    /// Its children.
    pub children: Vec<Element>,
}

impl Element {
    /// The attribute's value, or none.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// Parses a document and returns its root.
///
/// # Errors
///
/// If it is not well-formed, has a DOCTYPE, or is too deep or too large.
pub fn parse(text: &str, file: &str) -> Result<Element, ImportError> {
    let mut reader = Reader::from_str(text);
    let mut lines = Lines { text: text.as_bytes(), at: 0, line: 1 };
    let mut open: Vec<Element> = Vec::new();
    let mut root = None;
    let mut elements = 0;
    loop {
        let line = lines.at(reader.buffer_position() as usize);
        let wrong = |why: String| ImportError::new(file, line, why);
        let event = reader.read_event().map_err(|e| {
            let line = lines.clone().at(reader.error_position() as usize);
            ImportError::new(file, line, format!("this is not XML: {e}"))
        })?;
        if root.is_some() && matches!(event, Event::Start(_) | Event::Empty(_)) {
            return Err(wrong("a second document begins here".to_owned()));
        }
        match event {
            Event::Start(tag) => {
                elements += 1;
                if open.len() >= DEEPEST {
                    return Err(wrong(format!("elements are nested deeper than {DEEPEST}")));
                }
                if elements > MOST_ELEMENTS {
                    return Err(wrong(format!("there are more than {MOST_ELEMENTS} elements")));
                }
                open.push(element(&tag, line).map_err(wrong)?);
            }
            Event::Empty(tag) => {
                elements += 1;
                if elements > MOST_ELEMENTS {
                    return Err(wrong(format!("there are more than {MOST_ELEMENTS} elements")));
                }
                close(element(&tag, line).map_err(wrong)?, &mut open, &mut root);
            }
            Event::End(_) => {
                if let Some(done) = open.pop() {
                    close(done, &mut open, &mut root);
                }
            }
            Event::Text(piece) => {
                if let Some(inner) = open.last_mut() {
                    inner.text.push_str(&piece.xml10_content());
                }
            }
            Event::CData(piece) => {
                if let Some(inner) = open.last_mut() {
                    inner.text.push_str(&piece.xml10_content());
                }
            }
            Event::GeneralRef(name) => {
                let c = character(&name).map_err(wrong)?;
                if let Some(inner) = open.last_mut() {
                    inner.text.push(c);
                }
            }
            Event::DocType(_) => return Err(wrong("holdup does not read a DOCTYPE; remove it".to_owned())),
            Event::Eof => break,
            Event::Decl(_) | Event::PI(_) | Event::Comment(_) => {}
        }
    }
    if let Some(unfinished) = open.last() {
        let why = format!("<{}> is not closed: the file is cut off", unfinished.name);
        return Err(ImportError::new(file, unfinished.line, why));
    }
    root.ok_or_else(|| ImportError::new(file, 1, "the file contains no XML"))
}

/// The character that a reference stands for.
fn character(name: &BytesRef<'_>) -> Result<char, String> {
    match name.resolve_char_ref().map_err(|e| format!("this is not XML: {e}"))? {
        Some(c) => Ok(c),
        None => predefined(&name.xml10_content())
            .ok_or_else(|| format!("the entity &{}; is not one of XML's own", &*name.xml10_content())),
    }
}

fn close(done: Element, open: &mut [Element], root: &mut Option<Element>) {
    match open.last_mut() {
        Some(parent) => parent.children.push(done),
        None => *root = Some(done),
    }
}

fn element(tag: &BytesStart<'_>, line: usize) -> Result<Element, String> {
    let mut attributes = Vec::new();
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(|e| format!("this is not XML: {e}"))?;
        let value = attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|e| format!("this is not XML: {e}"))?;
        attributes.push((attribute.key.0.to_owned(), value.into_owned()));
    }
    Ok(Element { name: tag.name().0.to_owned(), attributes, line, ..Element::default() })
}

fn predefined(name: &str) -> Option<char> {
    Some(match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "apos" => '\'',
        "quot" => '"',
        _ => return None,
    })
}

/// Lines of growing positions: it looks at each byte once.
#[derive(Clone)]
struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    line: usize,
}

impl Lines<'_> {
    fn at(&mut self, position: usize) -> usize {
        let position = position.min(self.text.len());
        if position > self.at {
            self.line += self.text[self.at..position].iter().filter(|b| **b == b'\n').count();
            self.at = position;
        }
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_text_attributes_and_lines() {
        let root = parse(
            "<?xml version=\"1.0\"?>\n<a x=\"1 &amp; 2\">\n  <b>x&lt;y<![CDATA[<z>]]>&#65;</b>\n  <c/>\n</a>\n",
            "f",
        )
        .unwrap();
        assert_eq!((root.name.as_str(), root.attribute("x"), root.line), ("a", Some("1 & 2"), 2));
        assert_eq!((root.children[0].text.as_str(), root.children[0].line), ("x<y<z>A", 3));
        assert_eq!((root.children[1].name.as_str(), root.children[1].line), ("c", 4));
    }

    #[test]
    fn refuses_what_is_dangerous_and_says_where() {
        let bomb = "<?xml version=\"1.0\"?>\n<!DOCTYPE l [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>\n<l>&b;</l>";
        assert_eq!(parse(bomb, "f").unwrap_err().to_string(), "f:2: holdup does not read a DOCTYPE; remove it");
        assert!(parse("<a>\n&b;</a>", "f").unwrap_err().to_string().starts_with("f:2: the entity &b;"));
        let deep = "<a>".repeat(100_000);
        assert!(parse(&deep, "f").unwrap_err().message.contains("nested deeper"));
        for cut in ["<a>\n<b>", "<a></b>", "", "text", "<a/><b/>", "<a x=1/>", "<a>&#0;</a>", "<a"] {
            assert!(parse(cut, "f").is_err(), "{cut}");
        }
        assert_eq!(parse("<a>\n<b>", "f").unwrap_err().line, 2);
    }
}
