//! What the nodes of a template write. Simple ones write straight into the caller's buffer.

use std::borrow::Cow;

use super::luck;
use super::tree::Node;
use crate::script::{Context, StepFailure, Value};

/// Most bytes that the functions of one template may produce together, 4 MiB: a bound for nesting
/// and repetition.
const MADE_BYTES: usize = 4 << 20;

/// The remaining limits of one rendering.
pub(crate) struct Work {
    /// Depth of nested expanded texts.
    pub(super) depth: u8,
    /// Bytes that functions may still produce.
    pub(super) left: usize,
}

impl Work {
    pub(crate) fn new() -> Self {
        Self { depth: 0, left: MADE_BYTES }
    }

    /// Takes `bytes` from the limit.
    pub(super) fn spend(&mut self, bytes: usize) -> Result<(), StepFailure> {
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or(0);
        left.map(drop).ok_or(StepFailure::Template)
    }
}

/// The value of a node.
pub(crate) enum NodeValue<'b> {
    Text(Cow<'b, str>),
    List(&'b [Box<str>]),
}

impl Node {
    /// Appends its text.
    pub(crate) fn write(&self, ctx: &mut Context<'_>, work: &mut Work, out: &mut Vec<u8>) -> Result<(), StepFailure> {
        match self {
            Self::Literal(text) => out.extend_from_slice(text.as_bytes()),
            Self::Variable { slot, first } => match ctx.values.get(*slot as usize) {
                Some(Value::Text(text)) => out.extend_from_slice(text.as_bytes()),
                Some(Value::List(items)) => separated(items, out, |item, out| {
                    out.extend_from_slice(item.as_bytes());
                    Ok(())
                })?,
                Some(Value::None) | None => first.as_ref().ok_or(StepFailure::Template)?.write(ctx, work, out)?,
            },
            Self::Cell { feeder, column } => out.extend_from_slice(cell(ctx, *feeder, *column)?.as_bytes()),
            Self::Random { low, span } => whole(luck::whole(ctx.random, *low, *span), out),
            Self::Uuid => luck::uuid(ctx.random, out),
            Self::Number => whole(ctx.number, out),
            Self::Session => whole(ctx.session, out),
            Self::Now(moment) => moment.write(ctx.now_unix_ns, out),
            Self::Joined(nodes) => nodes.iter().try_for_each(|node| node.write(ctx, work, out))?,
            Self::Call(call) => {
                let start = out.len();
                call.write(ctx, work, out)?;
                work.spend(out.len().saturating_sub(start))?;
            }
        }
        Ok(())
    }

    /// Its text, borrowed where possible.
    pub(crate) fn text<'b, 'c: 'b>(
        &'b self,
        ctx: &mut Context<'c>,
        work: &mut Work,
    ) -> Result<Cow<'b, str>, StepFailure> {
        match self {
            Self::Literal(text) => return Ok(Cow::Borrowed(text)),
            Self::Variable { slot, first } => match ctx.values.get(*slot as usize) {
                Some(Value::Text(text)) => return Ok(Cow::Borrowed(text)),
                Some(Value::List(_)) => {}
                Some(Value::None) | None => return first.as_ref().ok_or(StepFailure::Template)?.text(ctx, work),
            },
            Self::Cell { feeder, column } => return cell(ctx, *feeder, *column).map(Cow::Borrowed),
            _ => {}
        }
        let mut made = Vec::new();
        self.write(ctx, work, &mut made)?;
        work.spend(made.len())?;
        String::from_utf8(made).map(Cow::Owned).map_err(|_| StepFailure::Template)
    }

    /// Its value: a list if it is a variable that holds one.
    pub(crate) fn evaluate<'b, 'c: 'b>(
        &'b self,
        ctx: &mut Context<'c>,
        work: &mut Work,
    ) -> Result<NodeValue<'b>, StepFailure> {
        if let Self::Variable { slot, first } = self {
            match ctx.values.get(*slot as usize) {
                Some(Value::List(items)) => return Ok(NodeValue::List(items)),
                Some(Value::None) | None => return first.as_ref().ok_or(StepFailure::Template)?.evaluate(ctx, work),
                Some(Value::Text(_)) => {}
            }
        }
        self.text(ctx, work).map(NodeValue::Text)
    }
}

fn cell<'c>(ctx: &Context<'c>, feeder: u32, column: u32) -> Result<&'c str, StepFailure> {
    let row = ctx.rows.get(feeder as usize).copied().flatten().ok_or(StepFailure::Template)?;
    row.get(column as usize).ok_or(StepFailure::Template)
}

fn whole(number: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Writes the items with commas between them.
pub(super) fn separated(
    items: &[Box<str>],
    out: &mut Vec<u8>,
    write: impl Fn(&str, &mut Vec<u8>) -> Result<(), StepFailure>,
) -> Result<(), StepFailure> {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write(item, out)?;
    }
    Ok(())
}
