//! What the functions of a template write.

use super::encode::{Encoding, hex};
use super::luck;
use super::node::{NodeValue, Work, separated};
use super::tree::{Call, IntegerArgument, LateParser, Node};
use crate::script::number::Number;
use crate::script::{Context, Random, StepFailure};

/// Deepest nesting of texts expanded by `template`.
const MAX_DEPTH: u8 = 8;
/// Largest expanded text, 1 MiB.
const MAX_EXPANDED_BYTES: usize = 1 << 20;
/// Least cost of expanding a text, out of the bytes that functions may make.
const EXPANSION_BYTES: usize = 1024;

impl Call {
    /// The node for this call: a literal, if it always writes the same. None if the arguments are
    /// invalid.
    pub(super) fn node(self) -> Option<Node> {
        if !self.is_constant() {
            return Some(Node::Call(Box::new(self)));
        }
        let mut random = Random::new(0);
        let mut ctx = Context { values: &[], rows: &[], random: &mut random, now_unix_ns: 0, number: 0, session: 0 };
        let mut out = Vec::new();
        self.write(&mut ctx, &mut Work::new(), &mut out).ok()?;
        String::from_utf8(out).ok().map(|text| Node::Literal(text.into()))
    }

    fn is_constant(&self) -> bool {
        let known = |node: &Node| node.literal().is_some();
        match self {
            Self::Random(..) | Self::RandomText(_) | Self::RandomHex(_) | Self::Template { .. } => false,
            Self::Pick(nodes) => nodes.len() == 1 && known(&nodes[0]),
            Self::Encode(_, node) | Self::Sha256(node) | Self::Length(node) | Self::Item(node, _) => known(node),
            Self::Hmac { key, text, .. } => key.is_known() && known(text),
            Self::Jwt(token) => token.is_constant(),
            Self::Add(a, b) => known(a) && known(b),
            Self::Default(node, _) | Self::Pad(node, _) => known(node),
        }
    }

    pub(super) fn write(&self, ctx: &mut Context<'_>, work: &mut Work, out: &mut Vec<u8>) -> Result<(), StepFailure> {
        match self {
            Self::Random(low, high) => {
                let (low, high) = (low.value(ctx, work)?, high.value(ctx, work)?);
                let span = luck::span(low, high).ok_or(StepFailure::Template)?;
                Node::Random { low, span }.write(ctx, work, out)?;
            }
            Self::RandomText(length) => {
                let length = random_length(length.value(ctx, work)?, work)?;
                luck::letters(ctx.random, length, out);
            }
            Self::RandomHex(length) => {
                let length = random_length(length.value(ctx, work)?, work)?;
                luck::hex(ctx.random, length, out);
            }
            Self::Pick(nodes) => pick(nodes, ctx, work, out)?,
            Self::Encode(encoding, node) => match (encoding, node.evaluate(ctx, work)?) {
                (_, NodeValue::Text(text)) => encoding.write(text.as_bytes(), out)?,
                (Encoding::Json, NodeValue::List(items)) => {
                    out.push(b'[');
                    separated(items, out, |item, out| encoding.write(item.as_bytes(), out))?;
                    out.push(b']');
                }
                (_, NodeValue::List(_)) => encoding.write(node.text(ctx, work)?.as_bytes(), out)?,
            },
            Self::Sha256(node) => {
                let digest = ring::digest::digest(&ring::digest::SHA256, node.text(ctx, work)?.as_bytes());
                out.extend(digest.as_ref().iter().flat_map(|&byte| hex(byte)));
            }
            Self::Hmac { key, text, encoding } => {
                let text = text.text(ctx, work)?;
                encoding.write(key.sign(ctx, work, text.as_bytes())?.as_ref(), out)?;
            }
            Self::Jwt(token) => token.write(ctx, work, out)?,
            Self::Length(node) => {
                let length = match node.evaluate(ctx, work)? {
                    NodeValue::Text(text) => text.chars().count(),
                    NodeValue::List(items) => items.len(),
                };
                out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
            }
            Self::Item(list, index) => {
                let index = index.value(ctx, work)?;
                let NodeValue::List(items) = list.evaluate(ctx, work)? else { return Err(StepFailure::Template) };
                out.extend_from_slice(item(items, index).ok_or(StepFailure::Template)?.as_bytes());
            }
            Self::Add(a, b) => {
                let mut number = |node: &Node| -> Result<Number, StepFailure> {
                    Number::parse(node.text(ctx, work)?.as_bytes()).ok_or(StepFailure::Template)
                };
                number(a)?.add(number(b)?).ok_or(StepFailure::Template)?.write(out);
            }
            Self::Pad(node, length) => pad(&node.text(ctx, work)?, *length, out),
            Self::Default(node, otherwise) => {
                let start = out.len();
                match node.write(ctx, work, out) {
                    Err(StepFailure::Template) => {
                        out.truncate(start);
                        otherwise.write(ctx, work, out)?;
                    }
                    result => result?,
                }
            }
            Self::Template { text, late } => {
                let text = text.text(ctx, work)?;
                expand(&text, late, ctx, work, out)?;
            }
        }
        Ok(())
    }
}

