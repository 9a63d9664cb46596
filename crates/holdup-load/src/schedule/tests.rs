//! What schedules promise: every request once, at the moment the integral says, in the same place for everyone.

use super::*;

const S: Duration = Duration::from_secs(1);

fn all(schedule: &Schedule) -> Vec<(f64, usize)> {
    schedule.arrivals(Share::WHOLE).map(|a| (a.due_ns as f64 / 1e9, a.phase as usize)).collect()
}

/// A log of which only the timing counts.
fn timing(times: Vec<u64>) -> Replay {
    Replay::new(times, Vec::new(), Arc::new([]), Vec::new(), Vec::new())
}

fn mixed() -> Schedule {
    let part = |name: &str, seconds: f64, rate_from: f64, rate_to: f64| Stretch {
        name: name.to_owned(),
        length: Duration::from_secs_f64(seconds),
        rate_from,
        rate_to,
    };
    Schedule::new(vec![
        part("a", 1.3, 70.1, 70.1),
        part("pause", 2.0, 0.0, 0.0),
        part("up", 0.7, 0.0, 999.9),
        part("down", 1.1, 999.9, 0.001),
        part("slow", 10.0, 0.05, 0.05),
        part("end", 0.01, 33.333, 33.333),
    ])
}

fn profiles() -> Vec<(&'static str, Schedule)> {
    vec![
        ("constant", Schedule::constant(333.3, 7 * S)),
        ("steps", Schedule::steps(50.0, 300.0, 50.0, S)),
        ("falling steps", Schedule::steps(300.0, 100.0, 66.6, S)),
        ("ramp", Schedule::ramp(10.0, 1_000.0, 5 * S)),
        ("falling ramp", Schedule::ramp(1_000.0, 0.0, 5 * S)),
        ("spike", Schedule::spike(50.0, 2_000.0, 2 * S, S, 5 * S)),
        ("sine", Schedule::sine(200.0, 200.0, 2 * S, 7 * S)),
        ("phases", mixed()),
        ("replay", Schedule::replayed(timing((0..3_000).map(|i| i * i * 977).collect()), "r".into(), 9 * S)),
    ]
}

#[test]
fn constant_is_evenly_spaced_and_complete() {
    let schedule = Schedule::constant(500.0, 20 * S);
    let due = all(&schedule);
    assert_eq!((due.len() as u64, schedule.total()), (10_000, 10_000));
    assert!(due.iter().enumerate().all(|(k, (t, _))| (t - k as f64 / 500.0).abs() < 1e-9));
}

#[test]
fn steps_cover_every_rate_once() {
    let schedule = Schedule::steps(50.0, 300.0, 50.0, 10 * S);
    let due = all(&schedule);
    let per_step: Vec<usize> = (0..6).map(|s| due.iter().filter(|(_, i)| *i == s).count()).collect();
    assert_eq!(per_step, [500, 1_000, 1_500, 2_000, 2_500, 3_000]);
    assert_eq!(Schedule::steps(300.0, 100.0, 100.0, S).stretches().len(), 3);
}

#[test]
fn ramp_follows_the_integral() {
    let schedule = Schedule::ramp(10.0, 110.0, 10 * S);
    let due = all(&schedule);
    assert_eq!(due.len(), 600);
    // By half time 10*5 + 10*25/2 = 175 have been due.
    assert_eq!(due.iter().filter(|(t, _)| *t < 5.0 - 1e-9).count(), 175);
    // Request k is due where 10 t + 5 t² = k.
    assert!(due.iter().enumerate().all(|(k, (t, _))| (10.0 * t + 5.0 * t * t - k as f64).abs() < 1e-6));
    let falling = all(&Schedule::ramp(100.0, 1.0, 4 * S));
    assert_eq!(falling.len(), 202);
    assert!(falling.iter().enumerate().all(|(k, (t, _))| (100.0 * t - 12.375 * t * t - k as f64).abs() < 1e-6));
}

