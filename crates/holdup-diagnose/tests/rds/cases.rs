//! Twelve incidents by their mechanism, and two databases without any.

use holdup_diagnose::Cause;

use super::instance::{Minute, Random};

pub struct Case {
    pub name: &'static str,
    /// The causes that are right.
    pub causes: &'static [Cause],
    pub change: fn(&mut Minute, &mut Random, f64),
    /// Storage as it is described.
    pub storage: &'static str,
    /// `max_connections` of the parameter group.
    pub max_connections: &'static str,
}

const IO1: &str = r#""StorageType": "io1", "Iops": 20000, "AllocatedStorage": 1000"#;
const GP2: &str = r#""StorageType": "gp2", "AllocatedStorage": 300"#;
const SMALL_IO1: &str = r#""StorageType": "io1", "Iops": 4000, "AllocatedStorage": 390"#;
const FORMULA: &str = "LEAST({DBInstanceClassMemory/9531392},5000)";

/// What `db.r5.2xlarge` sustains.
const EBS_BYTES: f64 = 287.5e6;
const NETWORK_BYTES: f64 = 312.5e6;

const fn case(name: &'static str, causes: &'static [Cause], change: fn(&mut Minute, &mut Random, f64)) -> Case {
    Case { name, causes, change, storage: IO1, max_connections: FORMULA }
}

pub const CASES: &[Case] = &[
    Case { max_connections: "400", ..case("connections", &[Cause::ConnectionLimit], connections) },
    case("storage", &[Cause::DiskFull], storage),
    case("replica", REPLICA, replica),
    case("failover", RESTART, failover),
    case("cpu", &[Cause::CpuSaturated], cpu),
    case("checkpoints", &[Cause::FlushStorm], checkpoints),
    case("locks", &[Cause::LockContention], locks),
    case("throughput", &[Cause::ThroughputCeiling], throughput),
    Case { storage: SMALL_IO1, ..case("iops", &[Cause::IopsCeiling], iops) },
    Case { storage: GP2, ..case("burst", BURST, burst) },
    case("network", &[Cause::NetworkBandwidth], network),
    case("memory", &[Cause::MemoryPressure], memory),
];

const REPLICA: &[Cause] = &[Cause::ReplicaLag, Cause::ReplicationSlotKeepsLog];
/// Credits ran out, and the volume stands at its limit: the limit leads, by the project's own edges.
const BURST: &[Cause] = &[Cause::BurstExhausted, Cause::IopsCeiling];
const RESTART: &[Cause] = &[Cause::ServerRestart];

pub const HEALTHY: &[Case] = &[case("healthy", &[], |_, _, _| {}), case("noisy", &[], noisy)];

/// Clients that open more and more connections, until the server refuses them.
fn connections(minute: &mut Minute, random: &mut Random, _: f64) {
    let asked = minute.toward(minute.connections, 460.0 * random.noise(0.03));
    minute.connections = asked.min(400.0 - (random.unit() * 2.0).floor());
    minute.cpu *= 1.0 + 0.15 * minute.in_incident;
}

/// Temporary files or log fill the volume.
fn storage(minute: &mut Minute, random: &mut Random, length: f64) {
    let done = (minute.since / length).clamp(0.0, 1.0);
    minute.free_storage *= 1.0 - 0.9989 * done;
    minute.write_iops *= 1.0 + 1.2 * minute.in_incident * random.noise(0.1);
}

fn replica(minute: &mut Minute, random: &mut Random, _: f64) {
    let since = minute.since.max(0.0);
    if minute.in_incident > 0.0 {
        minute.replica_lag = 52.0 * since * random.noise(0.02);
        minute.slot_lag = 0.9e9 * since * random.noise(0.02);
        minute.write_iops *= 1.6;
        minute.received *= 1.5;
    }
}

