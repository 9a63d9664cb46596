//! Which executions count, and how they are grouped: `--filter`, `--since`, `--until`,
//! `--group-by`. Parses these options and reports mistakes in them.

use crate::digest::attribute::{Attributes, Unit, number, seconds};
use crate::digest::event::{Event, Kind};

/// Fields that group or filter executions, beside the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The statement.
    Fingerprint,
    /// The account.
    User,
    /// The client's host or address.
    Host,
    /// The database.
    Database,
    /// The application.
    Application,
}

impl Field {
    /// All fields with their names.
    pub const ALL: [(&'static str, Self); 5] = [
        ("fingerprint", Self::Fingerprint),
        ("user", Self::User),
        ("host", Self::Host),
        ("database", Self::Database),
        ("application", Self::Application),
    ];

    /// The field with this name.
    ///
    /// # Errors
    ///
    /// If no field has it: lists the names.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = Self::ALL
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name) || *known == "database" && name == "db");
        found.map(|(_, field)| *field).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|(name, _)| *name).collect();
            format!("{name} is unknown; use one of {}", known.join(", "))
        })
    }

    fn bytes<'a>(self, event: &Event<'a>) -> &'a [u8] {
        match self {
            Self::Fingerprint => b"",
            Self::User => event.user,
            Self::Host => event.host,
            Self::Database => event.database,
            Self::Application => event.application,
        }
    }

    /// Its value for an execution.
    pub fn value(self, event: &Event) -> String {
        String::from_utf8_lossy(self.bytes(event)).into_owned()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Is,
    IsNot,
    Above,
    AtLeast,
    Below,
    AtMost,
}

/// A condition such as `user=app` or `Query_time>0.5`.
#[derive(Clone, Debug)]
pub struct Filter {
    name: String,
    field: Option<Field>,
    comparison: Comparison,
    text: String,
}

impl std::str::FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let operators = [
            ("!=", Comparison::IsNot),
            (">=", Comparison::AtLeast),
            ("<=", Comparison::AtMost),
            ("=", Comparison::Is),
            (">", Comparison::Above),
            ("<", Comparison::Below),
        ];
        let at = text.find(['!', '>', '<', '=']);
        let found = at.and_then(|at| {
            let (name, rest) = text.split_at(at);
            operators.iter().find_map(|(sign, comparison)| Some((name, *comparison, rest.strip_prefix(sign)?)))
        });
        let Some((name, comparison, value)) = found.filter(|(name, ..)| !name.trim().is_empty()) else {
            return Err(format!("{text}: write NAME=VALUE, or another comparison (!=, >, >=, <, <=)"));
        };
        let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
        let field = Field::named(&name).ok().filter(|field| *field != Field::Fingerprint);
        if field.is_some() && !matches!(comparison, Comparison::Is | Comparison::IsNot) {
            return Err(format!("{text}: {name} takes only = and !="));
        }
        let is_flag = matches!(value.as_str(), "Yes" | "No");
        if field.is_none() && !is_flag && seconds(value.as_bytes()).is_none() {
            return Err(format!("{text}: {name} takes a number (times in seconds), Yes or No"));
        }
        Ok(Self { name, field, comparison, text: value })
    }
}

impl Filter {
    fn takes(&self, event: &Event, attributes: &Attributes) -> bool {
        if let Some(field) = self.field {
            return (field.bytes(event) == self.text.as_bytes()) == (self.comparison == Comparison::Is);
        }
        let is_it = |index: u16| attributes.get(index).is_some_and(|attribute| attribute.name == self.name);
        if let Some((_, flag)) = event.flags.iter().find(|(index, _)| is_it(*index)) {
            return (*flag == (self.text == "Yes")) == (self.comparison == Comparison::Is);
        }
        let Some((index, value)) = event.measures.iter().find(|(index, _)| is_it(*index)) else { return false };
        let is_time = attributes.get(*index).is_some_and(|attribute| attribute.unit == Unit::Time);
        let wanted = if is_time { seconds(self.text.as_bytes()) } else { number(self.text.as_bytes()) };
        wanted.is_some_and(|wanted| match self.comparison {
            Comparison::Is => *value == wanted,
            Comparison::IsNot => *value != wanted,
            Comparison::Above => *value > wanted,
            Comparison::AtLeast => *value >= wanted,
            Comparison::Below => *value < wanted,
            Comparison::AtMost => *value <= wanted,
        })
    }
}

