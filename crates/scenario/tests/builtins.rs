//! The scenarios that come with the program, against the figures that were published.

use linerate_scenario::{Published, Scenario, builtin, find};
use units::{Bytes, Duration, Probability, Rate};

fn read(name: &str) -> Scenario {
    Scenario::builtin(name).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_built_in_scenario_is_sound_and_has_the_name_it_is_found_by() {
    for (name, _) in builtin() {
        let scenario = read(name);
        assert_eq!(scenario.name, *name);
        assert!(!scenario.about.is_empty(), "{name}");
        let cells = scenario.cells().unwrap_or_else(|error| panic!("{error}"));
        assert!(!cells.is_empty(), "{name}");
        // A machine with 1.5 GiB to spare runs all of them.
        assert!(scenario.cells_within(Bytes::new(1536 << 20)).is_ok(), "{name}");
        // Nothing may carry over from one variant to the next.
        assert!(scenario.sysctls.contains(&("net.ipv4.tcp_no_metrics_save".to_owned(), "1".to_owned())), "{name}");
    }
}

#[test]
fn a_name_that_is_not_built_in_is_answered_with_the_nearest() {
    assert_eq!(
        find("transcontinetal").expect_err("no such scenario").to_string(),
        "scenarios: \"transcontinetal\" is not a built-in scenario; did you mean \"transcontinental\"?"
    );
    assert_eq!(find("transcontinental").map(|(name, _)| name), Ok("transcontinental"));
}

/// One published row: scenario, profile, loss, goodput in kbit/s, RTT under load, queueing delay, completion (all in
/// milliseconds), retransmissions, First Contentful Paint in milliseconds; 0 is none.
type Row = (&'static str, &'static str, u32, u64, u64, u64, u64, u64, u64);

/// Copied by hand from the published tables, not from the scenario files. Loss in thousandths of a percent.
const PUBLISHED: &[Row] = &[
    ("cross-continental-lossy", "cubic (default stack)", 1500, 42_500, 210, 0, 0, 0, 0),
    ("cross-continental-lossy", "bbr (default stack)", 1500, 135_000, 124, 0, 0, 0, 0),
    ("cross-continental-lossy", "bbr + 64 MiB buffers", 1500, 178_200, 121, 0, 0, 0, 0),
    ("cellular-4g", "cubic (default stack)", 2000, 4_200, 0, 340, 48_200, 0, 1840),
    ("cellular-4g", "bbr + 64 MiB buffers", 2000, 28_600, 0, 18, 7_100, 0, 620),
    ("long-fat", "cubic (default stack)", 0, 464_000, 0, 0, 0, 1204, 0),
    ("long-fat", "bbr + 32 MiB buffers", 0, 1_780_000, 0, 0, 0, 312, 0),
    ("transcontinental", "cubic", 0, 940_000, 240, 0, 0, 0, 0),
    ("transcontinental", "cubic", 500, 240_000, 240, 0, 0, 0, 0),
    ("transcontinental", "cubic", 1500, 42_000, 240, 0, 0, 0, 0),
    ("transcontinental", "cubic", 3000, 12_000, 240, 0, 0, 0, 0),
    ("transcontinental", "bbr", 0, 942_000, 44, 0, 0, 0, 0),
    ("transcontinental", "bbr", 500, 938_000, 44, 0, 0, 0, 0),
    ("transcontinental", "bbr", 1500, 910_000, 44, 0, 0, 0, 0),
    ("transcontinental", "bbr", 3000, 780_000, 44, 0, 0, 0, 0),
];

#[test]
fn the_published_figures_are_the_published_ones_and_no_others() {
    let of = |time: Option<Duration>| time.map_or(0, Duration::as_millis);
    let mut found = Vec::new();
    for (name, _) in builtin() {
        for figures in &read(name).published {
            let Published { profile, loss, goodput, retransmissions, .. } = figures.clone();
            found.push((
                name.to_string(),
                profile,
                loss.map_or(u32::MAX, |loss| loss.as_ppb() / 10_000),
                goodput.map_or(0, |goodput| goodput.as_bps() / 1000),
                of(figures.rtt_under_load),
                of(figures.queueing_delay),
                of(figures.completion),
                retransmissions.unwrap_or(0),
                of(figures.first_contentful_paint),
            ));
            assert!(figures.note.is_some(), "{name}: what may disagree is explained");
        }
    }
    let mut expected: Vec<_> = PUBLISHED
        .iter()
        .map(|row| (row.0.to_owned(), row.1.to_owned(), row.2, row.3, row.4, row.5, row.6, row.7, row.8))
        .collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
}

#[test]
fn the_published_paths_are_the_published_ones() {
    for (name, mbps, rtt_us, losses) in [
        ("cross-continental-lossy", 200, 120_000, &["1.5%"][..]),
        ("cellular-4g", 32, 65_000, &["2%"]),
        ("long-fat", 10_000, 98_400, &["0%"]),
        ("transcontinental", 1_000, 80_000, &["0%", "0.5%", "1.5%", "3%"]),
    ] {
        let path = read(name).path;
        assert_eq!(path.forward.rate, path::RateModel::Constant(Rate::from_mbps(mbps)), "{name}");
        assert_eq!(path.rtts, [Duration::from_micros(rtt_us)], "{name}");
        let losses: Vec<Probability> = losses.iter().map(|loss| loss.parse().expect("a loss")).collect();
        assert_eq!(path.losses, losses, "{name}");
        assert_eq!(path.mean_burst_milli, None, "{name}: the guides call their loss random");
    }
}

#[test]
fn guide_profiles_have_the_buffers_the_guides_set() {
    let stock = ["4096 131072 6291456", "4096 16384 4194304"];
    for (name, profile, buffers) in [
        ("cross-continental-lossy", "cubic (default stack)", stock),
        ("cross-continental-lossy", "bbr (default stack)", stock),
        ("cross-continental-lossy", "bbr + 64 MiB buffers", ["4096 87380 67108864", "4096 65536 67108864"]),
        ("cellular-4g", "cubic (default stack)", stock),
        ("cellular-4g", "bbr (default stack)", stock),
        ("cellular-4g", "bbr + 64 MiB buffers", ["4096 87380 67108864", "4096 65536 67108864"]),
        ("long-fat", "cubic (default stack)", stock),
        ("long-fat", "bbr (default stack)", stock),
        ("long-fat", "bbr + 32 MiB buffers", ["4096 131072 33554432", "4096 16384 33554432"]),
        ("transcontinental", "cubic", ["4096 87380 33554432", "4096 65536 33554432"]),
        ("transcontinental", "bbr", ["4096 87380 33554432", "4096 65536 33554432"]),
    ] {
        let scenario = read(name);
        let profile = scenario.profiles.iter().find(|p| p.name == profile).expect("the profile is there");
        let effective = |sysctl: &str| {
            let mut all = scenario.sysctls.iter().chain(&profile.sysctls);
            all.rfind(|(name, _)| name == sysctl).map(|(_, value)| value.as_str())
        };
        assert_eq!(effective("net.ipv4.tcp_rmem"), Some(buffers[0]), "{name}, {}", profile.name);
        assert_eq!(effective("net.ipv4.tcp_wmem"), Some(buffers[1]), "{name}, {}", profile.name);
        assert!(profile.name.starts_with(&profile.congestion_control), "{name}, {}", profile.name);
    }
}

#[test]
fn the_figures_a_guide_calls_bbrv3_say_so_and_go_to_bbr3_once_it_is_asked_for() {
    for (name, claimed) in
        [("transcontinental", 4), ("cross-continental-lossy", 2), ("cellular-4g", 0), ("long-fat", 0)]
    {
        let published = read(name).published;
        let v3: Vec<_> = published.iter().filter(|f| f.congestion_control.as_deref() == Some("bbr3")).collect();
        assert_eq!(v3.len(), claimed, "{name}");
        assert!(v3.iter().all(|f| f.label.starts_with("BBRv3") && f.label.contains("as the guide calls it")), "{name}");
        assert_eq!(published.iter().filter(|f| f.label.contains("BBRv3")).count(), claimed, "{name}");
    }
}

#[test]
fn transcontinental_is_eight_runs_of_fifteen_seconds_with_a_queue_of_one_bdp() {
    let scenario = read("transcontinental");
    let cells = scenario.cells().expect("cells");
    assert_eq!(cells.len(), 8);
    assert_eq!(scenario.run.duration, Duration::from_secs(15));
    assert_eq!(scenario.run.warmup, Duration::from_secs(3));
    assert!(cells.iter().all(|cell| cell.queue_limit == path::QueueLimit::Bytes(Bytes::new(10_000_000))));
}

#[test]
fn both_bufferbloat_scenarios_differ_in_the_queue_discipline_alone() {
    let (tail, mut fq) = (read("bufferbloat"), read("bufferbloat-fq-codel"));
    assert_ne!(tail.path.forward.queue.discipline, fq.path.forward.queue.discipline);
    fq.path.forward.queue.discipline = tail.path.forward.queue.discipline;
    assert_eq!(tail.path, fq.path);
    assert_eq!((tail.flows, tail.profiles, tail.sysctls, tail.run), (fq.flows, fq.profiles, fq.sysctls, fq.run));
}
