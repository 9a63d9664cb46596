//! Statements as frameworks log them beside a request: Rails, Django, Hibernate, SQLAlchemy, Sequelize,
//! Prisma, TypeORM, Doctrine, GORM, Ecto, the drivers of MongoDB. The same lookup again and again within
//! one request is a loop over rows. Only shapes are kept: literals are replaced.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use holdup_recording::{Labels, events};
use holdup_sql::{Dialect, digest_text};
use regex::Regex;

use super::{Context, HOST, Kind, Line, messages, text};

pub(super) const KIND: Kind = Kind::lines("statements in an app's log", |lines| shape(text(lines, 0)).is_some(), read);

/// So many of one shape in a request are a loop …
const IN_REQUEST: usize = 10;

/// … and so many in a log that shows no requests: several of them may be in it.
const UNBOUNDED: usize = 20;

/// Longest part of a shape that is shown, characters.
const SHOWN_CHARS: usize = 120;

struct Patterns {
    sql: Regex,
    mongodb: Regex,
    mongoose: Regex,
    field: Regex,
}

fn patterns() -> Option<&'static Patterns> {
    static ALL: OnceLock<Option<Patterns>> = OnceLock::new();
    let make = || {
        // What stands before the statement is each framework's own.
        let before = r"\(\d+(?:\.\d+)?\s?(?:ms|µs)?\)|Hibernate:|hibernate\.SQL\s*[:\-]|o\.h\.SQL\s*[:\-]|org\.hibernate\.SQL\S*\s*[:\-]?|sqlalchemy\.engine\S*|Executing \([^)]*\):|prisma:query|query:|doctrine\.DEBUG:|\[rows:[\d-]+\]|db=\d+(?:\.\d+)?ms";
        Some(Patterns {
            sql: Regex::new(&format!(r"(?i)(?:{before})(?:\x1b\[[\d;]*m|\s)*(SELECT\b.*)")).ok()?,
            mongodb: Regex::new(r#"MONGODB \| .*\| STARTED \| \{"(find|aggregate|count)"\s?=>\s?"([^"]+)"(.*)"#)
                .ok()?,
            mongoose: Regex::new(r"Mongoose: (\w+)\.(find\w*|aggregate|count\w*)\((.*)").ok()?,
            field: Regex::new(r#""?([\w.$]+)"?\s?(?:=>|:)"#).ok()?,
        })
    };
    ALL.get_or_init(make).as_ref()
}

/// The statement of a line with its literals replaced. Only reads count: a loop that writes rows has to.
fn shape(line: &str) -> Option<String> {
    if line.len() > 16_384 {
        return None;
    }
    let patterns = patterns()?;
    if let Some(found) = patterns.sql.captures(line) {
        let sql = found.get(1)?.as_str();
        // Values that were bound stand behind the statement.
        let end = ["; args=", "  [[", " [[", " -- PARAMETERS", " /* "].iter().filter_map(|mark| sql.find(mark)).min();
        let sql = sql.get(..end.unwrap_or(sql.len()))?;
        let dialect = if sql.contains('`') { Dialect::MySql } else { Dialect::PostgreSql };
        return Some(digest_text(sql, dialect));
    }
    let (command, collection, rest) = match patterns.mongodb.captures(line) {
        Some(found) => (found.get(1)?.as_str(), found.get(2)?.as_str(), found.get(3)?.as_str()),
        None => {
            let found = patterns.mongoose.captures(line)?;
            (found.get(2)?.as_str(), found.get(1)?.as_str(), found.get(3)?.as_str())
        }
    };
    let fields: Vec<&str> = patterns.field.captures_iter(rest).filter_map(|of| Some(of.get(1)?.as_str())).collect();
    Some(format!("{command} {collection} by {}", fields.join(", ")))
}

/// Whether a line begins or ends a request.
fn is_boundary(line: &str) -> bool {
    let line = line.trim_start();
    line.contains("Started GET \"") || line.contains("Started POST \"") || line.contains("Completed 2")
}

/// Statements of one request, by their shape.
#[derive(Default)]
struct Request {
    shapes: BTreeMap<String, usize>,
}

impl Request {
    /// Adds what it repeats, if that is much.
    fn put(&mut self, least: usize, context: &mut Context) {
        let all: usize = self.shapes.values().sum();
        let most = std::mem::take(&mut self.shapes).into_iter().max_by_key(|(_, count)| *count);
        let Some((shape, count)) = most.filter(|(_, count)| *count >= least) else { return };
        let shown: String = shape.chars().take(SHOWN_CHARS).collect();
        let text = format!("a request ran {all} statements, and {count} of them were the same: {shown}");
        let labels = Labels::new([("error", events::REPEATED_STATEMENTS)]).with("repeated", count.to_string());
        let at = context.instant();
        context.out.event(at, events::ERROR, text, labels);
    }
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let (mut request, mut is_bounded, mut statements, mut used) = (Request::default(), false, 0, 1);
    for (place, line) in lines.iter().enumerate() {
        if let Some(shape) = shape(&line.text) {
            *request.shapes.entry(shape).or_default() += 1;
            statements += 1;
            used = place + 1;
        } else if is_boundary(&line.text) {
            request.put(IN_REQUEST, context);
            (is_bounded, used) = (true, place + 1);
        } else {
            messages::read(std::slice::from_ref(line), context);
        }
    }
    request.put(if is_bounded { IN_REQUEST } else { UNBOUNDED }, context);
    let at = context.instant();
    context.out.setting(at, HOST, "app_log.statements", statements.to_string());
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_framework_shows_its_statement() {
        for line in [
            "  Item Load (0.3ms)  SELECT \"items\".* FROM \"items\" WHERE \"items\".\"cart_id\" = 17  [[\"cart_id\", 17]]",
            "(0.001) SELECT \"items\".* FROM \"items\" WHERE \"items\".\"cart_id\" = 19; args=(19,)",
            "DEBUG sqlalchemy.engine.Engine SELECT \"items\".* FROM \"items\" WHERE \"items\".\"cart_id\" = 3",
            "Executing (default): SELECT \"items\".* FROM \"items\" WHERE \"items\".\"cart_id\" = 'canary'",
            "prisma:query SELECT \"items\".* FROM \"items\" WHERE \"items\".\"cart_id\" = 4",
            "[0.512ms] [rows:1] SELECT \"items\".* FROM \"items\" WHERE \"items\".\"cart_id\" = 5",
        ] {
            let expected = "SELECT items.* FROM items WHERE items.cart_id = ?";
            assert_eq!(shape(line).as_deref(), Some(expected), "{line}");
        }
        let mongo = r#"MONGODB | db:27017 | shop.find | STARTED | {"find"=>"items", "filter"=>{"cart_id"=>"canary"}}"#;
        assert_eq!(shape(mongo).as_deref(), Some("find items by filter, cart_id"));
        assert_eq!(shape("Mongoose: items.findOne({ cart_id: 'x' }, {})").as_deref(), Some("findOne items by cart_id"));
        for other in ["we SELECT one of them", "Hibernate: insert into items values (?)", "(0.3ms)  BEGIN"] {
            assert_eq!(shape(other), None, "{other}");
        }
    }

    #[test]
    fn a_loop_within_one_request_counts_and_one_lookup_in_each_of_many_does_not() {
        let lookup = |n: usize| format!("  Item Load (0.3ms)  SELECT * FROM items WHERE cart_id = {n}\n");
        let repeated = |log: &str| {
            let mut context = Context::default();
            read(&super::super::super::paste::lines(log.as_bytes(), |_| false), &mut context);
            context.out.batch.events.len()
        };
        let looped: String = (0..12).map(lookup).collect();
        assert_eq!(repeated(&format!("Started GET \"/\" for ::1\n{looped}Completed 200 OK in 702ms\n")), 1);
        let each: String =
            (0..30).map(|n| format!("Started GET \"/\"\n{}Completed 200 OK in 7ms\n", lookup(n))).collect();
        assert_eq!((repeated(&each), repeated(&looped)), (0, 0));
    }
}
