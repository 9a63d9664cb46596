//! The names that a scenario's templates may use. All are known before anything runs, so that a
//! mistake is found when the scenario is read.

use std::fmt;

/// Index of a variable in a session's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

/// See the module. If a session's variable has the same name as a text, it is that text until it is
/// set.
#[derive(Clone, Default)]
pub struct Names {
    variables: Vec<String>,
    feeders: Vec<(String, Vec<String>)>,
    /// Names that stand for a template's text.
    texts: Vec<(String, String)>,
    /// Secrets and environment variables, by `secret.NAME` and `env.NAME`.
    outside: Vec<(String, String)>,
}

impl Names {
    /// The variable's slot; a new one if it has none yet.
    pub fn variable(&mut self, name: &str) -> Slot {
        if let Some(slot) = self.slot(name) {
            return slot;
        }
        self.variables.push(name.to_owned());
        Slot(self.variables.len() as u32 - 1)
    }

    /// The variable's slot, if there is such a variable.
    pub fn slot(&self, name: &str) -> Option<Slot> {
        self.variables.iter().position(|v| v == name).map(|i| Slot(i as u32))
    }

    /// Variables by slot.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// Adds a feeder with the names of its columns; returns its index.
    pub fn feeder(&mut self, name: &str, columns: Vec<String>) -> u32 {
        self.feeders.push((name.to_owned(), columns));
        self.feeders.len() as u32 - 1
    }

    /// Feeders by index: name and columns.
    pub fn feeders(&self) -> &[(String, Vec<String>)] {
        &self.feeders
    }

    /// Makes `name` stand for the template `text`, instead of any earlier one.
    pub fn text(&mut self, name: &str, text: &str) {
        put(&mut self.texts, name, text);
    }

    /// Names that stand for a template's text, with that text.
    pub fn texts(&self) -> &[(String, String)] {
        &self.texts
    }

    /// Sets `name`, which is `secret.NAME` or `env.NAME`.
    pub fn outside(&mut self, name: &str, value: &str) {
        put(&mut self.outside, name, value);
    }

    /// Value of `secret.NAME` or `env.NAME`.
    pub fn from_outside(&self, name: &str) -> Option<&str> {
        self.outside.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The same without secrets and environment variables.
    #[must_use]
    pub fn without_outside(&self) -> Self {
        Self { outside: Vec::new(), ..self.clone() }
    }

    /// Every name that a template may use, to suggest the nearest for a mistake.
    pub fn all(&self) -> Vec<String> {
        let columns = |(name, columns): &(String, Vec<String>)| -> Vec<String> {
            columns.iter().map(|column| format!("{name}.{column}")).collect()
        };
        let mut all = self.variables.clone();
        all.extend(self.texts.iter().chain(&self.outside).map(|(name, _)| name.clone()));
        all.extend(self.feeders.iter().flat_map(columns));
        all
    }
}

/// Names only: values may be secret.
impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Names").field(&self.all()).finish()
    }
}

fn put(pairs: &mut Vec<(String, String)>, name: &str, value: &str) {
    match pairs.iter_mut().find(|(known, _)| known == name) {
        Some((_, old)) => value.clone_into(old),
        None => pairs.push((name.to_owned(), value.to_owned())),
    }
}
