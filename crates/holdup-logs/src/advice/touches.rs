//! The tables that a statement reads and writes, and the columns by which it finds its rows.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use holdup_sql::{Dialect, Lexer};
use sqlparser::ast::{
    BinaryOperator, Expr, FromTable, GroupByExpr, JoinConstraint, JoinOperator, ObjectName, OrderBy, OrderByKind,
    Query, Select, SetExpr, Statement, TableFactor, TableObject, TableWithJoins, Visit, Visitor,
};
use sqlparser::dialect::{MySqlDialect, PostgreSqlDialect};
use sqlparser::parser::Parser;

/// A column as a statement names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Column {
    /// Alias or name of its table, if the statement gives it.
    pub table: Option<String>,
    /// Its name.
    pub name: String,
}

/// A table as a statement names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    /// `orders` or `shop.orders`.
    pub table: String,
    /// The prefix of its columns.
    pub alias: String,
}

/// One `SELECT`, `UPDATE` or `DELETE` of a statement: its tables, and the conditions that select
/// their rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Its tables.
    pub tables: Vec<Named>,
    /// Columns that must equal a value, or one of several.
    pub equal: Vec<Column>,
    /// Columns that must equal a column of another table.
    pub joined: Vec<Column>,
    /// Columns that must lie in a range, or begin with a text.
    pub within: Vec<Column>,
    /// Columns by which rows are ordered, or else grouped, in order.
    pub ordered: Vec<Column>,
}

/// The tables, columns and effects of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touches {
    /// Tables that it reads.
    pub reads: Vec<String>,
    /// Tables that it writes.
    pub writes: Vec<String>,
    /// Why a replica cannot run it; none if it can.
    pub stays: Option<&'static str>,
    /// Its parts.
    pub scopes: Vec<Scope>,
    /// The statement again, with `$1` for its values in dialects that have it: a text for one
    /// statement.
    pub text: String,
    /// Number of its values.
    pub values: usize,
}

/// Functions that do more than compute: they write, lock, or depend on the session.
const ACTS: &[&str] = &[
    "nextval",
    "setval",
    "currval",
    "lastval",
    "last_insert_id",
    "get_lock",
    "release_lock",
    "pg_notify",
    "lo_import",
    "dblink",
    "dblink_exec",
    "set_config",
    "sleep",
    "load_file",
];

/// Most tokens of a statement. The parser limits the depth of parentheses. But a chain of operators
/// is a tree as deep as it is long, and all code that walks down it recurses.
const TOKENS_MAX: usize = 4_000;

/// Stack for parsing a statement: two tokens make a level, and no level takes more than 32 KiB,
/// even in a debug build. Only used pages of it take memory.
const STACK_BYTES: usize = TOKENS_MAX / 2 * (32 << 10);

impl Touches {
    /// Parses a statement whose values are `?` or `?+` (a list of them). None if that fails.
    pub fn parse(fingerprint: &str, dialect: Dialect) -> Option<Self> {
        if Lexer::new(fingerprint.as_bytes(), dialect).nth(TOKENS_MAX).is_some() {
            return None;
        }
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("statement".to_owned()).stack_size(STACK_BYTES);
            let reading = thread.spawn_scoped(scope, || Self::read(fingerprint, dialect)).ok()?;
            reading.join().ok()?
        })
    }

    /// The same for a statement that is not too long, on a stack that is deep enough.
    fn read(fingerprint: &str, dialect: Dialect) -> Option<Self> {
        let (sql, values) = with_places(fingerprint, dialect);
        let parsed = match dialect {
            Dialect::PostgreSql => Parser::parse_sql(&PostgreSqlDialect {}, &sql),
            _ => Parser::parse_sql(&MySqlDialect {}, &sql),
        };
        let mut statements = parsed.ok()?;
        let statement = statements.pop().filter(|_| statements.is_empty())?;
        let mut reading = Reading::default();
        let _ = statement.visit(&mut reading);
        let Reading { mut relations, writes, own_names, stays, scopes, .. } = reading;
        relations.retain(|table| !own_names.contains(table) && !writes.contains(table));
        let stays = stays.or((!matches!(statement, Statement::Query(_))).then_some("it writes"));
        Some(Self {
            reads: relations.into_iter().collect(),
            writes: writes.into_iter().collect(),
            stays,
            scopes,
            text: statement.to_string(),
            values,
        })
    }
}