/// Filters and grouping of executions.
#[derive(Clone, Debug)]
pub struct Select {
    /// The grouping fields.
    pub group_by: Vec<Field>,
    /// Conditions, all of which must hold.
    pub filters: Vec<Filter>,
    /// Start of the period, microseconds; executions without a time are then left out.
    pub since_us: Option<i64>,
    /// End of the period (exclusive), microseconds.
    pub until_us: Option<i64>,
}

impl Default for Select {
    fn default() -> Self {
        Self { group_by: vec![Field::Fingerprint], filters: Vec::new(), since_us: None, until_us: None }
    }
}

impl Select {
    /// Whether statements are kept apart.
    pub fn by_statement(&self) -> bool {
        self.group_by.is_empty() || self.group_by.contains(&Field::Fingerprint)
    }

    /// Whether an execution passes the filters.
    pub fn takes(&self, event: &Event, attributes: &Attributes) -> bool {
        self.takes_time(event.at_us) && self.filters.iter().all(|filter| filter.takes(event, attributes))
    }

    /// Whether the period includes `at_us`. A missing time passes only without a period.
    pub fn takes_time(&self, at_us: Option<i64>) -> bool {
        let (since, until) = (self.since_us, self.until_us);
        let is_any = since.is_none() && until.is_none();
        is_any || at_us.is_some_and(|at| since.is_none_or(|since| at >= since) && until.is_none_or(|until| at < until))
    }

    /// The key of a statement with its other grouping fields.
    pub(crate) fn group_hash(&self, hash: u64, event: &Event) -> u64 {
        let mut hash = if self.by_statement() { hash } else { 0 };
        if event.kind == Kind::Command {
            hash ^= 1;
        }
        for field in self.group_by.iter().filter(|field| **field != Field::Fingerprint) {
            for byte in field.bytes(event).iter().chain(b"\x1f") {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
            }
        }
        hash
    }

    /// Values of an execution for the fields of [`Select::group_by`], without the statement.
    pub(crate) fn shown(&self, group: &[String]) -> Vec<String> {
        let fields = self.group_by.iter().zip(group);
        fields.filter(|(field, _)| **field != Field::Fingerprint).map(|(_, value)| value.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::attribute::{QUERY_TIME, ROWS_SENT};

    #[test]
    fn conditions_are_read_and_hold() {
        let event = Event {
            user: b"app",
            measures: &[(QUERY_TIME, 600_000), (ROWS_SENT, 7)],
            at_us: Some(10),
            ..Event::default()
        };
        let attributes = Attributes::default();
        for (text, holds) in [
            ("user=app", true),
            ("user!=app", false),
            ("db=x", false),
            ("Query_time>0.5", true),
            ("Query_time > 0.6", false),
            ("Query_time>=0.6", true),
            ("Rows_sent<8", true),
            ("Rows_sent=8", false),
            ("Full_scan=Yes", false),
        ] {
            assert_eq!(text.parse::<Filter>().unwrap().takes(&event, &attributes), holds, "{text}");
        }
        for wrong in ["", "user", "=x", "user>app", "Query_time>slow"] {
            assert!(wrong.parse::<Filter>().is_err(), "{wrong}");
        }
        let select = Select { since_us: Some(10), until_us: Some(11), ..Select::default() };
        assert!(select.takes(&event, &attributes));
        assert!(!select.takes(&Event { at_us: Some(11), ..event }, &attributes));
        assert!(!select.takes(&Event { at_us: None, ..event }, &attributes));
        assert!(Field::named("colour").unwrap_err().contains("fingerprint"));
    }
}
