//! One connection that inserts or asks, and waits for each answer.

use std::time::Duration;

use holdup_load::engine::talk::{Talk, TalkError};
use holdup_load::engine::target;
use holdup_load::scenario::Target;
use holdup_load::scenario::http::Trust;
use holdup_protocol::database::mongodb::Command;
use holdup_protocol::database::{Event, ExecuteError, Statement};

use crate::error::GenerateError;

/// How long an answer may take. FerretDB counts 7,000 documents a second, so 20 million take 48 minutes.
const PATIENCE: Duration = Duration::from_secs(4 * 3_600);

/// Where rows go.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) target: Target,
    pub(crate) trust: Trust,
}

/// A connection.
pub(crate) struct Client(Talk);

/// What takes the values of a row.
type TakeValues<'a> = dyn FnMut(&[Option<&[u8]>]) + 'a;

/// What takes the names and values of a row.
type TakeRow<'a> = dyn FnMut(&[String], &[Option<&[u8]>]) + 'a;

impl Client {
    pub(crate) fn connect(server: &Server) -> Result<Self, GenerateError> {
        let connected = target::connect(&server.target, &server.trust, PATIENCE);
        let mut talk = connected.map_err(|error| GenerateError::Unreachable(error.to_string()))?;
        talk.session.keep_every_row();
        Ok(Self(talk))
    }

    /// Runs a statement; `row` gets the values of every row, without their names.
    pub(crate) fn query(
        &mut self,
        what: &'static str,
        text: String,
        row: &mut TakeValues<'_>,
    ) -> Result<(), GenerateError> {
        let statement = Statement { text, ..Statement::default() };
        let taken = self.0.session.execute(&[statement], true);
        self.finish(what, taken, &mut |_, values| row(values))
    }

    /// Runs a statement without rows.
    pub(crate) fn execute(&mut self, what: &'static str, text: String) -> Result<(), GenerateError> {
        self.query(what, text, &mut |_| {})
    }

    /// Copies rows to PostgreSQL.
    pub(crate) fn copy(&mut self, text: String, rows: Vec<u8>) -> Result<(), GenerateError> {
        let taken = self.0.session.copy(Statement { text, ..Statement::default() }, rows);
        self.finish("the rows", taken, &mut |_, _| {})
    }

    /// Runs a command of MongoDB; `row` gets names and values of every document.
    pub(crate) fn command(
        &mut self,
        what: &'static str,
        command: Command,
        row: &mut TakeRow<'_>,
    ) -> Result<(), GenerateError> {
        let taken = self.0.session.execute_commands(&[command], false, true, b"");
        self.finish(what, taken, row)
    }

    fn finish(
        &mut self,
        what: &'static str,
        taken: Result<(), ExecuteError>,
        row: &mut TakeRow<'_>,
    ) -> Result<(), GenerateError> {
        taken.map_err(|error| GenerateError::Unfit(format!("{what}: {error}")))?;
        let mut ended = None;
        while ended.is_none() {
            let step = self.0.step(&mut |event| match event {
                Event::Row { columns, values, .. } => row(columns, values),
                Event::Done { .. } => ended = Some(Ok(())),
                Event::Failed { code, message, .. } => {
                    let (code, message) = (code.to_owned(), message.to_owned());
                    ended = Some(Err(GenerateError::Refused { what, code, message }));
                }
                Event::LoggedIn | Event::StartTls => {}
            });
            step.map_err(|error: TalkError| GenerateError::Lost(error.to_string()))?;
        }
        ended.unwrap_or(Ok(()))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Servers count connections that close without a goodbye.
        self.0.session.quit();
        let _ = self.0.say();
    }
}

/// A number in a row.
pub(crate) fn number(value: Option<&[u8]>) -> Option<u64> {
    std::str::from_utf8(value?).ok()?.parse().ok()
}