/// The statement with placeholders that the parser knows, and how many there are.
fn with_places(fingerprint: &str, dialect: Dialect) -> (String, usize) {
    let (mut out, mut values) = (String::with_capacity(fingerprint.len() + 8), 0);
    let mut rest = fingerprint.chars().peekable();
    let mut quote = None;
    while let Some(letter) = rest.next() {
        match (letter, quote) {
            ('`' | '"', None) => quote = Some(letter),
            (_, Some(open)) if letter == open => quote = None,
            _ => {}
        }
        if letter != '?' || quote.is_some() {
            out.push(letter);
            continue;
        }
        // A list of values counts as one value here.
        if rest.peek() == Some(&'+') {
            rest.next();
        }
        values += 1;
        match dialect {
            Dialect::PostgreSql => out.push_str(&format!("${values}")),
            _ => out.push('?'),
        }
    }
    (out, values)
}

fn named(name: &ObjectName) -> String {
    let parts = name.0.iter().filter_map(|part| part.as_ident());
    parts.map(|ident| ident.value.clone()).collect::<Vec<_>>().join(".")
}

#[derive(Default)]
struct Reading {
    relations: BTreeSet<String>,
    writes: BTreeSet<String>,
    /// Names that the statement gives to its own parts (WITH).
    own_names: BTreeSet<String>,
    stays: Option<&'static str>,
    scopes: Vec<Scope>,
    /// Selects that were read together with their surrounding query, by address.
    read: BTreeSet<usize>,
}

impl Visitor for Reading {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        match statement {
            Statement::Update(update) => {
                self.writes
                    .extend(tables(std::slice::from_ref(&update.table)).first().map(|named| named.table.clone()));
                self.scope(std::slice::from_ref(&update.table), update.selection.as_ref(), Vec::new());
            }
            Statement::Delete(delete) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
                let named_ones = delete.tables.iter().map(named);
                let first = tables(from).into_iter().next().map(|named| named.table);
                self.writes.extend(named_ones.chain(first.filter(|_| delete.tables.is_empty())));
                self.scope(from, delete.selection.as_ref(), Vec::new());
            }
            Statement::Insert(insert) => {
                if let TableObject::TableName(name) = &insert.table {
                    self.writes.insert(named(name));
                }
            }
            Statement::Query(_) => {}
            _ => self.stays = self.stays.or(Some("it is not a query")),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if !query.locks.is_empty() {
            self.stays = Some("it locks the rows it reads");
        }
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.own_names.insert(table.alias.name.value.clone());
        }
        match &*query.body {
            SetExpr::Select(select) => {
                self.read.insert(address(select));
                let ordered = query.order_by.as_ref().map(ordered).unwrap_or_default();
                self.select(select, ordered);
            }
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                self.stays = Some("it writes");
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        if !self.read.contains(&address(select)) {
            self.select(select, Vec::new());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        self.relations.insert(named(relation));
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr {
            let name = named(&function.name).to_ascii_lowercase();
            let bare = name.rsplit('.').next().unwrap_or_default();
            if ACTS.contains(&bare) || bare.starts_with("pg_advisory_") || bare.starts_with("pg_try_advisory_") {
                self.stays = Some("it calls a function that acts");
            }
        }
        ControlFlow::Continue(())
    }
}

/// Identifies one of a statement's selects.
fn address(select: &Select) -> usize {
    std::ptr::from_ref(select) as usize
}

impl Reading {
    fn select(&mut self, select: &Select, mut ordered: Vec<Column>) {
        if select.into.is_some() {
            self.stays = Some("it writes");
        }
        if let (true, GroupByExpr::Expressions(by, _)) = (ordered.is_empty(), &select.group_by) {
            ordered = by.iter().filter_map(column).collect();
        }
        self.scope(&select.from, select.selection.as_ref(), ordered);
    }

