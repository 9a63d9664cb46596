//! A plan's variables. They must be known before anything is written, because a plan may use a
//! variable above the place that sets it, and because its name may differ here.

use std::collections::HashSet;

use super::element::{self, Element};
use super::expression::translate;
use super::names::{Counterpart, Names};
use super::piece;
use crate::note::Notes;
use crate::scenario::Var;
use crate::secret::is_secret;
use crate::template::literal;

/// Looks through the whole plan.
pub fn gather(tops: &[Element<'_>], notes: &mut Notes) -> Names {
    let mut names = Names::default();
    tops.iter().for_each(|top| names.feeders_of(top, notes));
    tops.iter().for_each(|top| names.captures_of(top, notes));
    let mut defined = Vec::new();
    tops.iter().for_each(|top| defined_in(top, &mut defined));
    define(&mut names, defined, notes);
    names
}

/// Adds user-defined variables: of two with the same name, the later one wins.
fn define(names: &mut Names, defined: Vec<(String, String, usize)>, notes: &mut Notes) {
    for (name, value, _) in &defined {
        names.defined.insert(name.clone(), value.clone());
    }
    let mut own_names: Vec<(String, String, usize, bool)> = Vec::new();
    let mut seen = HashSet::new();
    for (name, value, line) in defined {
        if names.defined.get(&name) != Some(&value) || !seen.insert(name.clone()) {
            continue;
        }
        match names.meanings.get(&name) {
            Some(Counterpart::Cell { .. } | Counterpart::Expression(_)) => {
                let why = "another element sets a variable of that name; the scenario uses that one";
                notes.changed(format!("variable \"{name}\""), line, why);
                continue;
            }
            Some(_) => own_names.push((name, value, line, true)),
            None => {
                let own = names.used_names.name(&name);
                names.meanings.insert(name.clone(), Counterpart::Value(own));
                own_names.push((name, value, line, false));
            }
        }
    }
    for (name, value, line, is_set_later) in own_names {
        let Some(meaning) = names.meanings.get(&name) else { continue };
        let own = meaning.expression();
        let is_constant = !value.contains("${") && !value.is_empty();
        if is_secret(&name) && is_constant {
            let secret = names.secrets.name(&name, &value, &format!("variable \"{name}\""), line, notes);
            define_one(names, own, format!("${{secret.{secret}}}"), is_set_later);
            continue;
        }
        if let Some((property, default)) = piece::property_of(&value) {
            let default = piece::fixed(&default, &|n| names.defined.get(n).cloned(), 0).unwrap_or(default);
            names.properties.insert(property, own.clone());
            define_one(names, own, literal(&default), is_set_later);
            continue;
        }
        let text = translate(&value, names, notes, ("a variable", line)).text;
        // JMeter computes it once, but a text of `vars` is filled in each time.
        let is_computed =
            text.contains("random") || text.contains("uuid()") || text.contains("now(") || text.contains("pick(");
        define_one(names, own, text, is_set_later || is_computed);
    }
}

fn define_one(names: &mut Names, name: String, value: String, once: bool) {
    if once {
        names.set_once.push((name, value));
    } else {
        names.vars.push(Var { name, value, comment: String::new() });
    }
}

/// Name, value and line of each user-defined variable, from its elements and the plan itself.
fn defined_in(at: &Element<'_>, into: &mut Vec<(String, String, usize)>) {
    let mut arguments = |xml: &crate::xml::Element| {
        for argument in &xml.children {
            let name = element::text(argument, "Argument.name").unwrap_or_default().trim();
            if !name.is_empty() {
                let value = element::text(argument, "Argument.value").unwrap_or_default();
                into.push((name.to_owned(), value.to_owned(), argument.line));
            }
        }
    };
    if at.class == "TestPlan"
        && let Some(all) =
            at.part("TestPlan.user_defined_variables").and_then(|v| element::part(v, "Arguments.arguments"))
    {
        arguments(all);
    }
    if at.class == "Arguments"
        && let Some(all) = at.part("Arguments.arguments")
    {
        arguments(all);
    }
    at.children.iter().for_each(|child| defined_in(child, into));
}