/// A standby takes over: for some minutes no client is connected, then its memory is cold.
fn failover(minute: &mut Minute, random: &mut Random, _: f64) {
    if minute.since >= 0.0 {
        minute.uptime = 60.0 * minute.since;
    }
    if (0.0..2.0).contains(&minute.since) {
        (minute.connections, minute.cpu) = (0.0, 0.05);
        (minute.read_iops, minute.write_iops) = (20.0, 20.0);
        minute.waits.iter_mut().for_each(|(_, sessions)| *sessions = 0.0);
    } else if minute.in_incident > 0.0 {
        let cold = (-(minute.since - 2.0) / 8.0).exp();
        minute.connections *= 1.0 + 0.4 * cold;
        minute.read_iops *= 1.0 + 3.0 * cold * random.noise(0.05);
        minute.wait("IO:DataFileRead", 2.5 * cold);
    }
}

/// A statement that scans a table: more of them than CPUs. Waits in the proportions that 24 such sessions
/// of a PostgreSQL had here, sampled once a second.
fn cpu(minute: &mut Minute, random: &mut Random, _: f64) {
    minute.cpu = minute.toward(minute.cpu, (0.985 * random.noise(0.008)).min(0.999));
    minute.wait("CPU", 12.0 * random.noise(0.1));
    minute.wait("LWLock:BufferMapping", 8.0 * random.noise(0.15));
    minute.wait("IPC:BufferIO", 1.6);
    minute.connections *= 1.0 + 0.35 * minute.in_incident;
    minute.heaviest = minute.toward(minute.heaviest, 0.71);
}

/// The log grows faster than checkpoints are planned: each asks for the next, and sessions write pages.
fn checkpoints(minute: &mut Minute, random: &mut Random, _: f64) {
    let wave = 1.0 + 0.3 * (minute.since / 2.0).sin();
    minute.write_iops *= 1.0 + 3.5 * minute.in_incident * wave;
    minute.write_latency = minute.toward(minute.write_latency, 0.006 * random.noise(0.2));
    minute.queue = minute.toward(minute.queue, 14.0 * wave * random.noise(0.15));
    minute.requested_checkpoints = minute.in_incident * 0.021 * random.noise(0.2);
    minute.wait("IO:DataFileSync", 3.0 * wave);
    minute.wait("IO:DataFileWrite", 5.0 * wave * random.noise(0.1));
    minute.wait("LWLock:WALWrite", 1.2 * wave);
    minute.wait("IO:WALSync", 0.8);
}

/// A transaction stays open with locked rows, and others queue behind it. Waits in the proportions that
/// 24 sessions of a PostgreSQL had here, sampled once a second, as they updated one row.
fn locks(minute: &mut Minute, random: &mut Random, _: f64) {
    minute.wait("Lock:transactionid", 17.0 * random.noise(0.08));
    minute.wait("Lock:tuple", 2.7 * random.noise(0.15));
    minute.wait("LWLock:LockManager", 1.6 * random.noise(0.2));
    minute.wait("IO:WALSync", 0.3);
    minute.cpu *= 1.0 - 0.35 * minute.in_incident;
    minute.write_iops *= 1.0 - 0.4 * minute.in_incident;
    minute.connections *= 1.0 + 0.3 * minute.in_incident;
    minute.deadlocks = minute.in_incident * 0.004 * random.unit();
    minute.heaviest = minute.toward(minute.heaviest, 0.55);
}

/// Reads and writes together stand at what the class may move; their mix varies.
fn throughput(minute: &mut Minute, random: &mut Random, _: f64) {
    let reads = 0.62 + 0.25 * (random.unit() - 0.5);
    let bytes = EBS_BYTES * 0.985 * random.noise(0.008);
    minute.read_size = minute.toward(minute.read_size, 98_000.0 * random.noise(0.05));
    minute.write_size = minute.toward(minute.write_size, 70_000.0 * random.noise(0.05));
    minute.read_iops = minute.toward(minute.read_iops, reads * bytes / minute.read_size);
    minute.write_iops = minute.toward(minute.write_iops, (1.0 - reads) * bytes / minute.write_size);
    at_volume(minute, random, 0.018, 45.0);
}

