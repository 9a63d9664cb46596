//! The statement above a result set: which columns it asks for, and of which tables. It names the
//! columns of a result whose header was cut, and says what a column shows that has a name of its own.

use holdup_sql::{Dialect, Lexer, TokenKind};

/// Columns that hold a statement, which may hold any character.
pub(super) const STATEMENTS: &[&str] = &["info", "query", "current_query", "sql_text", "trx_query"];

/// Most bytes of a statement that are read.
const BYTES: usize = 8 << 10;

/// Functions of a text that show the text of their first argument, or a part of it.
const OF_TEXT: &[&str] = &[
    "left",
    "right",
    "substr",
    "substring",
    "substring_index",
    "mid",
    "trim",
    "btrim",
    "lower",
    "upper",
    "replace",
    "regexp_replace",
    "coalesce",
    "ifnull",
    "nullif",
    "format_statement",
    "cast",
    "convert",
    "concat",
    "min",
    "max",
    "any_value",
];

/// Columns with a time, and what the time since then is.
const SINCE: &[(&str, &str)] = &[
    ("query_start", "query_age"),
    ("xact_start", "transaction_age"),
    ("trx_started", "transaction_age"),
    ("trx_wait_started", "wait_age"),
    ("state_change", "state_age"),
    ("waitstart", "wait_age"),
];

/// All columns of a table, in order; of several versions the one with as many columns is meant.
const ALL: &[(&str, &str)] = &[
    ("processlist", "Id User Host db Command Time State Info"),
    (
        "pg_stat_activity",
        "datid datname procpid usesysid usename application_name client_addr client_port backend_start xact_start query_start waiting current_query",
    ),
    (
        "pg_stat_activity",
        "datid datname procpid usesysid usename application_name client_addr client_hostname client_port backend_start xact_start query_start waiting current_query",
    ),
    (
        "pg_stat_activity",
        "datid datname pid usesysid usename application_name client_addr client_hostname client_port backend_start xact_start query_start state_change waiting state query",
    ),
    (
        "pg_stat_activity",
        "datid datname pid usesysid usename application_name client_addr client_hostname client_port backend_start xact_start query_start state_change waiting state backend_xid backend_xmin query",
    ),
    (
        "pg_stat_activity",
        "datid datname pid usesysid usename application_name client_addr client_hostname client_port backend_start xact_start query_start state_change wait_event_type wait_event state backend_xid backend_xmin query",
    ),
    (
        "pg_stat_activity",
        "datid datname pid usesysid usename application_name client_addr client_hostname client_port backend_start xact_start query_start state_change wait_event_type wait_event state backend_xid backend_xmin query backend_type",
    ),
    (
        "pg_stat_activity",
        "datid datname pid leader_pid usesysid usename application_name client_addr client_hostname client_port backend_start xact_start query_start state_change wait_event_type wait_event state backend_xid backend_xmin query backend_type",
    ),
    (
        "pg_stat_activity",
        "datid datname pid leader_pid usesysid usename application_name client_addr client_hostname client_port backend_start xact_start query_start state_change wait_event_type wait_event state backend_xid backend_xmin query_id query backend_type",
    ),
    ("pools", "database user cl_active cl_waiting sv_active sv_idle sv_used sv_tested sv_login maxwait pool_mode"),
    (
        "pools",
        "database user cl_active cl_waiting sv_active sv_idle sv_used sv_tested sv_login maxwait maxwait_us pool_mode",
    ),
];

/// A column that a statement asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// Its name in the header, if the statement gives it one.
    pub(super) alias: Option<String>,
    /// The column of the table, or what is shown of it: `query_age`.
    pub(super) column: Option<String>,
}

/// What a statement says of the table below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::text) struct Select {
    /// The columns asked for, in order; empty if it asks for all.
    pub(super) items: Vec<Item>,
    /// The tables, in lower case and without a schema.
    pub(super) from: Vec<String>,
}