/// The item at `index`, which counts from the end if it is negative.
fn item(items: &[Box<str>], index: i64) -> Option<&str> {
    let from_end = if index < 0 { items.len() as i64 } else { 0 };
    items.get(usize::try_from(index.saturating_add(from_end)).ok()?).map(AsRef::as_ref)
}

impl IntegerArgument {
    /// None if it is known not to be an integer.
    pub(super) fn from_node(node: Node) -> Option<Self> {
        match node.literal() {
            Some(text) => text.parse().ok().map(Self::Known),
            None => Some(Self::Text(node)),
        }
    }

    fn value(&self, ctx: &mut Context<'_>, work: &mut Work) -> Result<i64, StepFailure> {
        match self {
            Self::Known(number) => Ok(*number),
            Self::Text(node) => node.text(ctx, work)?.parse().map_err(|_| StepFailure::Template),
        }
    }
}

/// The length of a random text. Too long a text is refused before it is made.
fn random_length(length: i64, work: &Work) -> Result<usize, StepFailure> {
    usize::try_from(length).ok().filter(|length| *length <= work.left).ok_or(StepFailure::Template)
}

/// Writes `text` with zeros before it, if it has fewer characters than `length`.
fn pad(text: &str, length: u8, out: &mut Vec<u8>) {
    let missing = usize::from(length).saturating_sub(text.chars().count());
    out.extend(std::iter::repeat_n(b'0', missing));
    out.extend_from_slice(text.as_bytes());
}

fn pick(nodes: &[Node], ctx: &mut Context<'_>, work: &mut Work, out: &mut Vec<u8>) -> Result<(), StepFailure> {
    if let [one] = nodes {
        match one.evaluate(ctx, work)? {
            NodeValue::Text(text) => out.extend_from_slice(text.as_bytes()),
            NodeValue::List(items) => {
                let item = items.get(ctx.random.below(items.len() as u64) as usize).ok_or(StepFailure::Template)?;
                out.extend_from_slice(item.as_bytes());
            }
        }
        return Ok(());
    }
    let chosen = ctx.random.below(nodes.len() as u64) as usize;
    nodes.get(chosen).ok_or(StepFailure::Template)?.write(ctx, work, out)
}

/// Renders a template whose text is known only now.
fn expand(
    text: &str,
    late: &LateParser,
    ctx: &mut Context<'_>,
    work: &mut Work,
    out: &mut Vec<u8>,
) -> Result<(), StepFailure> {
    work.spend(text.len().max(EXPANSION_BYTES))?;
    if work.depth == MAX_DEPTH || text.len() > MAX_EXPANDED_BYTES {
        return Err(StepFailure::Template);
    }
    let (nodes, left) = (late.parse)(&late.names, text, work.left);
    work.left = work.left.min(left);
    let start = out.len();
    work.depth += 1;
    let result = nodes.map_err(|_| StepFailure::Template).and_then(|nodes| {
        nodes.iter().try_for_each(|node| {
            node.write(ctx, work, out)?;
            if out.len() - start > MAX_EXPANDED_BYTES { Err(StepFailure::Template) } else { Ok(()) }
        })
    });
    work.depth -= 1;
    result
}
