//! Fills in the templates of a request. The result is always safe to send: nothing that a service
//! or a file says can end a line of a request's head.

use holdup_mongodb::Writer;
use holdup_protocol::database::Statement;
use holdup_protocol::database::mongodb::Command;

use crate::script::document::FillText;
use crate::script::encoding::{Encoding, put_encoded};
use crate::script::program::{self, Form, Piece};
use crate::script::template::percent;
use crate::script::{Context, StepFailure, Template};

/// A filled-in HTTP request. It is reused between requests to avoid allocations.
#[derive(Clone, Debug, Default)]
pub struct FilledRequest {
    /// Path and query.
    pub path: String,
    /// Further header fields, in the order of the form.
    pub headers: Vec<(String, String)>,
    /// Body, if there is one.
    pub body: Option<Vec<u8>>,
    scratch: Vec<u8>,
}

impl FilledRequest {
    /// Fills in an HTTP form.
    ///
    /// # Errors
    /// If a variable has no value, or a header would not be one line.
    pub fn http(&mut self, form: &Form, context: &mut Context<'_>) -> Result<(), StepFailure> {
        let Form::Http { path, headers, body, .. } = form else { return Err(StepFailure::Template) };
        self.scratch.clear();
        path.render(context, &mut self.scratch)?;
        self.path.clear();
        put_path(&self.scratch, &mut self.path);
        if !self.path.starts_with('/') {
            return Err(StepFailure::Template);
        }
        self.headers.resize_with(headers.len(), Default::default);
        for ((name, template), place) in headers.iter().zip(&mut self.headers) {
            self.scratch.clear();
            template.render(context, &mut self.scratch)?;
            let text = std::str::from_utf8(&self.scratch).map_err(|_| StepFailure::Template)?;
            if text.bytes().any(|b| (b < b' ' && b != b'\t') || b == 0x7f) {
                return Err(StepFailure::Template);
            }
            place.0.clone_from(name);
            place.1.clear();
            place.1.push_str(text);
        }
        match body {
            None => self.body = None,
            Some(pieces) => {
                let out = self.body.get_or_insert_default();
                out.clear();
                for piece in pieces {
                    put_piece(piece, context, &mut self.scratch, out)?;
                }
            }
        }
        Ok(())
    }
}

/// Fills in statements; `text` gives the text of a template.
///
/// # Errors
/// If a variable has no value, or a statement would not be UTF-8.
pub fn statements(given: &[program::Statement], text: &mut FillText<'_>) -> Result<Vec<Statement>, StepFailure> {
    let mut filled = |template: &Template| {
        let mut bytes = Vec::new();
        text(template, &mut bytes).map(|()| bytes)
    };
    let statements = given.iter().map(|statement| {
        Ok(Statement {
            text: String::from_utf8(filled(&statement.text)?).map_err(|_| StepFailure::Template)?,
            is_prepared: statement.is_prepared,
            parameters: statement.parameters.iter().map(|p| filled(p).map(Some)).collect::<Result<_, _>>()?,
        })
    });
    statements.collect()
}

/// Fills in commands; `database` is for those that name none.
///
/// # Errors
/// If a variable has no value, or a text is not of the kind that its place needs.
pub fn commands(
    given: &[program::Command],
    database: &str,
    text: &mut FillText<'_>,
) -> Result<Vec<Command>, StepFailure> {
    let filled = given.iter().map(|command| {
        Ok(Command {
            database: command.database.clone().unwrap_or_else(|| database.to_owned()),
            name: command.name.clone(),
            batch: command.batch,
            has_comment: command.has_comment,
            document: command.document.put_entries(Writer::new(), text)?,
        })
    });
    filled.collect()
}

/// Percent-encodes bytes that can't stand in a request line; those with a meaning there stay
/// unchanged.
fn put_path(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        if byte.is_ascii_graphic() {
            out.push(char::from(*byte));
        } else {
            out.extend(percent(*byte).map(char::from));
        }
    }
}

fn put_piece(
    piece: &Piece,
    context: &mut Context<'_>,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), StepFailure> {
    if piece.encoding == Encoding::Plain {
        return piece.template.render(context, out);
    }
    scratch.clear();
    piece.template.render(context, scratch)?;
    put_encoded(piece.encoding, scratch, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_not_stand_in_a_path_is_encoded() {
        let mut out = String::new();
        put_path("/a b?x=\r\nHost: é%20&y=1".as_bytes(), &mut out);
        assert_eq!(out, "/a%20b?x=%0D%0AHost:%20%C3%A9%20&y=1");
    }
}