impl Item {
    /// Whether a header calls it so.
    pub(super) fn is_called(&self, name: &str) -> bool {
        let known = self.alias.iter().chain(&self.column);
        let is_own = known.into_iter().any(|known| known.eq_ignore_ascii_case(name));
        // `psql` calls an expression by its function, or not at all.
        let is_function = || {
            name == "?column?"
                || OF_TEXT.contains(&name)
                || self.alias.is_none() && matches!(name, "age" | "round" | "date_part" | "extract")
        };
        is_own || is_function() || column_of(name).is_some_and(|shows| self.column == Some(shows))
    }
}

struct Token {
    kind: TokenKind,
    text: String,
    depth: usize,
}

impl Token {
    fn is(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word)
    }

    fn name(&self) -> String {
        self.text.trim_matches(['"', '`', '\'']).to_owned()
    }

    fn is_name(&self) -> bool {
        matches!(self.kind, TokenKind::Word | TokenKind::QuotedName)
    }
}

fn tokens(text: &str) -> Vec<Token> {
    let dialect = if text.contains('`') { Dialect::MySql } else { Dialect::PostgreSql };
    let mut depth = 0_usize;
    let found = Lexer::new(text.as_bytes(), dialect).filter(|token| token.kind != TokenKind::Comment);
    let one = |token: holdup_sql::Token<'_>| {
        depth = if token.kind == TokenKind::Close { depth.saturating_sub(1) } else { depth };
        let of = Token { kind: token.kind, text: String::from_utf8_lossy(token.text).into_owned(), depth };
        depth += usize::from(token.kind == TokenKind::Open);
        of
    };
    found.map(one).collect()
}

/// The last statement in a command, which may stand in quotes behind a client's name.
pub(in crate::text) fn select(command: &str) -> Option<Select> {
    let command = &command[..(0..=BYTES.min(command.len())).rev().find(|end| command.is_char_boundary(*end))?];
    let lower = command.to_ascii_lowercase();
    let place = |word: &str| {
        let is_word = |at: &usize| !lower[..*at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        lower.match_indices(word).map(|(at, _)| at).find(is_word)
    };
    let shows = place("show ").filter(|at| place("select").is_none_or(|select| *at < select));
    let listed = lower.find("processlist").filter(|_| lower.contains("mysqladmin"));
    if let Some(at) = shows.map(|at| at + "show ".len()).or(listed) {
        let mut words = lower[at..].split_whitespace().map(|word| word.trim_matches([';', '"', '\'', '\\']));
        return words.find(|word| !["full", "global", "session", "extended"].contains(word)).map(of_table);
    }
    if let Some(name) = lower.strip_prefix("table ") {
        return name.split([';', ' ']).next().map(of_table);
    }
    // A select within another one does not name the columns of the result.
    let outer = lower.match_indices("select").map(|(at, _)| at).find(|at| !lower[..*at].trim_end().ends_with('('))?;
    read(command.get(outer + "select".len()..)?)
}

fn of_table(name: &str) -> Select {
    Select { items: Vec::new(), from: vec![name.rsplit('.').next().unwrap_or(name).to_owned()] }
}

fn read(text: &str) -> Option<Select> {
    // A quote or a backslash that ends the client's argument.
    let text = text.trim_end().trim_end_matches(['"', '\'', 'G', 'g', '\\', ';']);
    let all = tokens(text);
    let end = all.iter().position(|token| token.depth == 0 && token.is("from"));
    let list = all.get(..end.unwrap_or(all.len()))?;
    let mut items: Vec<&[Token]> = list.split(|token| token.depth == 0 && token.kind == TokenKind::Comma).collect();
    if let Some(first) = items.first_mut()
        && first.first().is_some_and(|token| token.is("distinct") || token.is("all"))
    {
        *first = first.get(1..).unwrap_or_default();
    }
    let from = end.map_or_else(Vec::new, |end| tables(all.get(end..).unwrap_or_default()));
    let has_all = items.iter().any(|item| item.last().is_some_and(|token| token.text == "*"));
    let items = if has_all { Vec::new() } else { items.into_iter().map(item).collect() };
    Some(Select { items, from })
}

/// Names behind `from`, `join` and commas.
fn tables(tokens: &[Token]) -> Vec<String> {
    let ends = ["where", "group", "order", "having", "limit"];
    let end = tokens.iter().position(|token| token.depth == 0 && ends.iter().any(|word| token.is(word)));
    let tokens = tokens.get(..end.unwrap_or(tokens.len())).unwrap_or_default();
    let mut names = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token.is("from") || token.is("join") || token.kind == TokenKind::Comma && token.depth == 0 {
            let below = tokens.get(at + 1..).unwrap_or_default();
            let path = below.iter().take_while(|token| token.is_name() || token.kind == TokenKind::Dot);
            // `a.b x`: the alias has no dot before it.
            let (mut name, mut is_next) = (None, true);
            for part in path {
                match part.kind {
                    TokenKind::Dot => is_next = true,
                    _ if is_next => (name, is_next) = (Some(part.name().to_ascii_lowercase()), false),
                    _ => break,
                }
            }
            names.extend(name);
        }
    }
    names
}

