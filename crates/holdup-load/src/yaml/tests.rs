//! What is read, what is refused, and that a hostile file costs no more than its size allows.

use super::*;

#[test]
fn unknown_key_names_line_and_nearest() {
    let node = Node::parse("name: x\nload:\n  rate: 5\n  durration: 20s\n", "s.yaml").unwrap();
    let top = node.map(&["name", "load"]).unwrap();
    let error = top.need("load").unwrap().map(&["rate", "duration"]).err().unwrap();
    assert_eq!(error.to_string(), "s.yaml:4: unknown key \"durration\" in load; did you mean \"duration\"?");
}

#[test]
fn values_keep_their_text() {
    let node = Node::parse("version: 1.10\nnothing: ~\n", "s.yaml").unwrap();
    let map = node.map(&["version", "nothing"]).unwrap();
    assert_eq!(map.need("version").unwrap().text().unwrap(), "1.10");
    assert!(map.get("nothing").is_none());
}

#[test]
fn duplicate_key_and_broken_yaml_name_their_line() {
    assert_eq!(Node::parse("a: 1\nb: 2\na: 3\n", "s.yaml").unwrap_err().line, 3);
    assert!(Node::parse("a: [1, 2\nb: 3\n", "s.yaml").unwrap_err().to_string().starts_with("s.yaml:"));
    assert_eq!(Node::parse("", "s.yaml").unwrap_err().message, "the file is empty");
}

/// The deepest text that a file of 64 KiB can have, in each way of writing it.
#[test]
fn deep_nesting_is_refused_with_its_line() {
    let size = 64 << 10;
    let texts = [
        format!("name: x\ndeep: {}", "[".repeat(size)),
        format!("name: x\ndeep: {}", "{a: ".repeat(size / 4)),
        format!("name: x\n{}", "- ".repeat(10_000)),
        format!("name: x\n{}x", "? ".repeat(10_000)),
        "- ".repeat(10_000),
        (0..300).map(|level| format!("{}a:\n", " ".repeat(level))).collect(),
    ];
    for text in texts {
        let error = Node::parse(&text, "s.yaml").unwrap_err().to_string();
        assert!(error.starts_with("s.yaml:"), "{}: {error}", &text[..20]);
    }
    let error = Node::parse(&"- ".repeat(10_000), "s.yaml").unwrap_err();
    assert_eq!(error.to_string(), "s.yaml:1: values are nested deeper than 256 levels");
    let below = (0..250).map(|level| format!("{}a:\n", " ".repeat(level))).collect::<String>();
    assert!(Node::parse(&below, "s.yaml").is_ok());
}

/// Each anchor is 200 levels deep and ends in the one before.
#[test]
fn aliases_do_not_add_up_to_a_deeper_tree() {
    let mut text = "a0: &a0 x\n".to_owned();
    for number in 1..60 {
        let (open, close) = ("[".repeat(200), "]".repeat(200));
        text.push_str(&format!("a{number}: &a{number} {open}*a{}{close}\n", number - 1));
    }
    let error = Node::parse(&text, "s.yaml").unwrap_err();
    assert_eq!(error.to_string(), "s.yaml:3: values are nested deeper than 256 levels");
}

#[test]
fn aliases_do_not_multiply() {
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..12 {
        laughs.push_str(&format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(", ")));
    }
    // 32 KiB, 8,000 times.
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(32 << 10), "*a, ".repeat(8_000));
    // Each anchor holds all that is in those within it.
    let nested = format!("a: {}{}{}", "[&x ".repeat(200), "1, ".repeat(20_000), "]".repeat(200));
    for text in [laughs, long, nested] {
        let error = Node::parse(&text, "s.yaml").unwrap_err().to_string();
        assert!(error.ends_with("anchors and aliases repeat more than 16 MiB"), "{error}");
    }
    let node = Node::parse("a: &a {b: 1}\nc: *a\nd: [*a]\n", "s.yaml").unwrap();
    assert_eq!(node.to_yaml(), "a:\n  b: 1\nc:\n  b: 1\nd:\n  -\n    b: 1\n");
}

/// Where a value stands is said of each, and must not be kept with each.
#[test]
fn long_keys_do_not_multiply() {
    let text = format!("{}: [{}]\n", "k".repeat(1_000), "x, ".repeat(10_000));
    let node = Node::parse(&text, "s.yaml").unwrap();
    let items = node.entries().unwrap()[0].1.list();
    assert_eq!((items.len(), items[7].path()), (10_000, format!("{}[7]", "k".repeat(1_000))));
    let above: Vec<_> = items.iter().map(|item| item.place.as_ref().and_then(|step| step.above.clone())).collect();
    assert!(above.windows(2).all(|pair| Arc::ptr_eq(pair[0].as_ref().unwrap(), pair[1].as_ref().unwrap())));
}
