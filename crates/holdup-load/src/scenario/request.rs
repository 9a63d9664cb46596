//! One request, statement or command of a scenario: what is sent, checked, and captured.

use crate::script::encoding::Encoding;
use crate::script::program::{Form, OnFailure, Piece, RequestSpec, Statement};
use crate::script::{Capture, Condition, Names, Needs, Pick, Subjects, Template};
use holdup_protocol::database::Dialect;

use super::include::{beside, read as read_file};
use super::statement;
use super::{METHODS, Target, check_header, check_path, document, without_query};
use crate::yaml::{Map, Node, YamlError};

/// The protocol of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// HTTP.
    Http,
    /// SQL in this dialect.
    Sql(Dialect),
    /// MongoDB's commands.
    Mongodb {
        /// The target names the database that they go to.
        has_database: bool,
    },
}

const HTTP_KEYS: [&str; 9] = ["name", "headers", "body", "json", "form", "body_file", "capture", "check", "on_failure"];
const SQL_KEYS: [&str; 8] = ["name", "query", "transaction", "params", "prepared", "capture", "check", "on_failure"];

const MONGODB_KEYS: [&str; 6] = ["name", "command", "transaction", "capture", "check", "on_failure"];

impl Language {
    /// The language of a target.
    pub fn of_target(target: &Target) -> Self {
        match &target.sql {
            None => Self::Http,
            Some(address) if address.dialect == Dialect::Mongodb => {
                Self::Mongodb { has_database: address.database.is_some() }
            }
            Some(address) => Self::Sql(address.dialect),
        }
    }

    /// Keys that say what is sent.
    pub fn starts(self) -> &'static [&'static str] {
        match self {
            Self::Http => &METHODS,
            Self::Sql(_) => &["query", "transaction"],
            Self::Mongodb { .. } => &["command", "transaction"],
        }
    }

    /// Keys of a request.
    pub fn keys(self) -> Vec<&'static str> {
        match self {
            Self::Http => METHODS.into_iter().chain(HTTP_KEYS).collect(),
            Self::Sql(_) => SQL_KEYS.to_vec(),
            Self::Mongodb { .. } => MONGODB_KEYS.to_vec(),
        }
    }
}

/// Largest file used as a body, bytes.
const LARGEST_BODY_BYTES: u64 = 64 << 20;

/// A parsed request. The index of its operation is still to be found by its name.
pub struct ParsedRequest {
    /// The request.
    pub spec: RequestSpec,
    /// Its name, without its groups.
    pub name: String,
    /// Method as it is sent; empty for a statement.
    pub method: String,
    /// Path as it is written.
    pub path: String,
}

struct Reader<'a> {
    names: &'a Names,
    feeders: Vec<u32>,
    needs: Needs,
}