fn item(tokens: &[Token]) -> Item {
    let (expression, alias) = match tokens {
        [before @ .., keyword, name] if keyword.depth == 0 && keyword.is("as") => (before, Some(name.name())),
        [before @ .., last, name]
            if name.depth == 0
                && (name.is_name() || name.kind == TokenKind::Literal)
                && !name.is("end")
                && (last.is_name() || matches!(last.kind, TokenKind::Close | TokenKind::Literal)) =>
        {
            (tokens.get(..before.len() + 1).unwrap_or_default(), Some(name.name()))
        }
        _ => (tokens, None),
    };
    Item { alias, column: column(expression) }
}

/// What a header that is an expression shows: `LEFT(info, 50)` is the column `info`.
pub(super) fn column_of(expression: &str) -> Option<String> {
    expression.contains('(').then(|| column(&tokens(expression))).flatten()
}

fn column(tokens: &[Token]) -> Option<String> {
    let has = |word: &str| tokens.iter().any(|token| token.is(word));
    if let Some((_, age)) = SINCE.iter().find(|(column, _)| has(column)) {
        let is_age = ["now", "age", "clock_timestamp", "current_timestamp", "sysdate", "timestampdiff", "timediff"];
        if is_age.iter().any(|word| has(word)) {
            let in_seconds = has("epoch") || has("timestampdiff") && has("second");
            return Some(if in_seconds { format!("{age}_s") } else { (*age).to_owned() });
        }
    }
    match tokens {
        [name] if name.is_name() => Some(name.name()),
        // A cast does not change what is shown.
        [before @ .., cast, _] if cast.text == "::" => column(before),
        [.., dot, name] if dot.kind == TokenKind::Dot && name.is_name() && tokens.len() % 2 == 1 => {
            tokens.iter().step_by(2).all(Token::is_name).then(|| name.name())
        }
        [path @ .., open, _close] if open.kind == TokenKind::Open => Some(path.last()?.text.to_ascii_lowercase()),
        _ => function(tokens),
    }
}

/// A call with arguments that ends where the expression does.
fn function(tokens: &[Token]) -> Option<String> {
    let open = tokens.iter().position(|token| token.kind == TokenKind::Open)?;
    let name = tokens.get(open.checked_sub(1)?).filter(|token| token.is_name())?.text.to_ascii_lowercase();
    let close = tokens.iter().rposition(|token| token.kind == TokenKind::Close && token.depth == tokens[open].depth)?;
    let is_whole =
        close + 1 == tokens.len() && (open == 1 || tokens.get(open - 2).is_some_and(|t| t.kind == TokenKind::Dot));
    let is_closed_once = !tokens.get(open + 1..close)?.iter().any(|token| token.depth <= tokens[open].depth);
    if !is_whole || !is_closed_once {
        return None;
    }
    if OF_TEXT.contains(&name.as_str()) {
        let depth = tokens[open].depth + 1;
        let inner = tokens.get(open + 1..close)?;
        let ends = |token: &Token| {
            token.depth == depth && (token.kind == TokenKind::Comma || token.is("as") || token.is("from"))
        };
        let first = inner.get(..inner.iter().position(ends).unwrap_or(inner.len()))?;
        return column(first);
    }
    Some(name)
}

