//! The queries of a statement, one inside the other, as tokens show them: which tables stand beside each other in each,
//! and what binds them. Functions' parentheses belong to the query they stand in.

use holdup_sql::{Dialect, Lexer, TokenKind};

/// A token, in lower case where it is a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    kind: TokenKind,
    text: String,
}

/// Words behind which a name is none of a column's.
const NO_COLUMN: &[&str] =
    &["and", "or", "not", "null", "true", "false", "case", "select", "any", "all", "some", "order", "group"];

/// What ends a table of a `FROM` and is no alias.
const NO_ALIAS: &[&str] = &[
    "where",
    "on",
    "using",
    "join",
    "left",
    "right",
    "inner",
    "full",
    "cross",
    "natural",
    "group",
    "order",
    "having",
    "limit",
    "union",
    "except",
    "intersect",
    "set",
    "values",
    "returning",
    "for",
    "offset",
    "fetch",
    "window",
    "tablesample",
];

/// Functions that make one row of many.
const AGGREGATES: &[&str] = &["count", "sum", "min", "max", "avg", "array_agg", "string_agg", "bool_and", "bool_or"];

/// The tokens of a text, comments left out.
pub(super) fn pieces(sql: &str, dialect: Dialect) -> Vec<Piece> {
    Lexer::new(sql.as_bytes(), dialect)
        .filter(|token| token.kind != TokenKind::Comment)
        .map(|token| {
            let text = String::from_utf8_lossy(token.text);
            let text = match token.kind {
                TokenKind::Word => text.to_lowercase(),
                TokenKind::QuotedName => text.trim_matches('"').to_owned(),
                _ => text.into_owned(),
            };
            Piece { kind: token.kind, text }
        })
        .collect()
}

impl Piece {
    pub(super) fn word(&self) -> Option<&str> {
        (self.kind == TokenKind::Word).then_some(self.text.as_str())
    }

    pub(super) fn name(&self) -> Option<&str> {
        matches!(self.kind, TokenKind::Word | TokenKind::QuotedName).then_some(self.text.as_str())
    }

    pub(super) fn number(&self) -> Option<f64> {
        (self.kind == TokenKind::Literal).then(|| self.text.parse().ok()).flatten()
    }

    pub(super) fn is_open(&self) -> bool {
        self.kind == TokenKind::Open
    }

    pub(super) fn is_close(&self) -> bool {
        self.kind == TokenKind::Close
    }

    pub(super) fn is_dot(&self) -> bool {
        self.kind == TokenKind::Dot
    }

    fn is(&self, word: &str) -> bool {
        self.word() == Some(word)
    }
}

/// Where in a query a token stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clause {
    Head,
    From,
    Condition,
    Tail,
}

/// One query, and those inside it.
#[derive(Debug, Default)]
pub(super) struct Scope {
    pub(super) tables: Vec<String>,
    /// Names and aliases that its columns may be prefixed with.
    prefixes: Vec<String>,
    /// Prefixes that were used, and by none of its tables.
    foreign: bool,
    pub(super) joins: usize,
    pub(super) keyed: bool,
    pub(super) filtered: bool,
    pub(super) condensed: bool,
    pattern: bool,
    inner: Vec<Scope>,
}

impl Scope {
    pub(super) fn of(pieces: &[Piece]) -> Self {
        let mut scope = Self::default();
        let mut used = Vec::new();
        let (mut clause, mut depth, mut at) = (Clause::Head, 0_usize, 0);
        while let Some(piece) = pieces.get(at) {
            let next = pieces.get(at + 1);
            if piece.is_open() && next.is_some_and(|next| next.is("select") || next.is("with")) {
                let end = closing(pieces, at);
                let inside = Self::of(&pieces[at + 1..end]);
                if clause == Clause::From && depth == 0 {
                    scope.tables.push(String::new());
                    scope.prefixes.extend(alias(pieces, end + 1));
                }
                scope.take_inner(inside);
                at = end + 1;
                continue;
            }
            depth = if piece.is_open() { depth + 1 } else { depth.saturating_sub(usize::from(piece.is_close())) };
            match piece.word() {
                Some("from") if depth == 0 => {
                    clause = Clause::From;
                    scope.table(pieces, at + 1);
                }
                Some("update") if at == 0 => scope.table(pieces, at + 1),
                Some("join") if depth == 0 => {
                    clause = Clause::From;
                    let natural = at > 0 && (pieces[at - 1].is("natural") || at > 1 && pieces[at - 2].is("natural"));
                    scope.joins += usize::from(natural);
                    scope.table(pieces, at + 1);
                }
                Some("using") if clause == Clause::From => scope.joins += 1,
                Some("on") if clause == Clause::From => clause = Clause::Condition,
                Some("where") => (clause, scope.filtered) = (Clause::Condition, true),
                Some("group" | "limit" | "fetch" | "having") if depth == 0 => {
                    (clause, scope.condensed) = (Clause::Tail, true)
                }
                Some("order" | "union" | "returning" | "window") if depth == 0 => clause = Clause::Tail,
                Some(name)
                    if clause == Clause::Head && AGGREGATES.contains(&name) && next.is_some_and(Piece::is_open) =>
                {
                    // `count(*) OVER (…)` keeps its rows.
                    scope.condensed |= !pieces.get(closing(pieces, at + 1) + 1).is_some_and(|piece| piece.is("over"));
                }
                Some("like" | "ilike") => {
                    scope.pattern |=
                        next.is_some_and(|next| next.text.starts_with("'%") || next.text.starts_with("'_"));
                }
                Some("in") if clause == Clause::Condition && !pieces[at.saturating_sub(1)].is("not") => {
                    scope.keyed = true
                }
                _ if piece.kind == TokenKind::Comma && depth == 0 && scope.in_from(clause) => {
                    clause = Clause::From;
                    scope.table(pieces, at + 1);
                }
                _ if clause == Clause::Condition && piece.text == "=" => scope.equal(pieces, at),
                _ => {}
            }
            if next.is_some_and(Piece::is_dot) && clause != Clause::From {
                used.extend(piece.name().map(str::to_owned));
            }
            at += 1;
        }
        scope.foreign = used.iter().any(|prefix| !scope.prefixes.contains(&prefix.to_lowercase()));
        scope
    }

