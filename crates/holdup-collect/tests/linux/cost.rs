//! What a sample costs. Ignored: it needs a quiet machine and a release build to mean anything
//! (`cargo test --release -p holdup-collect --test linux cost -- --ignored --nocapture`). `bench/collect` measures the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use holdup_collect::Collector;
use holdup_collect::host::Host;
use holdup_collect::proc::Proc;
use holdup_collect::process::Process;
use holdup_collect::watch::{Options, collector};
use holdup_recording::Batch;

/// The budget of a host with 2,000 threads at one sample a second, its largest process watched too: 2 % of one core.
const BUDGET: Duration = Duration::from_millis(20);

const THREADS: usize = 2_000;

/// Samples that are measured, after some in which the places of sleeping threads are found.
const SAMPLES: u32 = 10;

#[test]
#[ignore = "measures CPU time: wants a release build"]
fn cost_of_a_sample_with_2000_threads() {
    // How many of the threads run 10 times a second, the rest sleep throughout.
    for active in [0, 500, THREADS] {
        let stop = Arc::new(AtomicBool::new(false));
        let threads: Vec<_> = (0..THREADS)
            .map(|index| {
                let stop = stop.clone();
                let wait = move || {
                    while !stop.load(Ordering::Relaxed) {
                        let pause =
                            if index < active { Duration::from_millis(100) } else { Duration::from_secs(3_600) };
                        std::thread::park_timeout(pause);
                    }
                };
                std::thread::Builder::new().stack_size(64 << 10).spawn(wait).unwrap()
            })
            .collect();
        let mut sources: Vec<Box<dyn Collector>> =
            vec![Box::new(Process::new(Proc::system(), std::process::id())), Box::new(Host::new(Proc::system()))];
        for source in &mut sources {
            source.probe().unwrap();
        }
        let mut cost = vec![Duration::ZERO; sources.len()];
        for round in 0..SAMPLES * 3 {
            for (source, cost) in sources.iter_mut().zip(&mut cost) {
                let mut batch = Batch::default();
                let begun = thread_cpu_time();
                source.sample(&mut batch).unwrap();
                if round >= SAMPLES * 2 {
                    *cost += thread_cpu_time() - begun;
                }
            }
            std::thread::sleep(Duration::from_secs(1));
        }
        let mean: Vec<Duration> = cost.iter().map(|cost| *cost / SAMPLES).collect();
        let sum: Duration = mean.iter().sum();
        println!("{active} of {THREADS} threads active: pid {:.1?}, host {:.1?}, together {sum:.1?}", mean[0], mean[1]);
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.thread().unpark();
            thread.join().unwrap();
        }
        assert!(sum < BUDGET, "{sum:?} a sample");
    }
}

fn thread_cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the call to fill in.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) }, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The budget of what is read of connections, 2,000 sockets of them: 1 % of one core.
const SOCKETS_BUDGET: Duration = Duration::from_millis(10);

#[test]
#[ignore = "measures CPU time: wants a release build"]
fn cost_of_2000_sockets() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let sample = |host: &mut Host| {
        let begun = thread_cpu_time();
        for _ in 0..SAMPLES {
            host.sample(&mut Batch::default()).unwrap();
        }
        (thread_cpu_time() - begun) / SAMPLES
    };
    let mut host = Host::new(Proc::system());
    host.probe().unwrap();
    sample(&mut host);
    let without = sample(&mut host);
    let pairs: Vec<_> =
        (0..1_000).map(|_| (std::net::TcpStream::connect(address).unwrap(), listener.accept().unwrap())).collect();
    let with = sample(&mut host);
    println!("2,000 sockets: {:?} of {with:?}", with.saturating_sub(without));
    drop(pairs);
    assert!(with.saturating_sub(without) < SOCKETS_BUDGET, "{with:?}, without them {without:?}");
}

/// The budget of a server from outside, with 1,000 connections on a machine with 2,000 threads, all of which are its own: 2 % of one core.
#[test]
#[ignore = "measures CPU time: wants a release build"]
fn cost_of_a_server() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Both ends are this process': half of them accepted, half made from here.
    let pairs: Vec<_> =
        (0..1_000).map(|_| (std::net::TcpStream::connect(address).unwrap(), listener.accept().unwrap())).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let stop = stop.clone();
            let wait = move || {
                while !stop.load(Ordering::Relaxed) {
                    std::thread::park_timeout(Duration::from_secs(3_600));
                }
            };
            std::thread::Builder::new().stack_size(64 << 10).spawn(wait).unwrap()
        })
        .collect();
    let mut server = collector(&format!("server:{}", address.port()), &Options::default()).unwrap();
    let begun = thread_cpu_time();
    server.probe().unwrap();
    let first = thread_cpu_time() - begun;
    let mut cost = Duration::ZERO;
    for round in 0..SAMPLES * 3 {
        let begun = thread_cpu_time();
        server.sample(&mut Batch::default()).unwrap();
        if round >= SAMPLES * 2 {
            cost += thread_cpu_time() - begun;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let mean = cost / SAMPLES;
    println!("1,000 connections, {THREADS} threads: {mean:?} a sample; finding it {first:?}");
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.thread().unpark();
        thread.join().unwrap();
    }
    drop(pairs);
    assert!(mean < BUDGET, "{mean:?} a sample");
}
