//! What templates render, and what is said of those that are none.

use crate::script::tests::world::{SECRET, World};
use crate::script::{Names, Random, StepFailure, Template, Value};

/// Pairs of a template and what it renders.
fn render_all(pairs: &[(&str, &str)]) {
    let mut world = World::new();
    for (text, rendered) in pairs {
        assert_eq!(world.render(text).as_deref(), Ok(*rendered), "{text}");
    }
}

#[test]
fn names_of_every_kind() {
    render_all(&[
        ("", ""),
        ("plain $ and $$ and $x and {}", "plain $ and $$ and $x and {}"),
        ("a $${b} $$${token}", "a ${b} $${token}"),
        ("${token}/${ user-id }/${größe}", "t0k/1/L"),
        ("${ids}", "a,b\",ü"),
        ("${accounts.email} ${accounts.'First Name'}", "a@example.org Ann"),
        ("${base}/orders", "/api/acme/orders"),
        ("${tries}", "0"),
        ("${secret.PASSWORD} ${login}", "hunter2 user:hunter2"),
        ("${env.STAGE} ${env.STAGE:-x} ${env.EMPTY:-a b} ${env.NONE:-} ${env.EMPTY}", "blue blue a b  "),
        ("${upper(env.NONE:-x)}${upper(env.NONE:-'a,)}')}", "XA,)}"),
        ("${'text'}${\"it's\"}${12}${-1.50}", "textit's12-1.50"),
    ]);
}