/// Operations stand at the provisioned rate.
fn iops(minute: &mut Minute, random: &mut Random, _: f64) {
    let reads = 0.7 + 0.2 * (random.unit() - 0.5);
    let operations = 4_000.0 * 0.99 * random.noise(0.006);
    minute.read_iops = minute.toward(minute.read_iops, reads * operations);
    minute.write_iops = minute.toward(minute.write_iops, (1.0 - reads) * operations);
    at_volume(minute, random, 0.012, 38.0);
}

/// A gp2 volume of 300 GiB does 900 operations a second when its credits are gone.
fn burst(minute: &mut Minute, random: &mut Random, length: f64) {
    let used = ((minute.since + 70.0) / 70.0).clamp(0.0, 1.0);
    let is_over = minute.since > length;
    minute.burst_balance = if is_over { 0.02 + 0.004 * (minute.since - length) } else { (1.0 - used).max(0.0) };
    if (-70.0..0.0).contains(&minute.since) {
        minute.read_iops = 1_900.0 * random.noise(0.05);
    }
    let operations = 900.0 * 0.99 * random.noise(0.006);
    minute.read_iops = minute.toward(minute.read_iops, 0.66 * operations);
    minute.write_iops = minute.toward(minute.write_iops, 0.34 * operations);
    if is_over {
        (minute.read_iops, minute.write_iops) = (380.0 * minute.demand, 210.0 * minute.demand);
    }
    at_volume(minute, random, 0.03, 28.0);
}

fn at_volume(minute: &mut Minute, random: &mut Random, latency: f64, queue: f64) {
    minute.read_latency = minute.toward(minute.read_latency, latency * random.noise(0.15));
    minute.write_latency = minute.toward(minute.write_latency, latency * random.noise(0.15));
    minute.queue = minute.toward(minute.queue, queue * random.noise(0.12));
    minute.cpu *= 1.0 - 0.2 * minute.in_incident;
    minute.connections *= 1.0 + 0.5 * minute.in_incident;
    minute.wait("IO:DataFileRead", 0.55 * queue * random.noise(0.1));
    minute.wait("IO:WALSync", 0.1 * queue);
    minute.wait("LWLock:WALWrite", 0.16 * queue);
}

/// Large results: all that the class sends.
fn network(minute: &mut Minute, random: &mut Random, _: f64) {
    minute.sent = minute.toward(minute.sent, NETWORK_BYTES * 0.985 * random.noise(0.006));
    minute.wait("Client:ClientWrite", 9.0 * random.noise(0.1));
    minute.cpu *= 1.0 + 0.5 * minute.in_incident;
    minute.connections *= 1.0 + 0.3 * minute.in_incident;
}

/// Sessions take more memory than there is: the rest is swapped out.
fn memory(minute: &mut Minute, random: &mut Random, length: f64) {
    let done = (minute.since / length).clamp(0.0, 1.0);
    minute.free_memory = minute.toward(minute.free_memory, 1.1e9 * random.noise(0.06));
    minute.swap += 3.2e9 * done;
    minute.cpu *= 1.0 + 0.3 * minute.in_incident;
    minute.read_iops *= 1.0 + 0.6 * minute.in_incident * random.noise(0.1);
    minute.connections *= 1.0 + 0.4 * minute.in_incident;
}

/// Nothing is wrong: a backup, statistics by the hour, short peaks, and credits that are used now and then.
fn noisy(minute: &mut Minute, random: &mut Random, _: f64) {
    if minute.in_incident > 0.0 {
        minute.read_iops *= 3.0;
        minute.read_size *= 3.0;
        minute.cpu = (minute.cpu * 1.5).min(0.75);
        minute.byte_balance = 0.8;
        minute.wait("IO:DataFileRead", 1.2);
    }
    if random.unit() < 0.03 {
        minute.cpu = 0.97;
        minute.wait("CPU", 6.0);
    }
    if random.unit() < 0.03 {
        minute.waits.push(("Lock:tuple", 5.0));
        minute.queue *= 5.0;
    }
    minute.connections += (40.0 * random.unit()).round();
    minute.free_memory *= 0.8 + 0.3 * random.unit();
    minute.swap *= 1.0 + 0.1 * random.unit();
}