impl Select {
    /// The columns of a row with so many cells: a statement among them may hold what parts cells.
    pub(super) fn columns_of_row(&self, count: usize) -> Option<Vec<Item>> {
        let is_statement = |item: &Item| {
            item.column.as_ref().is_some_and(|name| STATEMENTS.iter().any(|of| name.eq_ignore_ascii_case(of)))
        };
        let has_more = count > self.items.len() && self.items.len() >= 2 && self.items.iter().any(is_statement);
        self.columns(if has_more { self.items.len() } else { count })
    }

    /// The columns of a result with so many; none if they are unknown.
    pub(super) fn columns(&self, count: usize) -> Option<Vec<Item>> {
        if self.items.len() == count && count > 0 {
            return Some(self.items.clone());
        }
        if !self.items.is_empty() {
            return None;
        }
        let of_table = |name: &str| self.from.iter().any(|from| from == name);
        let named = ALL.iter().filter(|(name, _)| of_table(name)).map(|(name, columns)| (*name, columns.split(' ')));
        let mut fitting = named.filter(|(name, columns)| {
            let known = columns.clone().count();
            // MariaDB and Percona show further columns at the end.
            known == count || *name == "processlist" && (known..=known + 10).contains(&count)
        });
        let (_, columns) = fitting.next()?;
        let one = |name: &str| Item { alias: None, column: Some(name.to_owned()).filter(|name| !name.is_empty()) };
        Some(columns.chain(std::iter::repeat("")).take(count).map(one).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(command: &str) -> String {
        let found = select(command).unwrap();
        let item = |item: &Item| {
            let column = item.column.clone().unwrap_or_else(|| "-".to_owned());
            item.alias.as_ref().map_or(column.clone(), |alias| format!("{column} as {alias}"))
        };
        let items: Vec<String> = found.items.iter().map(item).collect();
        format!("{} <- {}", items.join(", "), found.from.join(", "))
    }

    #[test]
    fn a_select_names_the_columns_below_it() {
        for (command, expected) in [
            ("SELECT id, user, state FROM information_schema.processlist;", "id, user, state <- processlist"),
            (
                "select pid, state, left(query, 40) as q from pg_stat_activity where state <> 'idle';",
                "pid, state, query as q <- pg_stat_activity",
            ),
            (
                "psql -Atc \"select a.pid, now() - a.query_start running, query from pg_stat_activity a\"",
                "pid, query_age as running, query <- pg_stat_activity",
            ),
            (
                "select extract(epoch from now() - xact_start)::int, count(*) from pg_stat_activity group by 1",
                "transaction_age_s, count <- pg_stat_activity",
            ),
            ("mysql -NBe 'show full processlist'", " <- processlist"),
            ("SHOW POOLS;", " <- pools"),
            ("select * from pg_locks l join pg_stat_activity a using (pid)", " <- pg_locks, pg_stat_activity"),
            ("select state, count(*) n, time/1000 from t", "state, count as n, - <- t"),
            (
                "SELECT `ID`, SUBSTRING(`INFO`, 1, 80) FROM `information_schema`.`PROCESSLIST`\\G",
                "ID, INFO <- processlist",
            ),
        ] {
            assert_eq!(shown(command), expected, "{command}");
        }
        assert_eq!((select("iostat -x 1"), select("")), (None, None));
        assert_eq!(column_of("LEFT(info, 50)").as_deref(), Some("info"));
        assert_eq!((column_of("round"), column_of("a / (b)")), (None, None));
    }

    #[test]
    fn all_columns_of_a_table_are_known_by_their_number() {
        let columns = |command: &str, count| {
            let found = select(command)?.columns(count)?;
            Some(found.into_iter().map(|item| item.column.unwrap_or_default()).collect::<Vec<_>>().join(" "))
        };
        assert!(columns("SHOW PROCESSLIST", 9).is_some_and(|all| all.ends_with("State Info ")));
        assert!(columns("select * from pg_stat_activity", 13).is_some_and(|all| all.contains("procpid")));
        assert_eq!(columns("select * from pg_stat_activity", 4), None);
        assert_eq!(columns("select pid, state from pg_stat_activity", 3), None);
    }
}