    fn scope(&mut self, from: &[TableWithJoins], selection: Option<&Expr>, ordered: Vec<Column>) {
        let mut scope = Scope { tables: tables(from), ordered, ..Scope::default() };
        for join in from.iter().flat_map(|table| &table.joins) {
            match constraint(&join.join_operator) {
                Some(JoinConstraint::On(on)) => condition(on, &mut scope),
                Some(JoinConstraint::Using(columns)) => {
                    scope.joined.extend(columns.iter().map(|name| Column { table: None, name: named(name) }))
                }
                _ => {}
            }
        }
        if let Some(selection) = selection {
            condition(selection, &mut scope);
        }
        if !scope.tables.is_empty() {
            self.scopes.push(scope);
        }
    }
}

/// The tables of a `FROM`, without derived tables.
fn tables(from: &[TableWithJoins]) -> Vec<Named> {
    let factors =
        from.iter().flat_map(|table| std::iter::once(&table.relation).chain(table.joins.iter().map(|j| &j.relation)));
    factors
        .filter_map(|factor| match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let table = named(name);
                let last = table.rsplit('.').next().unwrap_or_default().to_owned();
                Some(Named { alias: alias.as_ref().map_or(last, |alias| alias.name.value.clone()), table })
            }
            _ => None,
        })
        .collect()
}

fn constraint(operator: &JoinOperator) -> Option<&JoinConstraint> {
    match operator {
        JoinOperator::Join(c)
        | JoinOperator::Inner(c)
        | JoinOperator::Left(c)
        | JoinOperator::LeftOuter(c)
        | JoinOperator::Right(c)
        | JoinOperator::RightOuter(c)
        | JoinOperator::StraightJoin(c) => Some(c),
        _ => None,
    }
}

fn ordered(by: &OrderBy) -> Vec<Column> {
    match &by.kind {
        // If one of them is not a column, an index in that order does not help.
        OrderByKind::Expressions(by) => by.iter().map(|by| column(&by.expr)).collect::<Option<_>>().unwrap_or_default(),
        OrderByKind::All(_) => Vec::new(),
    }
}

fn column(expr: &Expr) -> Option<Column> {
    match expr {
        Expr::Identifier(name) => Some(Column { table: None, name: name.value.clone() }),
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [.., table, name] => Some(Column { table: Some(table.value.clone()), name: name.value.clone() }),
            _ => None,
        },
        Expr::Nested(inner) => column(inner),
        _ => None,
    }
}

