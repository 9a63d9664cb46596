//! What a sample costs. Ignored: it needs a quiet machine and a release build to mean anything
//! (`cargo test --release -p holdup-collect --test linux cost -- --ignored --nocapture`).

use std::sync::mpsc;
use std::time::Duration;

use holdup_collect::Collector;
use holdup_collect::host::Host;
use holdup_collect::proc::Proc;
use holdup_collect::process::Process;
use holdup_recording::Batch;

/// The budget of a host with 2,000 threads at one sample a second: 2 % of one core.
const BUDGET: Duration = Duration::from_millis(20);

#[test]
#[ignore = "measures CPU time: wants a release build"]
fn cost_of_a_sample_with_2000_threads() {
    let mut stops = Vec::new();
    let mut threads = Vec::new();
    for _ in 0..2_000 {
        let (stop, stopped) = mpsc::channel::<()>();
        stops.push(stop);
        let wait = move || {
            let _ = stopped.recv_timeout(Duration::from_secs(60));
        };
        threads.push(std::thread::Builder::new().stack_size(64 << 10).spawn(wait).unwrap());
    }
    std::thread::sleep(Duration::from_millis(500));
    let mut host = Host::new(Proc::system());
    let mut process = Process::new(Proc::system(), std::process::id());
    host.probe().unwrap();
    process.probe().unwrap();
    let of_host = cpu_time("host", &mut host);
    let of_process = cpu_time("pid", &mut process);
    println!("mean: host {of_host:.1?}, pid {of_process:.1?}");
    drop(stops);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(of_host < BUDGET, "host: {of_host:?} a sample");
    assert!(of_process < BUDGET * 3, "pid: {of_process:?} a sample");
}

/// CPU time of one sample, the mean of ten, one a second as in a run (the host's thread count paces itself by the clock).
fn cpu_time(name: &str, collector: &mut dyn Collector) -> Duration {
    let all: Vec<Duration> = (0..10)
        .map(|_| {
            let mut batch = Batch::default();
            let begun = thread_cpu_time();
            collector.sample(&mut batch).unwrap();
            let cpu = thread_cpu_time() - begun;
            std::thread::sleep(Duration::from_secs(1));
            cpu
        })
        .collect();
    println!("{name}: CPU a sample: {all:.1?}");
    all.iter().sum::<Duration>() / 10
}

fn thread_cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the call to fill in.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) }, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
