//! The true process list of a real PostgreSQL: who waits for whom, who idles in a transaction, and what the account needs.

use std::thread::sleep;
use std::time::{Duration, Instant};

use holdup_collect::postgres::processes::Processes;
use holdup_collect::processes::Look;

use crate::{Server, Which};

/// Looks until it shows what is waited for.
fn until(processes: &mut Processes, what: &str, shows: impl Fn(&Look) -> bool) -> Look {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let look = processes.look().expect("it can be read");
        if shows(&look) {
            return look;
        }
        assert!(Instant::now() < deadline, "no {what}: {look:#?}");
        sleep(Duration::from_millis(100));
    }
}

#[test]
fn blocked_sessions_name_the_session_that_blocks_them() {
    let Some(server) = Server::of(Which::System, &[]) else { return };
    server.run("CREATE USER watcher; CREATE TABLE item (id int PRIMARY KEY); INSERT INTO item VALUES (1);");
    let address = server.address("watcher", "");
    let refused = Processes::open(&address).err().expect("it may not see others").to_string();
    assert!(refused.contains("run: GRANT pg_monitor TO watcher;") && !refused.contains("canary"), "{refused}");
    server.run("GRANT pg_monitor TO watcher;");

    let (mut processes, _) = Processes::open(&address).expect("pg_monitor is enough");
    assert!(processes.release().starts_with("PostgreSQL "), "{}", processes.release());
    assert!(!processes.source().contains("watcher"), "{}", processes.source());
    let holder =
        server.begin(&format!("BEGIN; UPDATE item SET id = 1 WHERE id = 1;{}ROLLBACK;", server.wait_for("held")));
    let is_in = |look: &Look, state: &str| look.processes.iter().any(|p| p.session.true_state == state);
    until(&mut processes, "holder", |look| is_in(look, "idle_in_transaction"));
    let waiter = server.begin("UPDATE item SET id = 1 WHERE id = 1 /* s3cr3t-literal */");
    let look = until(&mut processes, "waiter", |look| is_in(look, "lock_wait"));
    let of = |state: &str| look.processes.iter().find(|p| p.session.true_state == state).expect("it is there");
    let (held, waits) = (of("idle_in_transaction"), of("lock_wait"));
    assert_eq!(waits.session.blocked_by, Some(held.session.session_id));
    assert!(waits.statement.as_deref().is_some_and(|sql| sql.contains("s3cr3t-literal")), "{waits:?}");
    assert!(waits.session.digest_text.as_deref().is_some_and(|sql| !sql.contains('1')), "{waits:?}");
    assert!(look.samples.iter().any(|s| s.metric == "postgresql_stat_database_xact_commit" && s.value > 0.0));
    server.open("held");
    waiter.end();
    holder.end();
}
