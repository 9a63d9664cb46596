//! The functions of the template language, each with its arguments. Each is one entry of the list.

use super::encode::Encoding;
use super::late::LateNames;
use super::luck::span;
use super::moment::Moment;
use super::sign::{algorithm, encoding};
use super::tree::{Call, IntegerArgument, Key, Node, Token};

/// A function of the language.
pub(super) struct Function {
    pub(super) name: &'static str,
    /// Its arguments, for messages.
    pub(super) arguments: &'static str,
    /// What they have to be, for messages; follows "takes".
    pub(super) takes: &'static str,
    pub(super) least: usize,
    pub(super) most: usize,
    /// Makes the node; none if the arguments are invalid.
    pub(super) node: Build,
}

type Build = fn(Vec<Node>, &mut LateNames<'_>) -> Option<Node>;

const fn function(
    name: &'static str,
    arguments: &'static str,
    takes: &'static str,
    (least, most): (usize, usize),
    node: Build,
) -> Function {
    Function { name, arguments, takes, least, most, node }
}

/// In the order of the documentation.
pub(super) const FUNCTIONS: &[Function] = &[
    function("uuid", "", "nothing", (0, 0), |_, _| Some(Node::Uuid)),
    function("random", "low, high", "two whole numbers, the lower first", (2, 2), |arguments, _| {
        let [low, high] = two(arguments)?;
        match (IntegerArgument::from_node(low)?, IntegerArgument::from_node(high)?) {
            (IntegerArgument::Known(low), IntegerArgument::Known(high)) => {
                Some(Node::Random { low, span: span(low, high)? })
            }
            (low, high) => Call::Random(low, high).node(),
        }
    }),
    function("random_text", "length", LENGTH, (1, 1), |arguments, _| Call::RandomText(length(arguments)?).node()),
    function("random_hex", "length", LENGTH, (1, 1), |arguments, _| Call::RandomHex(length(arguments)?).node()),
    function("pick", "a, b, ...", "texts, or one list", (1, usize::MAX), |arguments, _| {
        Call::Pick(arguments.into()).node()
    }),
    function("now", "unit", "'s', 'ms', 'us', 'ns', 'rfc3339' or 'http'", (0, 1), |arguments, _| {
        let moment = arguments.first().map_or(Some("s"), Node::literal)?;
        Moment::by_name(moment).map(Node::Now)
    }),
    function("number", "", "nothing", (0, 0), |_, _| Some(Node::Number)),
    function("session", "", "nothing", (0, 0), |_, _| Some(Node::Session)),
    function("url", "x", "a text", (1, 1), |arguments, _| encoded(Encoding::Url, arguments)),
    function("json", "x", "a text or a list", (1, 1), |arguments, _| encoded(Encoding::Json, arguments)),
    function("base64", "x", "a text", (1, 1), |arguments, _| encoded(Encoding::Base64, arguments)),
    function("base64url", "x", "a text", (1, 1), |arguments, _| encoded(Encoding::Base64Url, arguments)),
    function("hex", "x", "a text", (1, 1), |arguments, _| encoded(Encoding::Hex, arguments)),
    function("lower", "x", "a text", (1, 1), |arguments, _| encoded(Encoding::Lower, arguments)),
    function("upper", "x", "a text", (1, 1), |arguments, _| encoded(Encoding::Upper, arguments)),
    function("sha256", "x", "a text", (1, 1), |arguments, _| Call::Sha256(one(arguments)?).node()),
    function("hmac", "algorithm, key, text, form", HMAC, (3, 4), |arguments, _| {
        let mut arguments = arguments.into_iter();
        let algorithm = algorithm(arguments.next()?.literal()?)?;
        let (key, text) = (arguments.next()?, arguments.next()?);
        let encoding = arguments.next().map_or(Some(Encoding::Hex), |form| encoding(form.literal()?))?;
        Call::Hmac { key: Key::new(algorithm, key), text, encoding }.node()
    }),
    function("jwt", "key, claims, algorithm", JWT, (2, 3), |arguments, _| {
        let mut arguments = arguments.into_iter();
        let (key, claims) = (arguments.next()?, arguments.next()?);
        let algorithm = arguments.next();
        Call::Jwt(Token::new(key, claims, algorithm.as_ref().map_or(Some("HS256"), Node::literal)?)?).node()
    }),
    function("length", "x", "a list or a text", (1, 1), |arguments, _| Call::Length(one(arguments)?).node()),
    function("item", "list, index", "a list and a whole number", (2, 2), |arguments, _| {
        let [list, index] = two(arguments)?;
        Call::Item(list, IntegerArgument::from_node(index)?).node()
    }),
    function("add", "a, b", "two numbers", (2, 2), |arguments, _| {
        let [a, b] = two(arguments)?;
        let number = |node: &Node| {
            node.literal().is_none_or(|text| crate::script::number::Number::parse(text.as_bytes()).is_some())
        };
        if number(&a) && number(&b) { Call::Add(a, b).node() } else { None }
    }),
    function("pad", "x, length", "a text, and a whole number from 0 to 64", (2, 2), |arguments, _| {
        let [text, length] = two(arguments)?;
        let length = length.literal()?.parse().ok().filter(|length| *length <= PAD_MAX)?;
        Call::Pad(text, length).node()
    }),
    function("default", "x, otherwise", "a value that may be missing, and a text", (2, 2), |arguments, _| {
        let [node, otherwise] = two(arguments)?;
        Call::Default(node, otherwise).node()
    }),
    function("template", "x", "a text", (1, 1), |arguments, late| {
        let text = one(arguments)?;
        Call::Template { text, late: late.parser() }.node()
    }),
];

/// Longest text that `pad` makes, characters: a digest of 256 bits has 64.
const PAD_MAX: u8 = 64;

const LENGTH: &str = "a whole number from 0 to 1048576";
const HMAC: &str =
    "'sha1', 'sha256', 'sha384' or 'sha512', a key, a text, and optionally 'hex', 'base64' or 'base64url'";
const JWT: &str = "a key, a JSON object, and optionally 'HS256', 'HS384' or 'HS512'";

fn one(arguments: Vec<Node>) -> Option<Node> {
    arguments.into_iter().next()
}

fn two(arguments: Vec<Node>) -> Option<[Node; 2]> {
    arguments.try_into().ok()
}

fn encoded(encoding: Encoding, arguments: Vec<Node>) -> Option<Node> {
    Call::Encode(encoding, one(arguments)?).node()
}

fn length(arguments: Vec<Node>) -> Option<IntegerArgument> {
    let length = IntegerArgument::from_node(one(arguments)?)?;
    let fits = !matches!(length, IntegerArgument::Known(known) if !(0..=1 << 20).contains(&known));
    fits.then_some(length)
}
