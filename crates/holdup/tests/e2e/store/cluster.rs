//! The tables over two shards: the statements of `init --distributed` on two of Debian's servers, without `ON CLUSTER`, which needs
//! a ZooKeeper. Recordings lie on both, and every command works through either.

use holdup_store::{Address, Client, Dialect, Schema, Sharing, Statement};

use super::server::{Kind, Server};
use super::{DATABASE, assert_equal, fixture, push, stored};
use crate::program::{finish, free_port, holdup};
use crate::python;

const RECORDING: &str = "hidden-queue-accounts";

/// The shard follows from the name: each shard has one of these at least.
const NAMES: [&str; 4] = ["one", "two", "three", "four"];

/// A server that is the shard at `own` of a cluster of the native ports `all`.
fn shard(own: u16, all: &[u16]) -> Option<Server> {
    let replica = |port: &u16| format!("<shard><replica><host>127.0.0.1</host><port>{port}</port></replica></shard>");
    let shards: String = all.iter().map(replica).collect();
    let more = format!("<tcp_port>{own}</tcp_port><remote_servers><main>{shards}</main></remote_servers>");
    Server::start_with(Kind::Debian, |dir| {
        std::fs::write(dir.join("more.xml"), more).unwrap();
        Vec::new()
    })
}

fn make_tables(server: &Server) {
    let client = Client::connect(&Address::parse(&server.url(DATABASE)).unwrap()).unwrap();
    client.create_database(None).unwrap();
    let sharing = Sharing { replicated: false, cluster: Some("main".to_owned()) };
    let schema = Schema { dialect: Dialect::Old, sharing, ttl_days: None };
    for statement in schema.statements().unwrap().into_iter().chain(schema.views()) {
        let alone = statement.replace(" ON CLUSTER 'main'", "");
        assert_ne!(alone, statement, "it is for one server: {statement}");
        client.execute(&Statement::new(&alone)).unwrap_or_else(|error| panic!("{alone}: {error}"));
    }
}

#[test]
fn recordings_lie_on_two_shards() {
    let ports = [free_port(), free_port()];
    let Some(first) = shard(ports[0], &ports) else { return };
    let Some(second) = shard(ports[1], &ports) else { return };
    make_tables(&first);
    make_tables(&second);
    let (folder, url) = (fixture(RECORDING), first.url(DATABASE));
    for name in NAMES {
        let pushed = push(&folder, &url, name);
        assert_eq!(pushed["checked"], true, "{pushed}");
    }
    let again = push(&folder, &second.url(DATABASE), NAMES[0]);
    assert_eq!(again["rows_sent"], 0, "{again}");
    assert_equal(&second, &folder, &NAMES);
    let on = |server: &Server| server.ask(DATABASE, "SELECT uniqExact(recording) FROM requests_shard");
    let counts: Vec<usize> = [on(&first), on(&second)].iter().map(|count| count.parse().unwrap()).collect();
    assert!(counts[0] > 0 && counts[1] > 0 && counts[0] + counts[1] == NAMES.len(), "{counts:?}");
    let verdict = |recording: &str| finish(holdup(["diagnose", "--json", recording]), 120).stdout;
    assert_eq!(verdict(&format!("{}/two", second.url(DATABASE))), verdict(&folder.display().to_string()));
    assert_eq!(stored(&["ls", &url]).stdout.lines().count(), NAMES.len());
    let port = second.port().to_string();
    python::check("views.py", &[&port, DATABASE, &folder.display().to_string(), NAMES[3]]);
}