#[test]
fn functions_of_texts() {
    render_all(&[
        ("${url('a b/ü&=~')}", "a%20b%2F%C3%BC%26%3D~"),
        (r#"${json('say "hi"\\')}${json("a\nb")}"#, r#""say \"hi\"\\""a\nb""#),
        ("${json(ids)}", r#"["a","b\"","ü"]"#),
        ("${json('\u{1}\t\r')}", r#""\u0001\t\r""#),
        ("${base64('user:pass?')} ${base64('a')}", "dXNlcjpwYXNzPw== YQ=="),
        ("${base64url('??>')} ${base64url('a')}", "Pz8- YQ"),
        ("${hex('aü')}", "61c3bc"),
        ("${lower('ÄB')} ${upper('äb')} ${lower('AB')} ${upper('ab')}", "äb ÄB ab AB"),
        ("${sha256('abc')}", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ("${length(ids)} ${length('aü')} ${length(alias)}", "3 2 3"),
        ("${item(ids, 0)}${item(ids, -1)}${item(ids, user-id)}", "aüb\""),
        ("${add(1, 2)} ${add(user-id, -3)} ${add(0.5, '1')} ${add(tries, 1)}", "3 -2 1.5 1"),
        ("${pad(7, 3)} ${pad(token, 2)} ${pad(add(user-id, 1), 4)}|${pad('', 0)}", "007 t0k 0002|"),
        ("${default(nothing, 'y')} ${default(token, 'y')} ${default(item(ids, 9), add(1, 1))}", "y t0k 2"),
        ("${default(add(token, 1), '')}", ""),
        ("${ upper ( lower( 'Ab' ) ) }", "AB"),
        ("${template('${token}-$${x}')}${template(\"${upper('a')}${base}\")}", "t0k-${x}A/api/acme"),
        ("${template(tenant)}", "acme"),
    ]);
}

/// RFC 2202 and RFC 4231, test case 2, and what Python's `hmac` makes of the others.
#[test]
fn signatures() {
    const DATA: &str = "'what do ya want for nothing?'";
    for (arguments, tag) in [
        ("'sha1', 'Jefe'", "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
        ("'sha256', 'Jefe'", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
        (
            "'sha384', 'Jefe'",
            "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
        ),
        (
            "'sha512', 'Jefe'",
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
        ),
    ] {
        render_all(&[(&format!("${{hmac({arguments}, {DATA})}}"), tag)]);
    }
    render_all(&[
        ("${hmac('sha1', 'Jefe', 'what do ya want for nothing?', 'base64')}", "7/zfauXrL6LSdBbV8YTfnCWafHk="),
        (
            "${hmac('sha256', 'Jefe', 'what do ya want for nothing?', 'base64url')}",
            "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM",
        ),
        (
            "${jwt('key', claims)}",
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxIn0.pHaus62nD9DrNbTCRTVOOhnRbbXZnL031tfLEk_qP5s",
        ),
        (
            r#"${jwt('key', '{"sub":"1"}', 'HS384')}"#,
            "eyJhbGciOiJIUzM4NCIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxIn0.cBx83pbvYkKTu1VGyIRSH9-mmJc2XD4KRXJnjg8tYqmFEshGH4jwwC4WP37uCphM",
        ),
        (
            r#"${jwt("key", '{"sub":"1"}', 'HS512')}"#,
            "eyJhbGciOiJIUzUxMiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxIn0.CA-73TGA0HEAFyWlr2QiQdR1kzYmKtI6jk2ugzOqCUqSdsPb90VHuGUvud-TWkuN97hVjickxjy9_csx_-oHzw",
        ),
    ]);
    let mut world = World::new();
    let known = world.render("${hmac('sha256', 't0k', token)}");
    assert_eq!(known, world.render("${hmac('sha256', token, 't0k')}"), "a key that is known only now");
}

#[test]
fn the_present_and_the_numbers() {
    render_all(&[
        ("${now()} ${now('s')} ${now('ms')}", "1769849377 1769849377 1769849377250"),
        ("${now('us')} ${now('ns')}", "1769849377250000 1769849377250000000"),
        ("${now('rfc3339')}, ${now('http')}", "2026-01-31T08:49:37.250Z, Sat, 31 Jan 2026 08:49:37 GMT"),
        ("${number()}/${session()}", "7/3"),
    ]);
}

#[test]
fn chance_stays_within_its_bounds_and_reaches_them() {
    let mut world = World::new();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let numbers = world.render("${random(-1, 2)} ${random(user-id, 3)}").expect("numbers");
        let (fixed, given) = numbers.split_once(' ').expect("two");
        assert!((1..=3).contains(&given.parse::<i64>().expect("a number")));
        seen.insert(fixed.to_owned());
        seen.insert(world.render("p${pick('x', token)}").expect("one of two"));
        seen.insert(world.render("i${pick(ids)}").expect("an item"));
    }
    let all = ["-1", "0", "1", "2", "ia", "ib\"", "iü", "pt0k", "px"];
    assert_eq!(seen, all.map(str::to_owned).into());
    let extremes = format!("${{random({}, {})}}", i64::MIN, i64::MAX);
    let numbers: Vec<i64> = (0..9).map(|_| world.render(&extremes).expect("one").parse().expect("a number")).collect();
    assert!(numbers.iter().any(|n| *n < 0) && numbers.iter().any(|n| *n > 0), "{numbers:?}");
}

#[test]
fn random_texts_and_uuids() {
    let mut world = World::new();
    for length in [0, 1, 8, 9, 100] {
        let text = world.render(&format!("${{random_text({length})}}")).expect("a text");
        assert!(text.len() == length && text.bytes().all(|b| b.is_ascii_alphanumeric()), "{text}");
        let text = world.render(&format!("${{random_hex({length})}}")).expect("a text");
        assert!(text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')), "{text}");
    }
    let letters: std::collections::BTreeSet<u8> =
        world.render("${random_text(5000)}").expect("a text").bytes().collect();
    assert_eq!(letters.len(), 62);
    let (a, b) = (world.render("${uuid()}").expect("one"), world.render("${uuid()}").expect("another"));
    assert_ne!(a, b);
    for uuid in [a, b] {
        let parts: Vec<&str> = uuid.split('-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{uuid}");
        assert!(parts[2].starts_with('4') && parts[3].starts_with(['8', '9', 'a', 'b']), "{uuid}");
        assert!(parts.concat().bytes().all(|b| b.is_ascii_hexdigit()));
    }
}

#[test]
fn the_same_seed_writes_the_same() {
    const TEXT: &str = "${uuid()}${random(1, 5000)}${random_text(9)}${random_hex(9)}${pick(1, 2, 3)}";
    let (mut one, mut other) = (World::new(), World::new());
    assert_eq!(one.render(TEXT), other.render(TEXT));
    assert_ne!(one.render(TEXT), World::new().render(TEXT));
}

#[test]
fn what_has_no_value_sends_nothing() {
    let mut world = World::new();
    for text in [
        "x${nothing}",
        "${words.value}",
        "${words}",
        "${item(ids, 3)}",
        "${item(ids, -4)}",
        "${item(ids, token)}",
        "${item(token, 0)}",
        "${add(token, 1)}",
        "${random(9, user-id)}",
        "${random_text(token)}",
        "${random_hex(add(user-id, -2))}",
        "${upper(nothing)}",
        "${default(nothing, nothing)}",
        "${template(nothing)}",
        "${template('${')}",
        "${template('${unknown}')}",
    ] {
        assert_eq!(world.render(text), Err(StepFailure::Template), "{text}");
    }
    world.values[2] = Value::List(Box::default());
    assert_eq!(world.render("${pick(ids)}"), Err(StepFailure::Template), "an empty list has no item to pick");
}

#[test]
fn slips_are_told_with_the_nearest_name() {
    let world = World::new();
    for (text, at, message) in [
        ("${tokne}", 2, r#"unknown name "tokne"; did you mean "token"?"#),
        ("ab ${ acounts.email}", 6, r#"unknown name "acounts.email"; did you mean "accounts.email"?"#),
        ("${accounts.emial}", 11, r#"the feeder accounts has no column "emial"; did you mean "email"?"#),
        ("${accounts.zip}", 11, r#"the feeder accounts has no column "zip"; there are: email, First Name"#),
        ("${token.id}", 2, "token is a variable and has no columns; write ${token}"),
        ("${rnadom(1, 2)}", 2, "unknown function rnadom(); did you mean random()?"),
        ("${base64('${token}:x')}", 9, "a text in quotes is not filled in; put it into vars, and use its name here"),
        ("${uuid}", 2, "uuid is a function: write uuid()"),
        ("${uiud}", 2, r#"unknown name "uiud"; did you mean uuid()?"#),
        ("${env.HOST}", 2, "the environment variable HOST is not set; set it, or give a default: env.HOST:-text"),
        ("${random(5, 1)}", 2, "random(low, high) takes two whole numbers, the lower first"),
        ("${random(1)}", 2, "random(low, high) takes two whole numbers, the lower first"),
        ("${random('a', 1)}", 2, "random(low, high) takes two whole numbers, the lower first"),
        ("${random_text(2000000)}", 2, "random_text(length) takes a whole number from 0 to 1048576"),
        ("${uuid(1)}", 2, "uuid() takes nothing"),
        ("${now('m')}", 2, "now(unit) takes 's', 'ms', 'us', 'ns', 'rfc3339' or 'http'"),
        ("${upper(upper(1, 2))}", 8, "upper(x) takes a text"),
        ("${item('a', 0)}", 2, "item(list, index) takes a list and a whole number"),
        ("${add('a', user-id)}", 2, "add(a, b) takes two numbers"),
        ("${pad(7, 65)}", 2, "pad(x, length) takes a text, and a whole number from 0 to 64"),
        (
            "${jwt('k', 'claims')}",
            2,
            "jwt(key, claims, algorithm) takes a key, a JSON object, and optionally 'HS256', 'HS384' or 'HS512'",
        ),
        ("a ${token", 2, "${ without a closing }; write $${ for a literal ${"),
        ("${token + 1}", 8, "expected } and not \"+\""),
        ("${}", 2, "expected a name, a function or a quoted text, found \"}\""),
        ("${", 2, "expected a name, a function or a quoted text, found its end"),
        ("${'a}", 2, "a quoted text has no closing quote"),
        ("${upper(token", 2, "( without its )"),
        ("${upper(token;)}", 13, "expected , or ) and not \";\""),
    ] {
        let slip = world.slip(text);
        assert_eq!((slip.message.as_str(), slip.at), (message, at), "{text}");
    }
    let md5 = world.slip("${hmac('md5', 'k', 't')}").message;
    assert!(md5.starts_with("hmac(algorithm, key, text, form) takes 'sha1', 'sha256'"), "{md5}");
    let unset = world.slip("${secret.PASWORD}").message;
    assert!(unset.contains("did you mean secret.PASSWORD?") && unset.contains("name PASWORD under secrets"), "{unset}");
    let all = Template::parse("${x}", &Names::default()).expect_err("nothing is known").message;
    assert_eq!(all, r#"unknown name "x""#);
}

#[test]
fn vars_are_followed_to_their_slips_and_circles() {
    let mut world = World::new();
    for (name, text) in [
        ("a", "1${b}"),
        ("b", "${upper(c)}"),
        ("c", "${a}"),
        ("self", "${self}"),
        ("p", "${q}"),
        ("q", "${p}"),
        ("broken", "${tokne}"),
        ("outer", "x ${broken}"),
    ] {
        world.names.text(name, text);
    }
    for (text, at, message) in [
        ("x${a}", 3, "vars a, b and c use each other (a -> b -> c -> a)"),
        ("${p}", 2, "vars p and q use each other (p -> q -> p)"),
        ("${self}", 2, "var self uses itself"),
        ("ab${ outer }", 5, r#"in var broken: unknown name "tokne"; did you mean "token"?"#),
    ] {
        let slip = world.slip(text);
        assert_eq!((slip.message.as_str(), slip.at), (message, at), "{text}");
    }
}

#[test]
fn what_multiplies_is_bounded() {
    let mut world = World::new();
    world.names.text("x0", &"laugh ".repeat(10));
    for i in 1..20 {
        world.names.text(&format!("x{i}"), &format!("${{x{}}}", i - 1).repeat(10));
    }
    assert!(world.slip("${x19}").message.contains("1 MiB"));
    for i in 0..40 {
        world.names.text(&format!("y{i}"), &format!("${{y{}}}", i + 1));
    }
    assert_eq!(world.slip("${y0}").message, "in var y31: nested deeper than 32");
    let deep = format!("${{{}1{}}}", "upper(".repeat(33), ")".repeat(33));
    assert_eq!(world.slip(&deep).message, "nested deeper than 32");
    let doubled = format!("${{{}random_text(100){}}}", "hex(".repeat(30), ")".repeat(30));
    assert_eq!(world.render(&doubled), Err(StepFailure::Template));
    let long = "${random_text(1000000)}".repeat(5);
    assert_eq!(world.render(&long), Err(StepFailure::Template));
}

#[test]
fn a_text_that_expands_itself_ends() {
    let mut world = World::new();
    assert_eq!(world.render("${template(again)}"), Err(StepFailure::Template));
    // Each step of the stair expands the next: eight are allowed, whatever the last one holds.
    let stair = |steps: usize| {
        let step =
            |i: usize| if i + 1 < steps { format!("${{template(item(ids, {}))}}", i + 1) } else { "top".to_owned() };
        Value::List((0..steps).map(|i| step(i).into()).collect())
    };
    world.values[2] = stair(8);
    assert_eq!(world.render("${template(item(ids, 0))}").as_deref(), Ok("top"));
    world.values[2] = stair(9);
    assert_eq!(world.render("${template(item(ids, 0))}"), Err(StepFailure::Template));
    // One that catches its own failure would else go on for 50^8 steps.
    world.values[5] = "${default(template(again), 'x')}".repeat(50).as_str().into();
    assert_eq!(world.render("${template(again)}"), Err(StepFailure::Template));
    world.values[5] = Value::from("${token}".repeat(100).as_str());
    world.values[0] = Value::from("x".repeat(20_000).as_str());
    assert_eq!(world.render("${template(again)}"), Err(StepFailure::Template), "more than 1 MiB");
}

/// On a thread of a test, whose stack is as large as that of a load loop.
#[test]
fn the_deepest_of_all_fits_a_stack() {
    let mut world = World::new();
    world.values[5] = Value::from(format!("${{{}template(again){}}}", "upper(".repeat(30), ")".repeat(30)).as_str());
    assert_eq!(world.render("${template(again)}"), Err(StepFailure::Template));
}

#[test]
fn captured_text_is_data() {
    let mut world = World::new();
    world.values[0] = Value::from("${secret.PASSWORD} $${");
    assert_eq!(world.render("${token}").as_deref(), Ok("${secret.PASSWORD} $${"));
    assert_eq!(world.render("${upper(token)}").as_deref(), Ok("${SECRET.PASSWORD} $${"));
    for text in ["${secret.PASSWORD}", "${env.STAGE}", "${login}"] {
        world.values[0] = Value::from(text);
        assert_eq!(
            world.render("${template(token)}"),
            Err(StepFailure::Template),
            "what was captured asks for secrets"
        );
    }
}

#[test]
fn secrets_are_in_no_debug_output_and_no_error() {
    let world = World::new();
    let mut said = format!("{:?}", world.names);
    for text in ["${secret.PASSWORD}", "${login}", "${base64(login)}", "${hmac('sha1', secret.PASSWORD, token)}"] {
        let template = world.parse(text).expect("a template");
        assert!(template.is_secret(), "{text}");
        said += &format!("{template:?}");
    }
    assert!(!world.parse("${env.STAGE}${token}").expect("a template").is_secret());
    for text in
        ["${add(secret.PASSWORD, 1)}", "${jwt('k', secret.PASSWORD)}", "${login + 1}", "${now(secret.PASSWORD)}"]
    {
        said += &format!("{:?}", world.slip(text));
    }
    assert!(!said.contains(SECRET) && !said.contains("blue"), "{said}");
}

#[test]
fn constants_are_known_when_read() {
    let world = World::new();
    for (text, constant) in [
        ("", Some("")),
        ("a $${", Some("a ${")),
        ("${base}/x", Some("/api/acme/x")),
        ("Basic ${base64(login)}", Some("Basic dXNlcjpodW50ZXIy")),
        ("${upper(add(1, 2))}${default('a', token)}${pick('z')}", Some("3az")),
        ("${jwt('k', '{}')}${sha256('a')}${length('ab')}", None),
        ("${uuid()}", None),
        ("${random_text(3)}", None),
        ("${tries}", None),
        ("${template('a')}", None),
    ] {
        let template = world.parse(text).expect("a template");
        match template.constant() {
            Some(known) if text.contains("jwt") => assert!(known.starts_with("eyJ") && known.ends_with('2')),
            known => assert_eq!(known, constant, "{text}"),
        }
    }
}

#[test]
fn what_it_uses_is_known() {
    let world = World::new();
    let text = "${words}${upper(accounts.email)}${accounts.email}${token}${item(alias, user-id)}${token}";
    let template = world.parse(text).expect("a template");
    assert_eq!(template.feeders(), [0, 1]);
}

#[test]
fn a_list_stays_one_where_it_is_all() {
    let mut world = World::new();
    for (text, value) in [
        ("${ids}", world.values[2].clone()),
        ("${alias}", world.values[2].clone()),
        ("${ids} ", Value::from("a,b\",ü ")),
        ("${token}", Value::from("t0k")),
    ] {
        let template = world.parse(text).expect("a template");
        assert_eq!(world.with(|ctx| template.value(ctx)), Ok(value), "{text}");
    }
    world.values[4] = Value::from("5");
    assert_eq!(world.render("${tries}").as_deref(), Ok("5"), "a var is what its variable begins with");
}

/// Thousands of texts made of the language's own words: none may panic, and what fails writes nothing.
#[test]
fn any_text_is_refused_or_rendered() {
    const WORDS: &[&str] = &[
        "${",
        "}",
        "$${",
        "$",
        "(",
        ")",
        ",",
        "'",
        "\"",
        "\\",
        ".",
        " ",
        ":-",
        "-",
        "1",
        "-9",
        "0.5",
        "ü",
        "x",
        "token",
        "ids",
        "nothing",
        "again",
        "accounts",
        "email",
        "words",
        "secret",
        "PASSWORD",
        "env",
        "STAGE",
        "base",
        "claims",
        "uuid()",
        "number()",
        "now(",
        "random(",
        "random_text(",
        "random_hex(",
        "pick(",
        "url(",
        "json(",
        "base64(",
        "hex(",
        "upper(",
        "sha256(",
        "hmac('sha1',",
        "jwt('k',",
        "length(",
        "item(",
        "add(",
        "pad(",
        "default(",
        "template(",
    ];
    let (mut world, mut random, mut parsed) = (World::new(), Random::new(4), 0);
    for round in 0..15_000 {
        let open = round % 2 == 0;
        let mut text = if open { "${".to_owned() } else { String::new() };
        let mut calls = 0;
        for _ in 0..=random.below(8) {
            let word = WORDS[random.below(WORDS.len() as u64) as usize];
            calls += usize::from(word.contains('(') && !word.contains(')'));
            text += word;
        }
        if open {
            text += &")".repeat(calls);
            text += "}";
        }
        let Ok(template) = world.parse(&text) else { continue };
        parsed += 1;
        world.values[0] = Value::from(text.as_str());
        let mut out = b"kept".to_vec();
        let result = world.with(|ctx| template.render(ctx, &mut out));
        assert!(std::str::from_utf8(&out).is_ok_and(|out| out.starts_with("kept")), "{text}");
        assert!(result.is_ok() || out == b"kept", "{text}");
        if let Some(constant) = template.constant() {
            assert_eq!(&out[4..], constant.as_bytes(), "{text}");
        }
    }
    assert!(parsed > 500, "only {parsed} were templates");
}
