//! What happened as signs of causes: each with a faulty case and one that only looks like it.

use holdup_recording::rows::Thread;

use super::Signs;
use super::facts::Facts;
use crate::cause::Cause;
use crate::testing::{EventRow, Judged as _, SyntheticRecording};

fn chance(made: &SyntheticRecording, cause: Cause) -> f64 {
    made.with(|case| {
        let mut signs = Signs::default();
        if let Some(find) = cause.definition().signs {
            find(&Facts::read(case.view(case.whole())), &mut signs);
        }
        signs.weigh().map_or(0.0, |weighed| weighed.chance)
    })
}

fn made(rows: &[EventRow<'_>]) -> SyntheticRecording {
    SyntheticRecording::new(60).events(rows)
}

#[test]
fn a_kill_in_the_kernels_log_is_named_alone_and_one_of_yesterday_is_not() {
    let labels = [("process", "mysqld"), ("pid", "7"), ("scope", "host")];
    let killed = made(&[(20, "host", "out_of_memory_kill", &labels)]);
    assert!(chance(&killed, Cause::OutOfMemoryKill) >= 0.9);
    let diagnosis = killed.diagnose();
    assert_eq!(diagnosis.culprit, Some(Cause::OutOfMemoryKill), "{diagnosis:#?}");
    let old = made(&[(-90_000, "host", "out_of_memory_kill", &labels)]);
    assert_eq!(chance(&old, Cause::OutOfMemoryKill), 0.0);
    let failed = made(&[(20, "host", "page_allocation_failure", &[("order", "4")])]);
    assert_eq!(chance(&failed, Cause::OutOfMemoryKill), 0.0);
}

fn hung(stack: &str) -> SyntheticRecording {
    let row = Thread {
        observed_at: 20_000_000_000,
        source: "host".into(),
        process: "postgres".into(),
        state: "D".into(),
        stack: Some(stack.into()),
        count: 1,
        ..Thread::default()
    };
    made(&[(20, "host", "hung_task", &[("process", "postgres"), ("seconds", "122")])]).threads(vec![row])
}

#[test]
fn a_hung_tasks_stack_says_what_it_waits_for() {
    let disk = hung("schedule < jbd2_log_wait_commit < ext4_sync_file");
    assert!(chance(&disk, Cause::DiskSaturated) >= 0.75 && chance(&disk, Cause::UninterruptiblePileup) < 0.1);
    let remote = hung("schedule < rpc_wait_bit_killable < nfs4_run_open_task");
    assert!(chance(&remote, Cause::UninterruptiblePileup) >= 0.75 && chance(&remote, Cause::DiskSaturated) < 0.1);
    let memory = hung("schedule < shrink_inactive_list < try_to_free_pages");
    assert!(chance(&memory, Cause::MemoryPressure) >= 0.75);
    let errors = disk.events(&[(19, "host", "io_timeout", &[("device", "nvme1"), ("count", "4")])]);
    assert!(chance(&errors, Cause::DiskErrors) > chance(&errors, Cause::DiskSaturated));
}

#[test]
fn refused_connections_are_counted_by_logs_and_a_single_one_is_weak() {
    let refused =
        |count: &str| made(&[(20, "mysql://db", "error", &[("error", "too many connections"), ("count", count)])]);
    assert!(
        chance(&refused("40"), Cause::ConnectionLimit) >= 0.9 && chance(&refused("1"), Cause::ConnectionLimit) < 0.6
    );
    let other = made(&[(20, "mysql://db", "error", &[("error", "syntax error"), ("count", "40")])]);
    assert_eq!(chance(&other, Cause::ConnectionLimit), 0.0);
    let at = |connected: f64| {
        SyntheticRecording::new(1)
            .gauge("mysql://pasted", "mysql_global_status_threads_connected", &[], connected)
            .setting("mysql://pasted", "max_connections", "151")
    };
    assert!(chance(&at(152.0), Cause::ConnectionLimit) > 0.5 && chance(&at(90.0), Cause::ConnectionLimit) < 0.1);
}

#[test]
fn a_swap_storm_goes_both_ways() {
    let swap = |pages_in: f64, pages_out: f64| {
        SyntheticRecording::new(30)
            .counter("host", "system_paging_operations_total", &[("direction", "in")], pages_in)
            .counter("host", "system_paging_operations_total", &[("direction", "out")], pages_out)
    };
    assert!(chance(&swap(1_500.0, 1_800.0), Cause::MemoryPressure) >= 0.75);
    assert!(chance(&swap(0.0, 5_000.0), Cause::MemoryPressure) < 0.1, "cold pages are put away");
    assert!(chance(&swap(5.0, 5.0), Cause::MemoryPressure) < 0.1);
}

#[test]
fn many_deadlocks_and_latches_of_seconds_are_contention_and_few_are_not() {
    let deadlocks = |count: &str| made(&[(20, "mysql://db", "deadlock", &[("count", count)])]);
    assert!(chance(&deadlocks("30"), Cause::LockContention) > 0.5);
    assert!(chance(&deadlocks("1"), Cause::LockContention) < 0.1);
    let latch = |place: &str, seconds: &str| {
        made(&[(20, "mysql://db", "semaphore_wait", &[("place", place), ("seconds", seconds)])])
    };
    assert!(chance(&latch("dict0dict.cc line 1120", "241"), Cause::LockContention) >= 0.75);
    assert!(chance(&latch("dict0dict.cc line 1120", "1"), Cause::LockContention) < 0.1);
    assert!(chance(&latch("storage/buf0flu.cc line 900", "60"), Cause::DiskSaturated) > 0.5);
}

#[test]
fn a_queue_of_new_connections_that_drops_is_strong() {
    let flooded = |action: &str| made(&[(20, "host", "syn_flooding", &[("port", "8080"), ("action", action)])]);
    assert!(chance(&flooded("dropped"), Cause::AcceptQueueOverflow) >= 0.75);
    assert!(chance(&flooded("cookies"), Cause::AcceptQueueOverflow) < 0.6);
}

#[test]
fn a_disk_that_will_be_full_within_the_hour_is_not_cleared() {
    let cloud = |free: fn(i64) -> f64| {
        let labels = [("db_instance", "shop")];
        SyntheticRecording::new(1_800).counted("cloudwatch:x", "aws_free_storage_space_bytes", &labels, free)
    };
    assert!(chance(&cloud(|s| 2.2e9 - 1e6 * s as f64), Cause::DiskFull) >= 0.9);
    assert_eq!(chance(&cloud(|_| 430e6), Cause::DiskFull), 0.0, "little, and it stays");
    assert_eq!(chance(&cloud(|s| 5e12 - 1e6 * s as f64), Cause::DiskFull), 0.0, "it lasts for weeks");
}

#[test]
fn containers_that_end_by_themselves_restart_and_those_that_are_done_do_not() {
    let ended = |reason: &str, code: &str, second: i64| {
        let labels = [("container", "app"), ("reason", reason), ("exit_code", code)];
        made(&[(second, "kubernetes:shop/orders-0", "container_restarted", &labels)])
    };
    assert!(chance(&ended("Error", "1", 20), Cause::ServerRestart) >= 0.75);
    assert_eq!(chance(&ended("Completed", "0", 20), Cause::ServerRestart), 0.0);
    assert_eq!(chance(&ended("Error", "1", -1_700_000), Cause::ServerRestart), 0.0, "weeks ago");
    assert_eq!(chance(&ended("OOMKilled", "137", 20), Cause::ServerRestart), 0.0);
}