    fn take_inner(&mut self, inside: Self) {
        // What has no table of its own has no condition either: its parenthesis was never closed.
        if inside.tables.is_empty() {
            self.joins += inside.joins;
            self.keyed |= inside.keyed;
            self.filtered |= inside.filtered;
        }
        self.inner.push(inside);
    }

    /// Whether a comma here is followed by a further table: also behind the condition of a join.
    fn in_from(&self, clause: Clause) -> bool {
        clause == Clause::From || clause == Clause::Condition && !self.filtered
    }

    /// Takes the table that a name at this place is.
    fn table(&mut self, pieces: &[Piece], at: usize) {
        let at = at
            + pieces[at.min(pieces.len())..].iter().take_while(|piece| piece.is("only") || piece.is("lateral")).count();
        let Some(mut name) = pieces.get(at).and_then(Piece::name).filter(|name| !NO_ALIAS.contains(name)) else {
            return;
        };
        let mut end = at + 1;
        while pieces.get(end).is_some_and(Piece::is_dot) {
            name = pieces.get(end + 1).and_then(Piece::name).unwrap_or(name);
            end += 2;
        }
        // A function that makes rows is none.
        if pieces.get(end).is_some_and(Piece::is_open) {
            return;
        }
        self.tables.push(name.to_lowercase());
        self.prefixes.push(name.to_lowercase());
        self.prefixes.extend(alias(pieces, end));
    }

    /// Takes an equality whose sign stands at this place.
    fn equal(&mut self, pieces: &[Piece], at: usize) {
        let column = |piece: Option<&Piece>| {
            piece.and_then(Piece::name).is_some_and(|name| !NO_COLUMN.contains(&name) && !name.starts_with('@'))
        };
        let left = column(at.checked_sub(1).and_then(|before| pieces.get(before)));
        let mut end = at + 1;
        while column(pieces.get(end)) && pieces.get(end + 1).is_some_and(Piece::is_dot) {
            end += 2;
        }
        let call = pieces.get(end + 1).is_some_and(Piece::is_open);
        let right = column(pieces.get(end)) && !call;
        match (left, right) {
            (true, true) => self.joins += 1,
            (true, false) | (false, true) => self.keyed = true,
            (false, false) => {}
        }
    }

    /// The query with the most tables, itself included.
    pub(super) fn widest(&self) -> &Self {
        self.inner
            .iter()
            .map(Self::widest)
            .fold(self, |most, scope| if scope.tables.len() > most.tables.len() { scope } else { most })
    }

    /// Whether in one of the queries fewer conditions bind tables than are needed.
    pub(super) fn unbound(&self) -> bool {
        let bound_by_outer = self.foreign;
        (!bound_by_outer && self.tables.len() > 1 && self.joins + 1 < self.tables.len())
            || self.inner.iter().any(Self::unbound)
    }

    pub(super) fn open_pattern(&self) -> bool {
        self.pattern || self.inner.iter().any(Self::open_pattern)
    }

    /// Whether a query inside takes values of the one around it: it names a table that it has not, or binds more columns
    /// than its own tables can need.
    pub(super) fn correlated(&self) -> bool {
        self.inner.iter().any(|inner| {
            !inner.tables.is_empty() && (inner.foreign || inner.joins >= inner.tables.len()) || inner.correlated()
        })
    }
}

/// The alias at this place, if one stands there.
fn alias(pieces: &[Piece], at: usize) -> Option<String> {
    let at = at + usize::from(pieces.get(at).is_some_and(|piece| piece.is("as")));
    pieces.get(at)?.name().filter(|name| !NO_ALIAS.contains(name)).map(str::to_lowercase)
}

/// Where the parenthesis that opens at this place closes, or the end.
fn closing(pieces: &[Piece], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, piece) in pieces.iter().enumerate().skip(open) {
        depth = if piece.is_open() { depth + 1 } else { depth.saturating_sub(usize::from(piece.is_close())) };
        if depth == 0 {
            return at;
        }
    }
    pieces.len()
}
