//! The names of a plan's variables, and what they are here.

use std::collections::HashMap;

use super::element::Element;
use super::piece::{self, Piece};
use crate::note::{Kind, Notes};
use crate::scenario::{Feeder, Var};
use crate::secret::Secrets;
use crate::template::{UsedNames, identifier, literal};

/// The counterpart of a plan's variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counterpart {
    /// One of the scenario's `vars`, or a variable of the session.
    Value(String),
    /// A list that a capture made (`x_1`, `x_2`, ... `x_matchNr` in JMeter).
    List(String),
    /// A column of a feeder.
    Cell { feeder: String, column: String },
    /// An expression.
    Expression(String),
}

impl Counterpart {
    /// As an expression of a template.
    pub fn expression(&self) -> String {
        match self {
            Self::Value(name) | Self::List(name) | Self::Expression(name) => name.clone(),
            Self::Cell { feeder, column } => format!("{feeder}.{column}"),
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Names {
    pub used_names: UsedNames,
    pub secrets: Secrets,
    pub(super) meanings: HashMap<String, Counterpart>,
    /// Properties (`__P`) by their own names.
    pub(super) properties: HashMap<String, String>,
    /// User-defined variables as the plan has them.
    pub(super) defined: HashMap<String, String>,
    pub vars: Vec<Var>,
    pub feeders: Vec<Feeder>,
    /// Set once before the load: values that JMeter computes once.
    pub set_once: Vec<(String, String)>,
    /// Feeder of each CSV data set, by its line.
    by_line: HashMap<usize, String>,
}

impl Names {
    /// The counterpart of the plan's `name`.
    pub fn meaning(&self, name: &str) -> Option<&Counterpart> {
        self.meanings.get(name)
    }

    /// The feeder of the data set on that line.
    pub fn feeder_at(&self, line: usize) -> Option<&str> {
        self.by_line.get(&line).map(String::as_str)
    }

    /// Variables of sessions by their names in the plan, in order: name there, name here, whether
    /// it is a list.
    pub fn variables(&self) -> Vec<(String, String, bool)> {
        let mut all: Vec<(String, String, bool)> = self
            .meanings
            .iter()
            .filter_map(|(name, meaning)| match meaning {
                Counterpart::Value(own) => Some((name.clone(), own.clone(), false)),
                Counterpart::List(own) => Some((name.clone(), own.clone(), true)),
                Counterpart::Cell { .. } | Counterpart::Expression(_) => None,
            })
            .collect();
        all.sort();
        all
    }

    /// Whether only a session knows the value of the first piece of a text: a capture, a row,
    /// something random.
    pub fn is_found_out(&self, first: Option<&Piece>) -> bool {
        let Some(Piece::Name(name)) = first else { return false };
        self.meaning(name.trim()).is_some_and(|meaning| {
            let own = meaning.expression();
            !self.vars.iter().any(|var| var.name == own)
        })
    }

    /// A session's variable for a name of the plan, made if needed.
    pub fn variable(&mut self, name: &str) -> String {
        if let Some(Counterpart::Value(known) | Counterpart::List(known)) = self.meanings.get(name) {
            return known.clone();
        }
        let own = self.used_names.name(name);
        self.meanings.insert(name.to_owned(), Counterpart::Value(own.clone()));
        own
    }

    /// A text among `vars` for something without a name in the plan.
    pub fn text(&mut self, wanted: &str, value: String, comment: &str) -> String {
        if let Some(var) = self.vars.iter().find(|var| var.value == value && var.comment == comment) {
            return var.name.clone();
        }
        let name = self.used_names.name(wanted);
        self.vars.push(Var { name: name.clone(), value, comment: comment.to_owned() });
        name
    }

    /// The text among `vars` that stands for a property.
    pub fn property(&mut self, name: &str, default: String) -> String {
        if let Some(known) = self.properties.get(name) {
            return known.clone();
        }
        let own = self.text(name, default, "");
        self.properties.insert(name.to_owned(), own.clone());
        own
    }

    /// A variable that nothing here sets: JMeter would send its reference as it stands.
    pub fn unknown(&mut self, name: &str) -> String {
        let own = self.text(name, literal(&format!("${{{}}}", identifier(name))), "nothing in the scenario sets it");
        self.meanings.insert(name.to_owned(), Counterpart::Value(own.clone()));
        own
    }

    /// The value of a text of the plan that stays constant while it runs.
    pub fn fixed(&self, text: &str) -> Option<String> {
        piece::fixed(text, &|name| self.defined.get(name).cloned(), 0)
    }

    /// A number of the plan that stays constant while it runs.
    pub fn number(&self, text: &str) -> Option<f64> {
        self.fixed(text)?.trim().parse().ok().filter(|n: &f64| n.is_finite())
    }

    pub(super) fn feeders_of(&mut self, at: &Element<'_>, notes: &mut Notes) {
        if at.class == "CSVDataSet" {
            self.feeder(at, notes);
        }
        at.children.iter().for_each(|child| self.feeders_of(child, notes));
    }

    fn feeder(&mut self, at: &Element<'_>, notes: &mut Notes) {
        let file = at.filled("filename").unwrap_or_default();
        let csv = piece::fixed(file, &|_| None, 0).unwrap_or_else(|| file.to_owned());
        let stem = csv.rsplit(['/', '\\']).next().unwrap_or_default().split('.').next().unwrap_or_default();
        let name = self.used_names.name(if stem.is_empty() { "rows" } else { stem });
        let columns = at.filled("variableNames").unwrap_or_default();
        let delimiter = at.text("delimiter").unwrap_or(",");
        let is_comma = matches!(delimiter, "," | "");
        let columns: Vec<&str> =
            columns.split(if is_comma { "," } else { delimiter }).map(str::trim).filter(|c| !c.is_empty()).collect();
        let mut comment = String::new();
        let mut note = |why: String, advice: &str| notes.add(Kind::Changed, at.title(), at.line, why, advice);
        if csv.is_empty() {
            note("it names no file".to_owned(), "write the file's name under feeders");
        } else if csv.contains("${") {
            note(
                format!("the file's name, {csv}, is computed while the plan runs"),
                "write the file's name under feeders",
            );
        }
        if columns.is_empty() {
            note(
                "its columns are named in the file's first line, which the import does not read".to_owned(),
                "check that templates use the same names",
            );
        } else {
            let names: Vec<String> = columns.iter().map(|c| identifier(c)).collect();
            comment = format!("its first line must be: {}", names.join(","));
            if !at.flag("ignoreFirstLine") {
                note(
                    format!(
                        "the file has no line with the names of its columns; the scenario needs one: {}",
                        names.join(",")
                    ),
                    "put that line first",
                );
            }
        }
        if !is_comma {
            note(format!("its columns are separated by {delimiter:?}"), "separate them by commas");
        }
        let mode = at.filled("shareMode").unwrap_or("shareMode.all");
        if mode == "shareMode.thread" {
            note(
                "in JMeter each thread reads the file by itself; in the scenario all sessions share its rows"
                    .to_owned(),
                "",
            );
        }
        let at_end = match (at.filled("recycle").is_none_or(|r| r != "false"), at.flag("stopThread")) {
            (true, _) => None,
            (false, true) => Some("stop"),
            (false, false) => {
                note(
                    "at its end JMeter uses <EOF> as values; in the scenario a session without a row fails".to_owned(),
                    "",
                );
                Some("fail")
            }
        };
        for column in &columns {
            let meaning = Counterpart::Cell { feeder: name.clone(), column: identifier(column) };
            self.meanings.entry((*column).to_owned()).or_insert(meaning);
        }
        self.by_line.insert(at.line, name.clone());
        self.feeders.push(Feeder { name, csv, at_end, comment });
    }

    pub(super) fn captures_of(&mut self, at: &Element<'_>, notes: &mut Notes) {
        let mut capture = |names: &str, all: &dyn Fn(usize) -> bool| {
            for (index, name) in names.split(';').map(str::trim).enumerate().filter(|(_, name)| !name.is_empty()) {
                let is_list = all(index);
                match self.meanings.get(name) {
                    Some(Counterpart::Cell { .. } | Counterpart::Expression(_)) => {
                        let why = format!(
                            "it sets \"{name}\", which is also a column or counter; the scenario keeps only the latter"
                        );
                        notes.add(Kind::Changed, at.title(), at.line, why, "give one of the two another name");
                    }
                    Some(_) => {}
                    None => {
                        let own = self.used_names.name(name);
                        let meaning = if is_list { Counterpart::List(own) } else { Counterpart::Value(own) };
                        self.meanings.insert(name.to_owned(), meaning);
                    }
                }
            }
        };
        let numbers =
            |key: &str| at.text(key).unwrap_or_default().split(';').map(|n| n.trim() == "-1").collect::<Vec<_>>();
        match at.class.as_str() {
            "RegexExtractor" => capture(at.text("RegexExtractor.refname").unwrap_or_default(), &|_| {
                numbers("RegexExtractor.match_number")[0]
            }),
            "BoundaryExtractor" => capture(at.text("BoundaryExtractor.refname").unwrap_or_default(), &|_| {
                numbers("BoundaryExtractor.match_number")[0]
            }),
            "JSONPostProcessor" => {
                let all = numbers("JSONPostProcessor.match_numbers");
                capture(at.text("JSONPostProcessor.referenceNames").unwrap_or_default(), &|i| {
                    all.get(i).copied().unwrap_or(false)
                });
            }
            "JMESPathExtractor" => capture(at.text("JMESExtractor.referenceName").unwrap_or_default(), &|_| {
                numbers("JMESExtractor.matchNumber")[0]
            }),
            "ForeachController" => capture(at.text("ForeachController.returnVal").unwrap_or_default(), &|_| false),
            "RandomVariableConfig" => capture(at.text("variableName").unwrap_or_default(), &|_| false),
            "CounterConfig" => {
                if let Some(name) = at.filled("CounterConfig.name") {
                    self.meanings.insert(name.to_owned(), Counterpart::Expression("number()".to_owned()));
                }
            }
            _ => {}
        }
        at.children.iter().for_each(|child| self.captures_of(child, notes));
    }
}
