//! Transactions in InnoDB's status: whose they are, how long they have been open, what they run and
//! whether they wait for a lock.

use holdup_recording::rows::Session;
use holdup_recording::{Labels, Text, metrics};
use holdup_sql::{Dialect, digest_of_text, digest_text};

use crate::text::kinds::processlist::SOURCE;
use crate::text::kinds::sessions::{at_list, merge};
use crate::text::kinds::{Context, Line, number};

/// Most lines of a statement.
const STATEMENT_LINES: usize = 200;

#[derive(Default)]
pub(super) struct Transaction {
    pub(super) session: Option<i64>,
    pub(super) digest_text: Option<String>,
    user: Option<String>,
    client: Option<String>,
    /// The server's words for what it does.
    state: Option<String>,
    /// How long it has been open, seconds; none if it has not begun.
    open_s: Option<f64>,
    is_waiting: bool,
    waited_s: Option<f64>,
}

impl Transaction {
    /// `MySQL thread id 12, OS thread handle 0x7f, query id 34 10.0.0.9 app updating`
    fn learn(&mut self, rest: &str) {
        self.session = rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok());
        let Some((_, rest)) = rest.split_once("query id ") else { return };
        let mut words = rest.split_whitespace().skip(1).peekable();
        let is_address =
            |word: &str| word.split('.').count() == 4 && word.split('.').all(|part| part.parse::<u8>().is_ok());
        // A host's name, its address, or both.
        let mut host = words.next();
        if let Some(address) = words.next_if(|word| is_address(word)) {
            host = Some(address);
        }
        self.client = host.filter(|host| *host != "localhost").map(str::to_owned);
        self.user = words.next().map(str::to_owned);
        let state: Vec<&str> = words.collect();
        self.state = (!state.is_empty()).then(|| state.join(" "));
    }
}

/// Whether a line of the status ends a statement that is printed in it.
fn ends_statement(text: &str) -> bool {
    const OTHERS: [&str; 9] = [
        "---",
        "***",
        "TABLE LOCK",
        "RECORD LOCKS",
        "Trx read view",
        "Trx #rec",
        "TRANSACTION ",
        "Record lock",
        "ROLLING BACK",
    ];
    text.trim().is_empty() || OTHERS.iter().any(|word| text.starts_with(word))
}

/// All transactions of a section.
pub(super) fn all(lines: &[Line]) -> Vec<Transaction> {
    let mut all: Vec<Transaction> = Vec::new();
    let mut statement: Option<Vec<&str>> = None;
    for line in lines {
        let text = line.text.trim_start();
        if let Some(parts) = statement.as_mut() {
            if !ends_statement(text) && parts.len() < STATEMENT_LINES {
                parts.push(text);
                continue;
            }
            close(&mut all, statement.take());
        }
        if let Some(rest) = text.trim_start_matches('-').strip_prefix("TRANSACTION ") {
            let active = rest.split_once("ACTIVE ").map(|(_, rest)| rest);
            let open_s = active.and_then(|rest| number(rest.split_whitespace().next()?));
            all.push(Transaction { open_s, ..Transaction::default() });
            continue;
        }
        let Some(last) = all.last_mut() else { continue };
        if text.starts_with("LOCK WAIT") {
            last.is_waiting = true;
        } else if let Some(rest) =
            text.strip_prefix("MySQL thread id ").or_else(|| text.strip_prefix("MariaDB thread id "))
        {
            last.learn(rest);
            statement = Some(Vec::new());
        } else if let Some((_, rest)) = text.split_once("TRX HAS BEEN WAITING ") {
            last.is_waiting = true;
            let mut words = rest.split_whitespace();
            let value = words.next().and_then(number);
            // Newer versions count microseconds.
            let per = if words.next().is_some_and(|unit| unit.starts_with("us") || unit.starts_with("mic")) {
                1e6
            } else {
                1.0
            };
            last.waited_s = value.map(|value| value / per);
        }
    }
    close(&mut all, statement);
    all
}

fn close(all: &mut [Transaction], statement: Option<Vec<&str>>) {
    let text = statement.filter(|parts| !parts.is_empty()).map(|parts| parts.join(" "));
    if let Some((last, text)) = all.last_mut().zip(text) {
        last.digest_text = Some(digest_text(text, Dialect::MySql)).filter(|text| !text.is_empty());
    }
}

pub(super) fn read(lines: &[Line], at: i64, context: &mut Context) {
    let all = all(lines);
    // The transactions themselves may be cut out.
    let said = lines.iter().filter(|line| line.text.contains("TRX HAS BEEN WAITING")).count();
    let waiting = all.iter().filter(|one| one.is_waiting).count().max(said);
    let metric = metrics::mysql::GLOBAL_STATUS_INNODB_ROW_LOCK_CURRENT_WAITS.name;
    context.out.gauge(at, SOURCE, metric, Labels::none(), waiting as f64);
    let oldest_s =
        all.iter().filter_map(|one| one.open_s).fold(None, |most: Option<f64>, s| Some(most.unwrap_or(0.0).max(s)));
    if let Some(oldest_s) = oldest_s {
        context.out.gauge(at, SOURCE, metrics::mysql::INNODB_OLDEST_TRANSACTION.name, Labels::none(), oldest_s);
    }
    let labels = Labels::new([("command", "Query"), ("true_state", "lock_wait")]);
    context.out.gauge(at, SOURCE, metrics::mysql::SESSIONS.name, labels, waiting as f64);
    let of_list = at_list(SOURCE, at, context);
    for one in all.into_iter().filter(|one| one.open_s.is_some() || one.is_waiting) {
        let Some(session_id) = one.session else { continue };
        let (command, true_state) = match (one.is_waiting, &one.digest_text, &one.state) {
            (true, ..) => ("Query", "lock_wait"),
            (false, None, None) => ("Sleep", "idle"),
            (false, ..) => ("Query", "executing"),
        };
        let age_s = if one.is_waiting { one.waited_s.or(one.open_s) } else { one.open_s };
        merge(
            Session {
                observed_at: of_list,
                source: SOURCE.into(),
                session_id,
                user: one.user.map(Text::from),
                client: one.client.map(Text::from),
                command: command.into(),
                state: one.state.map(Text::from),
                true_state: true_state.into(),
                age_ns: age_s.filter(|s| (0.0..1e9).contains(s)).map(|s| (s * 1e9) as i64),
                digest: one.digest_text.as_deref().map(|text| digest_of_text(text).into()),
                digest_text: one.digest_text.map(Text::from),
                ..Session::default()
            },
            context,
        );
    }
}
