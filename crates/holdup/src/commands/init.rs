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

const HTTP: &str = r#"# A scenario: what to send, where and when, and the objectives for the answers.
# Read it without sending anything:  holdup run FILE --check
# Run it:                            holdup run FILE
name: first
target: @TARGET
# http: {keep_alive: false}       # a new connection for each request

load:
  # Open model: requests are due at this rate whether or not earlier ones were answered, as on the internet.
  # Also: steps: {from: 50, to: 300, step: 50, every: 10s} | ramp: {from: 0, to: 500} | spike: ... | users: 64 (closed)
  # Other operations for a while: phases: [{rate: 50, for: 30s}, {rate: 50, for: 30s, mix: {order: 10/s}}]
  rate: 50
  duration: 30s
  # arrivals: {groups_of: 20}     # 20 at a time; or poisson
  # Most requests in flight. The verdict says if they were too few.
  connections: 50
  timeout: 10s

# Mixed by weight; reports and thresholds use their names.
operations:
  - name: first
    get: @PATH
    weight: 3
    check: [status == 200]
  # - name: order
  #   post: /orders
  #   json: {item: "${random(1, 1000)}", note: "${uuid()}"}
  #   headers: {Authorization: "Bearer ${secret.TOKEN}"}     # with  secrets: [TOKEN]
  #   weight: 1

# A missed threshold gives exit code 1.
thresholds:
  - p99 < 500ms
  - errors < 1%

# Sources to watch; default: this host, if the service runs on it.
# watch: [host, mysql://holdup@127.0.0.1:3306]
"#;

const SESSION: &str = r#"# A scenario of sessions: each is one user with its own variables and cookies.
# Read it without sending anything:  holdup run FILE --check
# Run it:                            holdup run FILE
name: sessions
target: @TARGET

vars:
  # Texts; --var products=500 overrides one.
  products: 1000

# secrets: [PASSWORD]                # environment variables, used as ${secret.PASSWORD}; never in a recording
# feeders:
#   accounts: {csv: accounts.csv, order: unique}     # used as ${accounts.email}; the first line names the columns

load:
  steps: {from: 10, to: 50, step: 10, every: 10s}
  # The rate counts new sessions; with "requests" it counts their requests.
  of: sessions
  connections: 100

steps:
  - name: start
    get: @PATH
    check: [status == 200]
  - think: 1s..3s
  # Captures a value of the response for later steps:
  # - post: /login
  #   json: {user: "${accounts.email}", password: "${secret.PASSWORD}"}
  #   capture: {token: json /access_token}
  - repeat: 3
    steps:
      - name: product
        get: /products/${random(1, products)}
        # headers: {Authorization: "Bearer ${token}"}
      - think: ~2s
  - choose:
      - weight: 20
        steps:
          - group: checkout
            steps:
              - post: /orders
                json: {product: "${random(1, products)}", order: "${uuid()}"}
      # The other 80 % leave.
      - weight: 80

thresholds:
  - product p95 < 300ms
  - errors < 1%
"#;

const STATEMENTS: &str = r#"# A scenario of statements for a database.
# Read it without sending anything:  holdup run FILE --check
# Set the password in an environment variable, never here.
name: statements
target: @TARGET

load:
  rate: 100
  duration: 30s
  # The pool: most connections, and so most statements in flight.
  connections: 10

operations:
  - name: order by id
    # A statement with params is prepared, once per connection.
    query: SELECT * FROM orders WHERE id = @BLANK
    params: ["${random(1, 5000)}"]
    weight: 9
  - name: pay
    transaction:
      - query: UPDATE orders SET paid = 1 WHERE id = @BLANK
        params: ["${random(1, 5000)}"]
    weight: 1

thresholds:
  - order by id p99 < 50ms
  - errors < 1%
"#;

const COMMANDS: &str = r#"# A scenario of MongoDB's commands: which, where and when, and the objectives for them.
# Read it without sending anything:  holdup run FILE --check
# Run it:                            holdup run FILE
# The password comes from HOLDUP_MONGODB_PASSWORD. Commands are executed unchanged: use a database made for tests.
name: commands
target: @TARGET

load:
  rate: 100
  duration: 30s
  # The pool: most connections, and so most commands in flight.
  connections: 10

operations:
  - name: order by id
    # Types that YAML lacks are written in MongoDB's extended JSON: a value in quotes is a text otherwise.
    command: {find: orders, filter: {_id: {$numberInt: "${random(1, 5000)}"}}, limit: 1}
    weight: 9
  - name: pay
    command:
      update: orders
      updates: [{q: {_id: {$numberInt: "${random(1, 5000)}"}}, u: {$set: {paid: true, at: {$date: "${now('ms')}"}}}}]
    weight: 1

thresholds:
  - order by id p99 < 50ms
  - errors < 1%
"#;

#[cfg(test)]
mod tests {
    use holdup_load::scenario::Scenario;

    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
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
