//! The attribute of `holdup-witness`, which has to be a crate of its own. It knows no more of Rust than that a function
//! ends with its body.

#![forbid(unsafe_code)]

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// Makes the body of a test an attempt beside a witness of the machine, by `holdup_witness::judge`: `#[judged]` below
/// `#[test]`, or with limits that are no ordinary stalls, `#[judged(SECOND_BY_SECOND)]`. The function takes and returns nothing.
#[proc_macro_attribute]
pub fn judged(limits: TokenStream, test: TokenStream) -> TokenStream {
    let limits = if limits.is_empty() { "STALLS".to_owned() } else { limits.to_string() };
    let mut tokens: Vec<TokenTree> = test.into_iter().collect();
    let name = tokens.windows(2).find(|two| two[0].to_string() == "fn").map(|two| two[1].to_string());
    let (Some(name), Some(body @ TokenTree::Group(_))) = (name, tokens.pop()) else {
        return parse("compile_error!(\"judged is for functions\");");
    };
    let mut arguments =
        parse(&format!("::core::concat!(::core::module_path!(), \"::{name}\"), &::holdup_witness::{limits}, ||"));
    arguments.extend([body]);
    let mut call = parse("::holdup_witness::judge");
    call.extend([TokenTree::Group(Group::new(Delimiter::Parenthesis, arguments))]);
    tokens.push(TokenTree::Group(Group::new(Delimiter::Brace, call)));
    tokens.into_iter().collect()
}

/// Our own words, which are Rust.
fn parse(text: &str) -> TokenStream {
    text.parse().unwrap_or_default()
}
