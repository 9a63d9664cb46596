//! Conversations with a server that is a list of bytes. Each is had again with its bytes cut at every place: what
//! happens must not depend on it.

use std::sync::Arc;

use crate::database::{Dialect, Error, Event, Login, Secret, Session, Statement, TlsMode};

/// The password of the account.
pub(crate) const PASSWORD: &str = "canary";

/// What is done next.
#[derive(Clone)]
pub(crate) enum Step {
    /// The server sends.
    Server(Vec<u8>),
    /// The caller executes, and wants rows.
    Execute(Vec<Statement>),
    /// What is sent now is this.
    Sent(Vec<u8>),
    /// It is thrown away.
    Whatever,
    /// TLS has begun.
    TlsStarted,
    Quit,
}

/// What became of it.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) events: Vec<String>,
    pub(crate) error: Option<Error>,
}

pub(crate) fn session(dialect: Dialect, tls: TlsMode) -> Session {
    let login = Login::new("me".to_owned(), Secret::new(PASSWORD.to_owned()), Some("lab".to_owned()));
    Session::new(dialect, Arc::new(login), tls)
}

fn shown(event: &Event<'_>) -> String {
    match event {
        Event::Row { statement, columns, values } => {
            let text = |value: &Option<&[u8]>| {
                value.map_or("NULL".into(), |value| String::from_utf8_lossy(value).into_owned())
            };
            let values: Vec<String> = values.iter().map(text).collect();
            format!("{statement}: {}={}", columns.join(","), values.join(","))
        }
        Event::Done { rows, affected, .. } => format!("done {rows} {affected}"),
        Event::Failed { statement, code, message } => format!("failed {statement} {code} {message}"),
        other => format!("{other:?}"),
    }
}

/// Has it with the server's bytes cut before byte `cut`, or after each.
fn run(dialect: Dialect, tls: TlsMode, steps: &[Step], cut: Option<usize>) -> Outcome {
    let mut session = session(dialect, tls);
    let (mut events, mut error) = (Vec::new(), None);
    let mut position = 0;
    for step in steps {
        match step {
            Step::Server(bytes) => {
                let pieces = match cut {
                    None => bytes.chunks(1).collect::<Vec<_>>(),
                    Some(cut) => {
                        let (first, rest) = bytes.split_at(cut.saturating_sub(position).min(bytes.len()));
                        vec![first, rest]
                    }
                };
                for piece in pieces {
                    error = session.feed(piece, &mut |event| events.push(shown(&event))).err();
                    if error.is_some() {
                        assert!(!session.is_ready());
                        assert_eq!(session.feed(b"more", &mut |_| ()).err(), error);
                        return Outcome { events, error };
                    }
                }
                position += bytes.len();
            }
            Step::Execute(statements) => session.execute(statements, true).expect("it is ready"),
            Step::Sent(bytes) => {
                assert_eq!(String::from_utf8_lossy(session.output()), String::from_utf8_lossy(bytes));
                // Sent in two goes.
                session.consumed(bytes.len() / 2);
                assert_eq!(session.output().len(), bytes.len() - bytes.len() / 2);
                session.consumed(session.output().len());
            }
            Step::Whatever => session.consumed(session.output().len()),
            Step::TlsStarted => session.tls_started(),
            Step::Quit => session.quit(),
        }
    }
    Outcome { events, error }
}

/// Has it whole, in single bytes, and in two pieces of all sizes.
pub(crate) fn have(dialect: Dialect, tls: TlsMode, steps: &[Step]) -> Outcome {
    let whole = run(dialect, tls, steps, Some(usize::MAX));
    assert_eq!(run(dialect, tls, steps, None), whole);
    let length = steps.iter().map(|step| if let Step::Server(bytes) = step { bytes.len() } else { 0 }).sum();
    for cut in 1..length {
        assert_eq!(run(dialect, tls, steps, Some(cut)), whole, "cut at {cut}");
    }
    whole
}

pub(crate) fn text(text: &str) -> Statement {
    Statement { text: text.to_owned(), ..Statement::default() }
}

pub(crate) fn prepared(text: &str, parameters: &[Option<&str>]) -> Statement {
    let parameters = parameters.iter().map(|value| value.map(|value| value.as_bytes().to_vec())).collect();
    Statement { text: text.to_owned(), is_prepared: true, parameters }
}