/// Reads a request.
///
/// # Errors
/// The first thing wrong, with its line and what would be right.
pub fn read(
    node: &Node,
    map: &Map<'_>,
    language: Language,
    names: &Names,
    headers: &[(String, Node)],
) -> Result<ParsedRequest, YamlError> {
    let mut reader = Reader { names, feeders: Vec::new(), needs: Needs::default() };
    let (form, method, path, name) = match language {
        Language::Http => reader.http(node, map, headers)?,
        Language::Sql(dialect) => reader.sql(node, map, dialect)?,
        Language::Mongodb { has_database } => reader.mongodb(node, map, has_database)?,
    };
    let mut captures = Vec::new();
    if let Some(list) = map.get("capture") {
        for (name, source) in list.entries()? {
            let capture = capture(source)?;
            match language {
                Language::Http if capture.is_of_statement() => {
                    return Err(source.error("only a statement's result has columns and rows; use json, regex, header, cookie, status or body"));
                }
                Language::Sql(_) | Language::Mongodb { .. } if !capture.is_of_statement() => {
                    return Err(source.error("a statement's result has only rows and columns; use column NAME or rows"));
                }
                _ => {}
            }
            reader.needs = reader.needs.union(capture.needs());
            let slot = names.slot(name).ok_or_else(|| source.error("unknown variable"))?;
            captures.push((slot, capture));
        }
    }
    let subjects = if language == Language::Http { Subjects::Http } else { Subjects::Sql };
    let mut checks = Vec::new();
    for check in map.get("check").map_or(&[][..], Node::list) {
        let condition = Condition::parse(check.text()?, names, subjects).map_err(|e| check.error(e))?;
        reader.needs = reader.needs.union(condition.needs());
        reader.feeders.extend(condition.feeders());
        checks.push(condition);
    }
    let ways = [("go_on", OnFailure::GoOn), ("end_session", OnFailure::EndSession), ("stop", OnFailure::Stop)];
    let on_failure = match map.get("on_failure") {
        None if captures.is_empty() => OnFailure::GoOn,
        None => OnFailure::EndSession,
        Some(node) => node.one_of("on_failure", &ways)?,
    };
    let Reader { mut feeders, needs, .. } = reader;
    feeders.sort_unstable();
    feeders.dedup();
    let judges_status = checks.iter().any(Condition::speaks_of_status);
    let name = map.get("name").map_or(Ok(name.as_str()), Node::text)?.to_owned();
    if name.is_empty() {
        return Err(node.error("the name is empty"));
    }
    let spec = RequestSpec {
        operation: 0,
        name: String::new(),
        form,
        captures,
        checks,
        judges_status,
        needs,
        on_failure,
        feeders,
    };
    Ok(ParsedRequest { spec, name, method, path })
}

