//! `holdup init`: writes a first scenario, whose comments show further options.

use std::path::{Path, PathBuf};

use holdup_load::scenario::Target;

use super::import::write_new;
use crate::failure::Failure;

/// Write a commented scenario to start from
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  holdup init
  holdup init --url http://127.0.0.1:3000/products
  holdup init checkout.yaml --kind session --url http://127.0.0.1:3000
  holdup init - --kind postgres --url postgres://app@127.0.0.1:5432/shop

A JMeter plan, a HAR file or an OpenAPI description is a better start: holdup import scenario FILE")]
pub struct Args {
    /// File to write; - is standard output
    #[arg(value_name = "FILE", default_value = "scenario.yaml")]
    file: PathBuf,

    /// Target of the load
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// Kind of scenario: single requests, sessions with a login, or database statements
    #[arg(long, value_name = "KIND", value_enum, default_value_t = Kind::Http)]
    kind: Kind,

    /// Replace an existing file
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    Http,
    Session,
    Mysql,
    Postgres,
    Mongodb,
}

pub fn run(args: Args) -> Result<(), Failure> {
    let text = text(args.kind, args.url.as_deref())?;
    if args.file == Path::new("-") {
        crate::terminal::print(&text);
        return Ok(());
    }
    write_new(&args.file, &text, args.force)?;
    let name = args.file.display();
    errln!("wrote {name}; next: holdup run {name} --check");
    Ok(())
}

/// The scenario's text.
fn text(kind: Kind, url: Option<&str>) -> Result<String, Failure> {
    let wrong = |why: String| Failure::Unusable(format!("--url: {why}"));
    let (template, default) = match kind {
        Kind::Http => (HTTP, "http://127.0.0.1:8080/"),
        Kind::Session => (SESSION, "http://127.0.0.1:8080/"),
        Kind::Mysql => (STATEMENTS, "mysql://app@127.0.0.1:3306/shop"),
        Kind::Postgres => (STATEMENTS, "postgres://app@127.0.0.1:5432/shop"),
        Kind::Mongodb => (COMMANDS, "mongodb://app@127.0.0.1:27017/shop"),
    };
    let url = url.unwrap_or(default);
    let (target, path) = match kind {
        Kind::Http | Kind::Session => {
            let (target, path) = Target::parse(url).map_err(wrong)?;
            holdup_load::scenario::check_path(&path).map_err(wrong)?;
            (target.url(), path)
        }
        Kind::Mysql | Kind::Postgres | Kind::Mongodb => (database(kind, url).map_err(wrong)?, String::new()),
    };
    let blank = match kind {
        Kind::Postgres => "$1",
        _ => "?",
    };
    // In YAML a path that begins with / needs quotes only for characters that open a comment or a
    // key.
    let path = if path.contains([' ', '#', ':', '\'', '"']) {
        format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        path
    };
    Ok(template.replace("@TARGET", &target).replace("@PATH", &path).replace("@BLANK", blank))
}

/// Checks a database's address: a password in it would end up in the file.
fn database(kind: Kind, url: &str) -> Result<String, String> {
    let schemes: &[&str] = match kind {
        Kind::Mysql => &["mysql", "mariadb"],
        Kind::Mongodb => &["mongodb"],
        _ => &["postgres", "postgresql"],
    };
    let example = format!("use {}://user@host:port/database", schemes[0]);
    let (scheme, rest) = url.split_once("://").ok_or_else(|| example.clone())?;
    if !schemes.contains(&scheme) || rest.is_empty() || rest.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(example);
    }
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':')) {
        return Err(format!(
            "a password does not belong in a file; {example}, and set the password in an environment variable"
        ));
    }
    Ok(url.to_owned())
}

const HTTP: &str = include_str!("init/http.yaml");
const SESSION: &str = include_str!("init/session.yaml");
const STATEMENTS: &str = include_str!("init/statements.yaml");
const COMMANDS: &str = include_str!("init/commands.yaml");

#[cfg(test)]
mod tests {
    use holdup_load::scenario::Scenario;

    use super::*;

    #[test]
    fn written_scenarios_can_be_read() {
        for (kind, url) in [
            (Kind::Http, None),
            (Kind::Http, Some("https://shop.test:8443/a?b=c:d#e")),
            (Kind::Session, None),
            (Kind::Session, Some("http://shop.test/start")),
        ] {
            let text = text(kind, url).unwrap();
            let scenario = Scenario::parse(&text, "s.yaml").unwrap_or_else(|e| panic!("{e}\n{text}"));
            assert_eq!(scenario.sessions.is_some(), kind == Kind::Session || text.contains("check:"), "{kind:?}");
            assert!(!text.contains('@') || text.contains("@127"), "{text}");
        }
    }

    #[test]
    fn urls_that_are_none_and_passwords_are_refused() {
        assert!(text(Kind::Http, Some("ftp://x")).is_err());
        assert!(text(Kind::Mysql, Some("http://x")).is_err());
        let refused = text(Kind::Postgres, Some("postgres://app:hunter2@db/x")).unwrap_err();
        assert!(!format!("{refused:?}").contains("hunter2"));
        assert!(text(Kind::Postgres, None).unwrap().contains("id = $1"));
    }
}