/// Splits the conditions that must all hold. Alternatives (`OR`) cannot find rows by one index.
fn condition(expr: &Expr, scope: &mut Scope) {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, Spaceship};
    match expr {
        Expr::Nested(inner) => condition(inner, scope),
        Expr::BinaryOp { left, op: And, right } => {
            condition(left, scope);
            condition(right, scope);
        }
        Expr::BinaryOp { left, op: Eq | Spaceship, right } => match (column(left), column(right)) {
            (Some(one), Some(other)) => scope.joined.extend([one, other]),
            (Some(one), None) | (None, Some(one)) => scope.equal.push(one),
            (None, None) => {}
        },
        Expr::BinaryOp { left, op: Gt | GtEq | Lt | LtEq, right } => match (column(left), column(right)) {
            (Some(one), None) | (None, Some(one)) => scope.within.push(one),
            _ => {}
        },
        Expr::InList { expr, negated: false, .. } | Expr::InSubquery { expr, negated: false, .. } => {
            scope.equal.extend(column(expr));
        }
        Expr::IsNull(expr) => scope.equal.extend(column(expr)),
        Expr::Between { expr, negated: false, .. } => scope.within.extend(column(expr)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deep in parentheses, and deep by length alone: the trees of 64 KiB, and the longest that is read.
    #[test]
    fn a_hostile_statement_is_not_read() {
        let size = 64 << 10;
        for dialect in [Dialect::MySql, Dialect::PostgreSql] {
            assert!(Touches::parse(&format!("select {}", "(".repeat(size)), dialect).is_none());
            assert!(Touches::parse(&format!("select a from t where {}a", "not ".repeat(size / 4)), dialect).is_none());
            assert!(Touches::parse(&format!("select a{} from t", "+a".repeat(size / 2)), dialect).is_none());
            assert!(
                Touches::parse(&format!("select a from t{}", " union select a from t".repeat(size / 21)), dialect)
                    .is_none()
            );
            assert!(Touches::parse(&format!("select a{} from t", "+a".repeat(TOKENS_MAX / 2 - 2)), dialect).is_some());
        }
    }

    fn columns(columns: &[Column]) -> Vec<String> {
        columns.iter().map(|c| c.table.as_ref().map_or(c.name.clone(), |table| format!("{table}.{}", c.name))).collect()
    }

    #[test]
    fn a_statement_says_what_it_reads_and_by_which_columns() {
        let sql = "SELECT o.id, sum(i.price) FROM shop.orders o JOIN items AS i ON i.order_id = o.id WHERE o.customer = ? AND o.state IN (?+) AND o.at > ? AND (o.a = ? OR o.b = ?) GROUP BY o.id ORDER BY o.at DESC LIMIT ?";
        for dialect in [Dialect::MySql, Dialect::PostgreSql] {
            let touches = Touches::parse(sql, dialect).unwrap();
            assert_eq!(touches.reads, ["items", "shop.orders"]);
            assert_eq!((touches.stays, touches.values, touches.scopes.len()), (None, 6, 1));
            let scope = &touches.scopes[0];
            assert_eq!(columns(&scope.equal), ["o.customer", "o.state"]);
            assert_eq!(columns(&scope.joined), ["i.order_id", "o.id"]);
            assert_eq!(
                (columns(&scope.within), columns(&scope.ordered)),
                (vec!["o.at".to_owned()], vec!["o.at".to_owned()])
            );
        }
        assert!(Touches::parse(sql, Dialect::PostgreSql).unwrap().text.contains("o.customer = $1 AND o.state IN ($2)"));
    }

    #[test]
    fn who_writes_locks_or_acts_stays_where_it_is() {
        for (sql, stays, writes) in [
            ("UPDATE orders SET state = ? WHERE id = ?", Some("it writes"), vec!["orders"]),
            ("DELETE FROM items WHERE order_id = ?", Some("it writes"), vec!["items"]),
            ("INSERT INTO log(a, b) SELECT x, y FROM orders", Some("it writes"), vec!["log"]),
            ("SELECT * FROM orders WHERE id = ? FOR UPDATE", Some("it locks the rows it reads"), vec![]),
            ("SELECT nextval(?)", Some("it calls a function that acts"), vec![]),
            ("WITH gone AS (DELETE FROM a WHERE b = ? RETURNING c) SELECT * FROM gone", Some("it writes"), vec!["a"]),
            ("WITH few AS (SELECT c FROM a WHERE b = ?) SELECT * FROM few", None, vec![]),
        ] {
            let touches = Touches::parse(sql, Dialect::PostgreSql).unwrap();
            assert_eq!(
                (touches.stays, touches.writes),
                (stays, writes.into_iter().map(str::to_owned).collect()),
                "{sql}"
            );
        }
        assert_eq!(
            Touches::parse("WITH few AS (SELECT c FROM a) SELECT * FROM few", Dialect::PostgreSql).unwrap().reads,
            ["a"]
        );
        assert_eq!(Touches::parse("SELECT FROM WHERE ((", Dialect::MySql), None);
    }

    #[test]
    fn quoted_names_keep_their_question_marks() {
        let touches = Touches::parse("SELECT `odd?` FROM `t` WHERE `odd?` = ?", Dialect::MySql).unwrap();
        assert_eq!((touches.values, columns(&touches.scopes[0].equal)), (1, vec!["odd?".to_owned()]));
    }
}