impl Reader<'_> {
    fn template(&mut self, node: &Node, text: &str) -> Result<Template, YamlError> {
        let template = Template::parse(text, self.names).map_err(|e| node.error(e))?;
        self.feeders.extend(template.feeders());
        Ok(template)
    }

    fn http(
        &mut self,
        node: &Node,
        map: &Map<'_>,
        common: &[(String, Node)],
    ) -> Result<(Form, String, String, String), YamlError> {
        let mut methods = METHODS.iter().filter_map(|m| Some((*m, map.get(m)?)));
        let (method, path_node) = methods
            .next()
            .ok_or_else(|| node.error(format!("say what to send: one of {}, e.g. get: /path", METHODS.join(", "))))?;
        if methods.next().is_some() {
            return Err(node.error("more than one method; split it into two operations"));
        }
        let text = path_node.text()?;
        let path = self.template(path_node, text)?;
        match path.constant() {
            Some(path) => check_path(path).map_err(|why| path_node.error(why))?,
            None if !text.starts_with('/') && !text.starts_with("${") => {
                return Err(path_node.error(format!("a path begins with /, found \"{text}\"")));
            }
            None => {}
        }
        let mut headers: Vec<(String, Template)> = Vec::new();
        let own = map.get("headers").map_or(Ok(&[][..]), Node::entries)?;
        let is_own = |name: &str| own.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
        for (name, value) in common.iter().filter(|(name, _)| !is_own(name)).chain(own) {
            let template = self.template(value, value.text()?)?;
            check_header(name, template.constant().unwrap_or("")).map_err(|why| value.error(why))?;
            headers.push((name.clone(), template));
        }
        let mut body = None;
        let mut content = None;
        for key in ["body", "json", "form", "body_file"] {
            let Some(value) = map.get(key) else { continue };
            if body.is_some() {
                return Err(value.error("body, json, form and body_file exclude each other; keep one"));
            }
            let mut pieces = Pieces { reader: self, list: Vec::new(), text: String::new() };
            content = pieces.read(key, value)?;
            body = Some(pieces.end(value)?);
        }
        if let Some(content) = content
            && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
        {
            headers.push(("Content-Type".to_owned(), self.template(node, content)?));
        }
        let name = statement::blanked(without_query(text));
        let form = Form::Http { method: method.to_uppercase(), path, headers, body };
        Ok((form, method.to_uppercase(), text.to_owned(), name))
    }

    fn sql(
        &mut self,
        node: &Node,
        map: &Map<'_>,
        dialect: Dialect,
    ) -> Result<(Form, String, String, String), YamlError> {
        let (statements, text, name) = match (map.get("query"), map.get("transaction")) {
            (Some(query), None) => {
                let text = query.text()?;
                (vec![self.statement(map, dialect)?], text.to_owned(), statement::name(text, dialect))
            }
            (None, Some(list)) => {
                if let Some(beside) = ["params", "prepared"].into_iter().find_map(|key| map.get(key)) {
                    return Err(
                        beside.error("belongs to one statement of the transaction: - {query: ..., params: [...]}")
                    );
                }
                let mut statements = vec![self.bare(list, "BEGIN")?];
                let mut texts = Vec::new();
                for entry in list.list() {
                    let map = entry.map(&["query", "params", "prepared"])?;
                    statements.push(self.statement(&map, dialect)?);
                    texts.push(map.need("query")?.text()?);
                }
                if texts.is_empty() {
                    return Err(list.error("a transaction has at least one statement, e.g. - query: SELECT 1"));
                }
                statements.push(self.bare(list, "COMMIT")?);
                (statements, texts.join("; "), statement::transaction_name(&texts, dialect))
            }
            _ => return Err(node.error("say what to execute: query: SELECT ... or transaction: [...]")),
        };
        Ok((Form::Sql { statements }, String::new(), text, name))
    }

    fn mongodb(
        &mut self,
        node: &Node,
        map: &Map<'_>,
        has_database: bool,
    ) -> Result<(Form, String, String, String), YamlError> {
        let (list, is_transaction) = match (map.get("command"), map.get("transaction")) {
            (Some(command), None) => (vec![command], false),
            (None, Some(list)) => {
                let entries = list.list().iter().map(|entry| entry.map(&["command"])?.need("command"));
                (entries.collect::<Result<Vec<_>, _>>()?, true)
            }
            _ => return Err(node.error("say what to execute: command: {find: ...} or transaction: [...]")),
        };
        if list.is_empty() {
            return Err(node.error("a transaction has at least one command, e.g. - command: {insert: ...}"));
        }
        let (mut commands, mut shapes) = (Vec::new(), Vec::new());
        for command in list {
            let read = document::command(command, has_database, &mut |node, text| self.template(node, text))?;
            commands.push(read.0);
            shapes.push(read.1);
        }
        let shape = format!("{}{}", if is_transaction { "transaction: " } else { "" }, shapes.join("; "));
        Ok((Form::Mongodb { commands, is_transaction }, String::new(), shape.clone(), statement::shortened(&shape)))
    }

    fn bare(&mut self, node: &Node, text: &str) -> Result<Statement, YamlError> {
        Ok(Statement { text: self.template(node, text)?, parameters: Vec::new(), is_prepared: false })
    }

    fn statement(&mut self, map: &Map<'_>, dialect: Dialect) -> Result<Statement, YamlError> {
        let query = map.need("query")?;
        let params = map.get("params").map_or(&[][..], Node::list);
        let parameters = params.iter().map(|p| self.template(p, p.text()?)).collect::<Result<Vec<_>, _>>()?;
        let is_prepared = match map.get("prepared") {
            None => !parameters.is_empty(),
            some => super::http::flag(some)?,
        };
        if !is_prepared && !parameters.is_empty() {
            return Err(query.error(
                "params belong to a prepared statement; remove prepared: false, or write ${...} into the query",
            ));
        }
        let text = query.text()?;
        if text.contains('\0') {
            return Err(query.error("a statement can't hold a NUL byte"));
        }
        let text = match dialect {
            Dialect::Postgres if !parameters.is_empty() => self.template(query, &statement::numbered(text))?,
            _ => self.template(query, text)?,
        };
        Ok(Statement { text, parameters, is_prepared })
    }
}

/// Collects the pieces of a body: literal text is merged until something else follows.
struct Pieces<'r, 'n> {
    reader: &'r mut Reader<'n>,
    list: Vec<Piece>,
    text: String,
}

