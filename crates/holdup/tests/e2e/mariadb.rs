//! The MariaDB of these tests: with an account that may see everything holdup asks for, and one that may see nothing.

pub use holdup_testing::MariaDb;
use holdup_testing::program;

/// The account that may see everything holdup asks for.
pub const USER: &str = "holdup";

/// Its password: it must turn up nowhere.
pub const CANARY: &str = "c4naryW0rd";

/// An account without a grant.
pub const POOR: &str = "poor";

/// Whether MariaDB's server is installed; says so if not.
pub fn is_here() -> bool {
    program("mariadbd", "mariadb-server").is_some()
}

/// One on loopback.
pub fn start() -> MariaDb {
    start_at(None, &[])
}

/// The server's own account of each statement, and no look-up of names.
const IN_NAMESPACE: [&str; 4] = [
    "--skip-name-resolve",
    "--performance-schema-consumer-events-statements-current=ON",
    "--performance-schema-consumer-events-statements-history=ON",
    "--performance-schema-consumer-events-statements-history-long=ON",
];

/// One in this network namespace, on all of whose addresses it listens, with further arguments.
pub fn start_at(namespace: Option<&str>, arguments: &[String]) -> MariaDb {
    let here = if namespace.is_some() { &IN_NAMESPACE[..] } else { &[] };
    let settings = ["--performance-schema=ON"].iter().chain(here).copied().chain(arguments.iter().map(String::as_str));
    let server = MariaDb::new().unwrap().with(settings).in_namespace(namespace.map(str::to_owned)).start();
    server.run(&format!(
        "CREATE USER '{USER}'@'%' IDENTIFIED BY '{CANARY}'; GRANT PROCESS ON *.* TO '{USER}'@'%';
         GRANT SELECT ON performance_schema.* TO '{USER}'@'%'; CREATE USER '{POOR}'@'%' IDENTIFIED BY '{CANARY}';"
    ));
    server
}
