//! A plan's elements with their children: JMeter writes an element and its children side by side,
//! as pairs. Also reads its forms of properties. Disabled elements are counted and left out here.

use crate::xml;

/// One enabled element.
#[derive(Debug)]
pub struct Element<'a> {
    /// The last part of its class: `HeaderManager`.
    pub class: String,
    /// Its name in the plan.
    pub name: String,
    /// Line, from 1.
    pub line: usize,
    pub gui: &'a str,
    xml: &'a xml::Element,
    /// Its children, in order.
    pub children: Vec<Element<'a>>,
}

/// The elements of the plan without disabled ones, which are counted with all their children.
pub fn elements<'a>(root: &'a xml::Element, disabled: &mut usize) -> Vec<Element<'a>> {
    let mut all = Vec::new();
    for tree in root.children.iter().filter(|c| c.name == "hashTree") {
        all.extend(pairs(tree, disabled));
    }
    all
}

fn pairs<'a>(tree: &'a xml::Element, disabled: &mut usize) -> Vec<Element<'a>> {
    let mut all: Vec<Element<'a>> = Vec::new();
    let mut is_off = false;
    for xml in &tree.children {
        if xml.name != "hashTree" {
            is_off = xml.attribute("enabled").is_some_and(|v| v.eq_ignore_ascii_case("false"));
            if is_off {
                *disabled += 1;
            } else {
                all.push(Element::new(xml));
            }
        } else if is_off {
            *disabled += size(xml);
        } else if let Some(last) = all.last_mut() {
            last.children.extend(pairs(xml, disabled));
        }
    }
    all
}

/// Elements in a tree, including those of its subtrees.
fn size(tree: &xml::Element) -> usize {
    tree.children.iter().map(|c| if c.name == "hashTree" { size(c) } else { 1 }).sum()
}

impl<'a> Element<'a> {
    fn new(xml: &'a xml::Element) -> Self {
        let class = xml.attribute("testclass").unwrap_or(&xml.name);
        Self {
            class: class.rsplit(['.', '$']).next().unwrap_or(class).to_owned(),
            name: xml.attribute("testname").unwrap_or_default().to_owned(),
            line: xml.line,
            gui: xml.attribute("guiclass").map_or("", |gui| gui.rsplit('.').next().unwrap_or(gui)),
            xml,
            children: Vec::new(),
        }
    }

    /// `HeaderManager "auth"`.
    pub fn title(&self) -> String {
        let name = crate::template::label(&self.name);
        if name.is_empty() { self.class.clone() } else { format!("{} \"{name}\"", self.class) }
    }

    /// A property's text. Some are written as `<stringProp name="x">`, some with `<name>` and `<value>` within.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        text(self.xml, name)
    }

    /// A property's text, trimmed; none if it is empty.
    pub fn filled(&self, name: &str) -> Option<&'a str> {
        self.text(name).map(str::trim).filter(|text| !text.is_empty())
    }

    pub fn flag(&self, name: &str) -> bool {
        self.filled(name).is_some_and(|text| text.eq_ignore_ascii_case("true"))
    }

    /// The element or collection with this name.
    pub fn part(&self, name: &str) -> Option<&'a xml::Element> {
        part(self.xml, name)
    }

    /// Items of a collection, also of one within an element property.
    pub fn items(&self, name: &str) -> &'a [xml::Element] {
        self.part(name).map_or(&[], |part| items(part))
    }
}

fn items(part: &xml::Element) -> &[xml::Element] {
    &part.children
}

/// Like [`Element::text`], for any piece of the plan.
pub fn text<'a>(xml: &'a xml::Element, name: &str) -> Option<&'a str> {
    xml.children.iter().find_map(|child| {
        if child.attribute("name") == Some(name) {
            return Some(child.text.as_str());
        }
        let inner = |tag: &str| child.children.iter().find(|c| c.name == tag).map(|c| c.text.as_str());
        if inner("name")?.trim() == name { inner("value") } else { None }
    })
}

/// Like [`Element::part`], for any piece of the plan.
pub fn part<'a>(xml: &'a xml::Element, name: &str) -> Option<&'a xml::Element> {
    xml.children.iter().find(|child| child.attribute("name") == Some(name))
}