#[test]
fn a_spike_is_three_phases() {
    let schedule = Schedule::spike(10.0, 500.0, 2 * S, S, 5 * S);
    let names: Vec<&str> = schedule.stretches().iter().map(|s| s.name.as_str()).collect();
    assert_eq!((names, schedule.total(), schedule.length()), (vec!["before", "spike", "after"], 20 + 500 + 20, 5 * S));
    assert_eq!([1.9, 2.0, 2.9, 3.0].map(|t| schedule.rate_at(Duration::from_secs_f64(t))), [10.0, 500.0, 500.0, 10.0]);
    assert_eq!([1.9, 2.0, 2.9, 3.0, 9.0].map(|t| schedule.phase_at(Duration::from_secs_f64(t))), [0, 1, 1, 2, 2]);
    assert_eq!(Schedule::spike(10.0, 500.0, Duration::ZERO, S, S).stretches().len(), 1);
}

#[test]
fn a_sine_swings_and_its_periods_are_exact() {
    let schedule = Schedule::sine(1_000.0, 600.0, 4 * S, 10 * S);
    assert_eq!(schedule.stretches().len(), 3);
    let due = all(&schedule);
    // Two periods of 4,000, and of the third the half in which the rate is above the mean: 2 s and twice A P / 2 pi.
    let phases: Vec<usize> = (0..3).map(|p| due.iter().filter(|(_, phase)| *phase == p).count()).collect();
    assert_eq!(phases[..2], [4_000, 4_000]);
    let expected = 2.0 * 1_000.0 + 600.0 * 4.0 / std::f64::consts::PI;
    assert!((phases[2] as f64 - expected).abs() < 2.0, "{phases:?} {expected}");
    for t in [0.3, 1.0, 2.5, 3.0, 9.9] {
        let expected = 1_000.0 + 600.0 * (t * std::f64::consts::TAU / 4.0f64).sin();
        assert!((schedule.rate_at(Duration::from_secs_f64(t)) - expected).abs() < 0.0004 * 600.0, "{t}");
    }
    // Also where the period is no multiple of anything.
    for period_ns in [999_999_937, 1_000_000_002, 123_456_789] {
        let period = Duration::from_nanos(period_ns);
        let schedule = Schedule::sine(1e6, 1e6, period, period * 3);
        assert!((schedule.total() as f64 - 1e6 * 3.0 * period.as_secs_f64()).abs() <= 1.0, "{period_ns}");
    }
}

/// The moment of a request in a day's run at a constant rate is known exactly.
#[test]
fn nothing_drifts_in_a_day() {
    let day = 86_400 * S;
    for (rate, gap_ns) in [(20_000.0, 50_000), (7.0, 0), (33_333.333, 0)] {
        let schedule = Schedule::constant(rate, day);
        let millionths = (rate * 1e6) as u128;
        let total = (millionths * day.as_nanos()).div_ceil(1_000_000_000_000_000);
        assert_eq!(u128::from(schedule.total()), total);
        // One in a million is looked at, and the walk that passes all of them is the same one.
        let share = Share { index: 999_983, of: 1_000_000 };
        let mut seen = 0;
        for arrival in schedule.arrivals(share) {
            let exact = u128::from(arrival.number) * 1_000_000_000_000_000 / millionths;
            assert_eq!(arrival.due_ns as u128, exact);
            assert!(gap_ns == 0 || arrival.due_ns == arrival.number as i64 * gap_ns);
            seen += 1;
        }
        assert_eq!(seen, share.count(schedule.total()));
    }
    // And one that is walked request by request.
    let slow = Schedule::constant(33.333, day);
    let last = slow.arrivals(Share::WHOLE).last().unwrap();
    assert_eq!(last.due_ns as u128, u128::from(last.number) * 1_000_000_000_000_000 / 33_333_000);
    assert_eq!(last.number, slow.total() - 1);
}

#[test]
fn phases_begin_with_a_request_and_pauses_have_none() {
    let schedule = mixed();
    let due = all(&schedule);
    assert!(due.iter().all(|(_, phase)| *phase != 1));
    assert!(due.iter().all(|(t, phase)| schedule.phase_at(Duration::from_secs_f64(*t + 1e-9)) == *phase));
    let whole = Schedule::new(
        [(10.0, 2), (0.0, 3), (10.0, 1)]
            .map(|(rate, s)| Stretch { name: String::new(), length: s * S, rate_from: rate, rate_to: rate })
            .to_vec(),
    );
    let due = all(&whole);
    assert_eq!((due.len(), due[19], due[20]), (30, (1.9, 0), (5.0, 2)));
}