impl Pieces<'_, '_> {
    /// Reads the body under `key`; returns its content type, if that follows from the key.
    fn read(&mut self, key: &str, node: &Node) -> Result<Option<&'static str>, YamlError> {
        match key {
            "json" => {
                self.json(node)?;
                Ok(Some("application/json"))
            }
            "form" => {
                for (i, (name, value)) in node.entries()?.iter().enumerate() {
                    self.text.push_str(if i > 0 { "&" } else { "" });
                    self.filled(value, &name.replace("${", "$${"), Encoding::Form)?;
                    self.text.push('=');
                    self.filled(value, value.text()?, Encoding::Form)?;
                }
                Ok(Some("application/x-www-form-urlencoded"))
            }
            "body_file" => {
                let path = beside(node.file(), node.text()?);
                let bytes = read_file(&path, LARGEST_BODY_BYTES).map_err(|why| node.error(why))?;
                let text = String::from_utf8(bytes).map_err(|_| node.error(format!("{path} is not UTF-8")))?;
                self.filled(node, &text, Encoding::Plain)?;
                Ok(None)
            }
            _ => {
                self.filled(node, node.text()?, Encoding::Plain)?;
                Ok(None)
            }
        }
    }

    fn filled(&mut self, node: &Node, text: &str, encoding: Encoding) -> Result<(), YamlError> {
        self.settle(node)?;
        let template = self.reader.template(node, text)?;
        self.list.push(Piece { template, encoding });
        Ok(())
    }

    fn json(&mut self, node: &Node) -> Result<(), YamlError> {
        if node.is_map() {
            self.text.push('{');
            for (i, (key, value)) in node.entries()?.iter().enumerate() {
                self.text.push_str(if i > 0 { "," } else { "" });
                self.text.push_str(&serde_json::Value::from(key.as_str()).to_string());
                self.text.push(':');
                self.json(value)?;
            }
            self.text.push('}');
        } else if node.is_list() {
            self.text.push('[');
            for (i, item) in node.list().iter().enumerate() {
                self.text.push_str(if i > 0 { "," } else { "" });
                self.json(item)?;
            }
            self.text.push(']');
        } else if node.is_empty() {
            self.text.push_str("null");
        } else {
            let encoding = if node.is_plain() { Encoding::JsonValue } else { Encoding::JsonText };
            self.filled(node, node.text()?, encoding)?;
        }
        Ok(())
    }

    fn settle(&mut self, node: &Node) -> Result<(), YamlError> {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text).replace("${", "$${");
            self.list.push(Piece { template: self.reader.template(node, &text)?, encoding: Encoding::Plain });
        }
        Ok(())
    }

    fn end(mut self, node: &Node) -> Result<Vec<Piece>, YamlError> {
        self.settle(node)?;
        Ok(self.list)
    }
}

/// `json /token`, or the long form with `pick` and `default`.
fn capture(node: &Node) -> Result<Capture, YamlError> {
    if !node.is_map() {
        return Capture::parse(node.text()?).map_err(|why| node.error(why));
    }
    const SOURCES: [&str; 8] = ["json", "regex", "header", "cookie", "status", "body", "column", "rows"];
    let mut keys = SOURCES.to_vec();
    keys.extend(["pick", "default"]);
    let map = node.map(&keys)?;
    let mut found = SOURCES.iter().filter_map(|key| Some((*key, map.get(key)?)));
    let (kind, value) =
        found.next().ok_or_else(|| node.error(format!("say what to capture: one of {}", SOURCES.join(", "))))?;
    if found.next().is_some() {
        return Err(node.error("a variable can be captured from only one place"));
    }
    let source = format!("{kind} {}", value.text()?);
    let picks = [
        ("first", Pick::First),
        ("last", Pick::Last),
        ("random", Pick::Random),
        ("all", Pick::All),
        ("count", Pick::Count),
    ];
    let pick = map.get("pick").map_or(Ok(Pick::First), |node| node.one_of("pick", &picks))?;
    // An empty default is a default, too.
    let default = match node.entries()?.iter().find(|(key, _)| key == "default") {
        Some((_, value)) if value.is_empty() => Some(String::new()),
        Some((_, value)) => Some(value.text()?.to_owned()),
        None => None,
    };
    Capture::new(&source, pick, default).map_err(|why| value.error(why))
}
