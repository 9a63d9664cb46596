//! A PostgreSQL server's messages, whole: an entry with the detail and the statement that follow it.
//! Who listens keeps no value of them. Executions are not passed on: the tally counts those.

pub use crate::digest::listener::{Listener, Message};

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::digest::block::Block;
    use crate::digest::postgres::stderr::Stderr;
    use crate::digest::select::Select;
    use crate::digest::tally::{Identity, Tally};

    #[test]
    fn messages_come_with_their_detail_and_statement_and_without_executions() {
        let log = "2026-11-28 10:00:00 UTC [7] a@b LOG:  duration: 1.000 ms  statement: SELECT 1;
2026-11-28 10:00:01 UTC [7] a@b LOG:  process 7 still waiting for ShareLock on transaction 5 after 50.1 ms
2026-11-28 10:00:01 UTC [7] a@b DETAIL:  Process holding the lock: 8.
2026-11-28 10:00:01 UTC [9] a@b STATEMENT:  of another process
2026-11-28 10:00:01 UTC [7] a@b STATEMENT:  UPDATE t
\tSET a = 1;
2026-11-28 10:00:02 UTC [4] LOG:  checkpoint starting: wal
";
        let all = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&all);
        let mut tally = Tally::new(holdup_sql::Dialect::PostgreSql, Identity::Holdup, Select::default());
        tally.listener = Some(Listener::new(move |message| heard.lock().unwrap().push(message.clone())));
        Stderr::new(log.as_bytes(), None).read(&Block { data: log.into(), ..Block::default() }, &mut tally);
        let all = all.lock().unwrap();
        assert_eq!(all.len(), 2, "{all:?}");
        assert_eq!((all[0].pid, all[0].database.as_str()), (7, "b"));
        assert_eq!(
            (all[0].detail.as_str(), all[0].statement.as_str()),
            ("Process holding the lock: 8.", "UPDATE t\nSET a = 1;")
        );
        // A process of the server has no account in its prefix.
        assert_eq!((all[1].pid, all[1].at_us.is_some()), (4, true));
        assert_eq!(tally.events, 1);
    }
}
