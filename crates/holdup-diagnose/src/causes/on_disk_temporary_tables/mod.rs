//! Statements create temporary tables on disk, and wait for its directory to handle the files.
//!
//! If the kernel shows the file of a thread's call, the thread counts if the file lies in `tmpdir`.
//! If it shows only the function, the thread counts if that changes a directory. If it shows
//! neither, sleep without matching I/O counts, with less weight.

use self::counted::{elsewhere, made};
use self::tmpdir::{PLACES, PlaceEvidence, Tmpdir};
use super::parts::clearing;
use super::{Cause, CauseFinding, Definition, Doc, Judge, Others, Outcome, Role, Trait, ms};
use crate::case::Case;
use crate::next_command::NextCommand;
use crate::resources::is_too_small;
use crate::strength::FAIR;
use holdup_recording::metrics;
use holdup_signals::Missing;

mod advice;
mod counted;
mod signs;
mod spills;
mod tmpdir;
mod work;

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::DiskDemand, Trait::LongStatement],
    signs: Some(signs::find),
    errors: &[(holdup_recording::events::SPILLED, crate::strength::STRONG)],
    ..Definition::new(Cause::OnDiskTemporaryTables, DOC, Judge::Beside(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "Temporary tables are written to disk",
    what: "A statement whose GROUP BY, DISTINCT, ORDER BY or UNION needs an internal temporary table gets one on disk if it has BLOB or TEXT columns or is too large for memory. Each is two files in tmpdir, created and deleted within the statement. PostgreSQL writes a sort or hash that is larger than work_mem to temporary files.",
    hurts: "Creating and deleting takes the directory's lock, and one thread at a time holds it while the file system writes its journal. With hundreds of sessions all others wait for it in uninterruptible sleep: the load average is in the hundreds while CPUs are idle and the disk moves hardly anything. Where the pages of large tables stay in memory, each row costs many times the CPU time of reading it.",
    needs: "The server's counters and tmpdir (--watch mysql://…), the threads of its process (--watch pid:N), with their system calls and kernel stacks where holdup may read them (root, or CAP_SYS_PTRACE and CAP_SYS_ADMIN). For PostgreSQL its statistics and sessions (--watch postgresql://…) and the disk's or CPUs' use (--watch host).",
    predicts: "About one on-disk temporary table per request; the server's threads sleep uninterruptibly in unlink or open on files of tmpdir, for about the excess; sessions show \"removing tmp table\", \"Creating tmp table\" or \"Sending data\" without progress. Or statements that make such tables fill the CPUs since requests are slow.",
    clears: "Hardly any on-disk temporary table is made; or they are made, and threads hardly ever sleep in tmpdir, as when it is a tmpfs; or the sleeping threads are elsewhere. Nor do statements that make them fill the CPUs.",
    looks_like: "A saturated data disk makes threads sleep in reads, writes and fsync, not in unlink and open. Large temporary tables saturate the disk itself: its bytes per second are then at their limit. Locks of the database show in its sessions, and their threads sleep interruptibly.",
    fix: "tmpdir on a tmpfs; no BLOB or TEXT columns in grouped or sorted results; several tmpdirs, each with a separate lock. A larger tmp_table_size helps only against tables that are too large, not against BLOB and TEXT columns.",
    prove: "The same load again: as many temporary tables, no thread asleep in tmpdir, and the load average near the number of running threads.",
    references: "MySQL 5.6 Reference Manual: Internal Temporary Table Use in MySQL; Where MySQL Stores Temporary Files. MariaDB documentation: tmpdir, Internal Temporary Tables (Created_tmp_disk_tables, tmp_memory_table_size). Linux: Documentation/filesystems/directory-locking, tmpfs; proc_pid_stat(5) (state D), proc_pid_syscall(5); proc_loadavg(5).",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::statement(
    "SHOW GLOBAL STATUS WHERE Variable_name IN ('Created_tmp_tables', 'Created_tmp_disk_tables', 'Created_tmp_files', 'Questions'); SHOW GLOBAL VARIABLES LIKE 'tmpdir';",
    "SELECT datname, temp_files, temp_bytes FROM pg_stat_database;",
    "how many statements make a temporary table on disk, and where",
);

const ENABLE: &str = "--watch mysql://USER@HOST:PORT";

const CREATED: &str = metrics::mysql::GLOBAL_STATUS_CREATED_TMP_DISK_TABLES.name;

/// With fewer on-disk temporary tables per request than this, not every request makes one.
const PER_REQUEST: f64 = 0.5;

/// Fewer than this per request hardly matter.
const HARDLY_ANY: f64 = 0.01;

/// What sessions report meanwhile, in MySQL 5.5 to 8 and MariaDB, in lower case.
const STATES: &[&str] = &[
    "removing tmp table",
    "creating tmp table",
    "opening tmp table",
    "copying to tmp table",
    "copying to tmp table on disk",
    "converting heap to myisam",
    "converting heap to aria",
    "converting heap to ondisk",
    "sending data",
];

fn judge(case: &Case<'_>, others: &Others) -> Result<Outcome, Missing> {
    let judged = match from_server(case) {
        Ok(Outcome::Cleared(evidence)) => Ok(work::judge(case, others).unwrap_or(Outcome::Cleared(evidence))),
        outcome => outcome.or_else(|missing| spills::judge(case, others).ok_or(missing)),
    };
    // Nothing inside the database exceeds the app's own timing of its statements.
    judged.or_else(|missing| clearing::by_statements(case, "including temporary tables").ok_or(missing))
}

fn from_server(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let created = view.counter(CREATED, &[], ENABLE)?;
    let completed = case.completed_in(view.window)?.max(1.0);
    let per_request = created.rate() / (completed / view.window.seconds());
    let counted = made(&view, &created, per_request);
    if per_request < HARDLY_ANY {
        return Ok(Outcome::Cleared(vec![counted]));
    }
    let tmpdir = Tmpdir::find(&view)?;
    let asleep = view.asleep()?;
    if is_too_small(case, asleep.per_request_ms(asleep.mean, completed))? {
        return Ok(Outcome::Cleared(vec![counted, elsewhere(&asleep, 0.0, completed, &tmpdir.directories)]));
    }
    let inside = tmpdir.asleep(case, &view, &asleep, completed)?;
    let explains_ms = asleep.per_request_ms(inside.mean, completed);
    if is_too_small(case, explains_ms)? {
        return Ok(Outcome::Cleared(vec![counted, elsewhere(&asleep, inside.mean, completed, &tmpdir.directories)]));
    }
    if inside.by != PlaceEvidence::File && per_request < PER_REQUEST {
        // Something else changes directories, or the tables are large: only files show it.
        return Err(Missing::new("the files that the server's threads wait for (threads.path)", PLACES));
    }
    let busy = view.busy_sessions().ok();
    let states = busy.as_ref().and_then(|busy| Some((busy, busy.evidence(STATES)?)));
    let says_so = states.as_ref().map_or(0.0, |(busy, _)| (busy.mean_in(STATES) / busy.mean().max(1e-9)).min(1.0));
    let mut evidence = vec![counted];
    evidence.extend(inside.evidence(&asleep, &tmpdir));
    evidence.extend(tmpdir.evidence(&view));
    evidence.extend(states.map(|(_, evidence)| evidence));
    evidence.extend(advice::in_vain(&view));
    let at_once = asleep.max.max(busy.as_ref().map_or(0.0, |b| b.max));
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights: vec![inside.worth(), FAIR * (per_request / PER_REQUEST), FAIR * says_so],
        fixes: advice::fixes(&view, &tmpdir.directories, tmpdir.mount.as_ref(), &created, at_once),
        prove: format!(
            "Run the same scenario again: as many on-disk temporary tables, but no thread of {} asleep in tmpdir, and requests are faster by about {}.",
            asleep.process().unwrap_or("the server"),
            ms(explains_ms)
        ),
        role: Role::Root,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};
    use crate::verdict::Answer;
    use holdup_signals::evidence::Evidence;

    const UNLINK: &str = "do_unlinkat < __x64_sys_unlink < do_syscall_64";
    const FSYNC: &str = "jbd2_log_wait_commit < ext4_sync_file < __x64_sys_fsync";

    /// A server that makes `created` tables a second on disk for 100 requests of a second each.
    fn server(created: f64, fstype: &str) -> SyntheticRecording {
        let db = "mysql://db";
        SyntheticRecording::new(10)
            .requests(100, 1_000)
            .counter(db, CREATED, &[], created)
            .counter("pid:7", "process_io_calls_bytes_total", &[("direction", "write")], created * 1_024.0)
            .counter("host", "system_disk_operation_time_seconds_total", &[("device", "vdb")], 0.5)
            .setting(db, "tmpdir", "/t/tmp/")
            .setting(db, "tmp_table_size", "33554432")
            .setting(db, "max_heap_table_size", "33554432")
            .setting("pid:7", "mount[/t].fstype", fstype)
            .setting("pid:7", "mount[/t].options", "dirsync,rw")
            .setting("pid:7", "mount[/t].device", "vdb")
    }

    fn found(made: &SyntheticRecording) -> CauseFinding {
        match made.judge(&DEFINITION) {
            Ok(Outcome::Found(found)) => found,
            Err(missing) => panic!("not judged: {missing:?}"),
            Ok(_) => panic!("not found"),
        }
    }

    fn says(evidence: &[Evidence], what: &str) -> bool {
        evidence.iter().any(|e| e.text.contains(what))
    }

    #[test]
    fn threads_asleep_on_files_of_tmpdir_are_its_doing() {
        let made = server(100.0, "ext4")
            .asleep(90, "do_unlinkat", UNLINK, Some("/t/tmp/#sql_?.MYI"))
            .sessions(90, "removing tmp table");
        let found = found(&made);
        assert!((found.explains_ms - 900.0).abs() < 100.0, "{}", found.explains_ms);
        for what in [
            "do_unlinkat",
            "/t/tmp/#sql_?.MYI",
            "ext4 on vdb",
            "tmpdir is /t/tmp",
            "would not help",
            "removing tmp table",
        ] {
            assert!(says(&found.evidence, what), "{what}: {:?}", found.evidence);
        }
        // 90 tables of 1 KB need next to nothing: the least that is sensible.
        let (first, second) = (&found.fixes[0], &found.fixes[1]);
        assert!(first.command.as_ref().is_some_and(|c| c.contains("-t tmpfs -o size=64m")), "{first:?}");
        assert!(first.keep.as_ref().is_some_and(|k| k.contains("/etc/fstab")) && first.risk.is_some());
        assert!(second.text.contains("without dirsync"), "{second:?}");
    }

    #[test]
    fn the_pile_up_follows_from_it() {
        let made = server(100.0, "ext4").asleep(90, "do_unlinkat", UNLINK, Some("/t/tmp/#sql_?.MYI"));
        let diagnosis = made.diagnose();
        assert_eq!((diagnosis.verdict, diagnosis.culprit), (Answer::Found, Some(DEFINITION.cause)));
        let pile_up = diagnosis.findings.iter().find(|f| f.cause == Cause::UninterruptiblePileup).unwrap();
        assert_eq!((pile_up.role, pile_up.follows_from), (Role::Symptom, Some(DEFINITION.cause)));
    }

    #[test]
    fn sleep_elsewhere_is_not_its_doing() {
        // The data folder may lie below tmpdir, and commits sleep there.
        for path in ["/t/tmp/data/ib_logfile?", "/data/ib_logfile?"] {
            let made = server(100.0, "ext4").asleep(90, "jbd2_log_wait_commit", FSYNC, Some(path));
            assert_eq!(made.explains(&DEFINITION), Some(0.0), "{path}");
        }
        let by_function = server(100.0, "ext4").asleep(90, "jbd2_log_wait_commit", FSYNC, None);
        assert_eq!(by_function.explains(&DEFINITION), Some(0.0));
        let none = server(0.1, "ext4").asleep(90, "do_unlinkat", UNLINK, None);
        assert_eq!(none.explains(&DEFINITION), Some(0.0));
        let in_memory = server(100.0, "tmpfs").asleep(0, "do_unlinkat", UNLINK, None);
        assert_eq!(in_memory.explains(&DEFINITION), Some(0.0));
    }

    #[test]
    fn without_places_it_is_less_sure_and_without_a_count_it_is_not_judged() {
        let made = server(100.0, "ext4").asleep(90, "do_unlinkat", UNLINK, Some("/t/tmp/#sql_?.MYI"));
        let sure = |made: &SyntheticRecording| found(made).weights[0];
        let by_function = server(100.0, "ext4").asleep(90, "do_unlinkat", UNLINK, None);
        let by_nothing = server(100.0, "ext4").asleep_somewhere(90);
        assert!(sure(&made) > sure(&by_function) && sure(&by_function) > sure(&by_nothing));
        for metric in [CREATED, "process_threads"] {
            assert_eq!(made.clone().without(metric).explains(&DEFINITION), None, "{metric}");
        }
        // It may as well wait for the disk, whoever's doing that is: nothing tells.
        let disk = server(100.0, "ext4").counter("host", "system_disk_operation_time_seconds_total", &[], 90.0);
        assert_eq!(disk.asleep_somewhere(90).explains(&DEFINITION), None);
    }
}