#[test]
fn shares_add_up_to_the_schedule_exactly() {
    for (name, even) in profiles() {
        let in_groups = [1, 3, 20, 1_000_000].map(|group| even.clone().in_groups(group));
        let all = in_groups.into_iter().chain([even.clone().poisson(7), even.poisson(7).in_groups(6)]);
        for schedule in all {
            let whole: Vec<Arrival> = schedule.arrivals(Share::WHOLE).collect();
            assert_eq!(whole.len() as u64, schedule.total(), "{name}");
            assert!(whole.windows(2).all(|w| w[0].due_ns <= w[1].due_ns && w[0].phase <= w[1].phase), "{name}");
            assert!(whole.iter().all(|a| a.due_ns >= 0 && a.due_ns <= schedule.length().as_nanos() as i64), "{name}");
            for (processes, loops) in [(1, 2), (5, 1), (3, 4), (1, 1_000_003)] {
                let loops_looked_at = loops.min(4);
                let mut merged: Vec<Arrival> = (0..processes)
                    .flat_map(|p| (0..loops_looked_at).map(move |l| Share { index: p, of: processes }.part(l, loops)))
                    .flat_map(|share| {
                        let part: Vec<Arrival> = schedule.arrivals(share).collect();
                        assert_eq!(part.len() as u64, share.count(schedule.total()), "{name} {share:?}");
                        part
                    })
                    .collect();
                merged.sort_by_key(|a| a.number);
                let expected = if loops == loops_looked_at { &whole[..] } else { &whole[..whole.len().min(4)] };
                assert_eq!(merged, expected, "{name}, {processes} x {loops}");
            }
        }
    }
}

#[test]
fn poisson_arrivals_are_independent() {
    let schedule = Schedule::constant(1_000.0, 100 * S).poisson(1);
    let due: Vec<f64> = all(&schedule).into_iter().map(|(t, _)| t).collect();
    let n = due.len() as f64;
    // 100,000 expected, standard deviation 316.
    assert!((n - 100_000.0).abs() < 5.0 * 316.0, "{n}");
    let gaps: Vec<f64> = due.windows(2).map(|w| (w[1] - w[0]) * 1_000.0).collect();
    let mean = gaps.iter().sum::<f64>() / n;
    let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / n;
    let neighbours = gaps.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>() / n;
    assert!((variance - 1.0).abs() < 0.05 && neighbours.abs() < 0.02, "{variance} {neighbours}");
    // Counts of windows: their variance is their mean.
    let mut counts = vec![0.0; 1_000];
    for t in &due {
        counts[(t * 10.0) as usize] += 1.0;
    }
    let dispersion = counts.iter().map(|c: &f64| (c - 100.0).powi(2)).sum::<f64>() / 1_000.0 / 100.0;
    assert!((dispersion - 1.0).abs() < 0.25, "{dispersion}");
    assert_ne!(schedule, Schedule::constant(1_000.0, 100 * S).poisson(2));
    assert_ne!(all(&schedule)[0], all(&Schedule::constant(1_000.0, 100 * S).poisson(2))[0]);
    // It follows a changing rate: three quarters of a ramp from 0 lie in its second half.
    let ramp = all(&Schedule::ramp(0.0, 2_000.0, 10 * S).poisson(3));
    let late = ramp.iter().filter(|(t, _)| *t >= 5.0).count() as f64 / ramp.len() as f64;
    assert!((late - 0.75).abs() < 0.02, "{late}");
}

/// Whatever the shape: each phase has as many requests as without groups, all groups but its last are whole, and a group
/// is due when its first request would be due alone.
#[test]
fn groups_keep_the_counts_and_come_at_one_instant() {
    for (name, even) in profiles().into_iter().filter(|(name, _)| *name != "replay") {
        let alone: Vec<Arrival> = even.arrivals(Share::WHOLE).collect();
        for size in [1, 2, 20, 333, 5_000_000] {
            let grouped: Vec<Arrival> = even.clone().in_groups(size).arrivals(Share::WHOLE).collect();
            assert_eq!(grouped.len(), alone.len(), "{name} by {size}");
            for (of_phase, own) in
                alone.chunk_by(|a, b| a.phase == b.phase).zip(grouped.chunk_by(|a, b| a.phase == b.phase))
            {
                assert_eq!((of_phase.len(), of_phase[0].phase), (own.len(), own[0].phase), "{name} by {size}");
                for (i, (arrival, in_group)) in of_phase.iter().zip(own).enumerate() {
                    let first = &of_phase[i - i % size as usize];
                    assert_eq!((in_group.number, in_group.due_ns), (arrival.number, first.due_ns), "{name} by {size}");
                }
            }
        }
        assert_ne!(even.clone().in_groups(2), even);
    }
    // A day at a constant rate has not drifted.
    let day = Schedule::constant(333.333, 86_400 * S).in_groups(7);
    for arrival in day.arrivals(Share { index: 999_983, of: 1_000_000 }) {
        let first = u128::from(arrival.number - arrival.number % 7);
        assert_eq!(arrival.due_ns as u128, first * 1_000_000_000_000_000 / 333_333_000);
    }
}

#[test]
fn random_groups_are_whole_and_keep_the_mean_rate() {
    let schedule = Schedule::constant(1_000.0, 1_000 * S).poisson(1).in_groups(20);
    let due: Vec<i64> = schedule.arrivals(Share::WHOLE).map(|a| a.due_ns).collect();
    let groups: Vec<&[i64]> = due.chunk_by(|a, b| a == b).collect();
    assert!(groups.iter().all(|group| group.len() == 20), "groups of 20");
    // 50,000 groups expected, standard deviation 224.
    assert!((groups.len() as f64 - 50_000.0).abs() < 5.0 * 224.0, "{}", groups.len());
    let gaps: Vec<f64> = groups.windows(2).map(|w| (w[1][0] - w[0][0]) as f64 / 2e7).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!((mean - 1.0).abs() < 0.03 && (variance - 1.0).abs() < 0.08, "{mean} {variance}");
    // The order of the two does not matter, and groups of one change nothing.
    let plain = Schedule::constant(50.0, 9 * S);
    assert_eq!(plain.clone().in_groups(4).poisson(3), plain.clone().poisson(3).in_groups(4));
    assert_eq!(plain.clone().poisson(3).in_groups(1), plain.poisson(3));
}

#[test]
fn rates_and_phases_beyond_the_end() {
    for (name, schedule) in profiles() {
        let after = schedule.length() + S;
        assert_eq!(schedule.phase_at(after), schedule.stretches().len() - 1, "{name}");
        assert_eq!(schedule.rate_at(after), 0.0, "{name}");
        assert!(schedule.stretches().iter().map(|s| s.length).sum::<Duration>() == schedule.length(), "{name}");
    }
}

#[test]
fn the_peak_is_the_highest_point() {
    assert_eq!(Schedule::sine(1_000.0, 600.0, 4 * S, 10 * S).peak_rate(), 1_600.0);
    assert_eq!(mixed().poisson(1).peak_rate(), 999.9);
    let log = timing(vec![0, 900_000_000, 1_000_000_000, 1_100_000_000, 1_200_000_000]);
    assert_eq!(Schedule::replayed(log, "r".into(), 2 * S).peak_rate(), 3.0);
}

/// Rates and lengths at the ends of what a scenario may ask for.
#[test]
fn extremes() {
    let year = 31_536_000 * S;
    let fast = Schedule::constant(1e7, year);
    assert_eq!(fast.total(), 315_360_000_000_000);
    let last = fast.arrivals(Share { index: u32::MAX - 1, of: u32::MAX }).last().unwrap();
    assert_eq!(last.due_ns, last.number as i64 * 100);
    for schedule in
        [Schedule::ramp(0.001, 1e7, year), Schedule::ramp(1e7, 0.0, year), Schedule::ramp(1e6, 1e6 + 1e-6, year)]
    {
        let share = Share { index: 5, of: 4_000_000_000 };
        let due: Vec<i64> = schedule.arrivals(share).map(|a| a.due_ns).collect();
        assert!(due.len() > 5_000 && due.windows(2).all(|w| w[0] < w[1]));
        let near: Vec<i64> = schedule.arrivals(Share::WHOLE).take(1_000).map(|a| a.due_ns).collect();
        assert!(near.windows(2).all(|w| w[0] <= w[1]));
    }
    let rare = Schedule::constant(0.001, 3_600 * S);
    assert_eq!(all(&rare), [(0.0, 0), (1_000.0, 0), (2_000.0, 0), (3_000.0, 0)]);
}
