//! Events of a program that runs in this kernel, and replay of what was recorded from it.

mod common;

use std::time::Duration;

use bbr3::recording::{Recording, Writer};
use bbr3::{Event, Filter, Knobs, Mode, Running, TraceError, Tracer};
use bbr3_native::{Conformance, Replay};
use common::{load, shaped, transfer};
use testkit::require_root_or_skip;

fn poll(tracer: &mut Tracer, mut seen: impl FnMut(&[u8])) {
    tracer.poll(Duration::ZERO, &mut seen).expect("read events");
}

fn events(bytes: &[Vec<u8>]) -> Vec<Event> {
    bytes.iter().map(|bytes| Event::from_bytes(bytes).expect("an event")).collect()
}

#[test]
fn a_recording_from_this_kernel_replays_to_the_same_decisions_and_the_same_state_in_c_and_in_rust() {
    require_root_or_skip!();
    let knobs = Knobs { probe_rtt_interval: units::Duration::from_secs(1), ..Knobs::default() };
    let loaded = load(|options| options.knobs = knobs);
    let ends = shaped("60mbit", 60_000);
    let running = Running::find(loaded.name()).expect("find what was just loaded");
    let mut tracer = Tracer::start(running, Filter::default(), true).expect("start reading");
    let header = tracer.header().unwrap();
    assert_eq!(header.knobs, knobs.to_raw().unwrap());
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    transfer(&ends, loaded.name(), Duration::from_secs(4), || {
        poll(&mut tracer, |event| writer.add(event).unwrap());
    });
    poll(&mut tracer, |event| writer.add(event).unwrap());
    assert_eq!(tracer.dropped().unwrap(), 0);

    let file = writer.finish().unwrap();
    let recording = Recording::open(file.as_slice()).unwrap();
    let mut replay = Replay::new(recording.header().clone());
    let mut rust = Conformance::new(recording.header().clone());
    let mut entered = Vec::new();
    for event in recording {
        let event = event.expect("a whole event");
        if let Event::Transition(transition) = &event {
            entered.extend(transition.to);
        }
        replay.feed(&event).unwrap_or_else(|difference| panic!("C: {difference}"));
        rust.feed(&event).unwrap_or_else(|difference| panic!("Rust: {difference}"));
    }
    let done = replay.replayed();
    assert_eq!(rust.replayed(), done);
    assert_eq!((done.from_init, done.snapshots, done.skipped), (1, 0, 0), "the socket was seen from its first call");
    assert!(done.acks > 1000, "{done:?}");
    assert!(done.calls > done.acks, "loss recovery was part of it: {done:?}");
    for mode in [Mode::Drain, Mode::Down, Mode::Cruise, Mode::Refill, Mode::Up, Mode::ProbeRtt] {
        assert!(entered.contains(&mode), "{} was part of it: {entered:?}", mode.name());
    }
    println!("{done:?}, {} bytes", file.len());
    if let Some(path) = std::env::var_os("LINERATE_KEEP_RECORDING") {
        std::fs::write(path, &file).expect("keep the recording");
    }
}

#[test]
fn a_changed_decision_is_found_by_the_replay() {
    require_root_or_skip!();
    let loaded = load(|_| {});
    let ends = shaped("60mbit", 60_000);
    let mut tracer = Tracer::start(Running::find(loaded.name()).unwrap(), Filter::default(), true).unwrap();
    let mut bytes = Vec::new();
    transfer(&ends, loaded.name(), Duration::from_millis(300), || {
        poll(&mut tracer, |event| bytes.push(event.to_vec()))
    });
    let mut replay = Replay::new(tracer.header().unwrap());
    let mut calls = 0;
    let difference = events(&bytes).into_iter().find_map(|mut event| {
        if let Event::Call(call) = &mut event {
            calls += 1;
            call.cwnd += u32::from(calls == 50);
        }
        replay.feed(&event).err()
    });
    let difference = difference.expect("the changed window is noticed");
    assert_eq!((difference.field, difference.after), ("cwnd", 49));
}

#[test]
fn a_recording_that_begins_in_the_middle_starts_from_a_snapshot() {
    require_root_or_skip!();
    let loaded = load(|_| {});
    let ends = shaped("60mbit", 60_000);
    let mut tracer: Option<Tracer> = None;
    let mut bytes = Vec::new();
    let mut ticks = 0;
    transfer(&ends, loaded.name(), Duration::from_secs(2), || {
        ticks += 1;
        if ticks == 50 {
            tracer = Some(Tracer::start(Running::find(loaded.name()).unwrap(), Filter::default(), true).unwrap());
        }
        if let Some(tracer) = &mut tracer {
            poll(tracer, |event| bytes.push(event.to_vec()));
        }
    });
    let header = tracer.unwrap().header().unwrap();
    let mut replay = Replay::new(header.clone());
    let mut rust = Conformance::new(header);
    for event in events(&bytes) {
        replay.feed(&event).unwrap_or_else(|difference| panic!("C: {difference}"));
        rust.feed(&event).unwrap_or_else(|difference| panic!("Rust: {difference}"));
    }
    let done = replay.replayed();
    assert_eq!(rust.replayed(), done);
    assert_eq!((done.from_init, done.snapshots, done.skipped), (0, 1, 0));
    assert!(done.acks > 100, "{done:?}");
}

#[test]
fn a_gap_is_counted_and_the_recording_goes_on_from_a_snapshot() {
    require_root_or_skip!();
    let loaded = load(|_| {});
    let ends = shaped("400mbit", 400_000);
    let mut tracer = Tracer::start(Running::find(loaded.name()).unwrap(), Filter::default(), true).unwrap();
    let mut bytes = Vec::new();
    let mut ticks = 0;
    transfer(&ends, loaded.name(), Duration::from_secs(2), || {
        ticks += 1;
        // From here on nobody empties the ring buffer until it is full.
        if ticks < 20 || tracer.dropped().unwrap() > 0 {
            poll(&mut tracer, |event| bytes.push(event.to_vec()));
        }
    });
    assert!(tracer.dropped().unwrap() > 0);
    let mut replay = Replay::new(tracer.header().unwrap());
    for event in events(&bytes) {
        replay.feed(&event).unwrap_or_else(|difference| panic!("{difference}"));
    }
    let done = replay.replayed();
    assert!(done.snapshots > 0 && done.skipped == 0, "{done:?}");
}

#[test]
fn transitions_tell_who_and_why_and_only_of_the_sockets_asked_for() {
    require_root_or_skip!();
    let loaded = load(|_| {});
    let ends = shaped("60mbit", 60_000);
    let netns = ends.client.inode().unwrap() as u32;
    for (filter, wanted) in [
        (Filter { netns: Some(netns), remote: Some(ends.server_addr), ..Filter::default() }, true),
        (Filter { remote: Some(ends.client_addr), ..Filter::default() }, false),
        (Filter { netns: Some(netns + 1), ..Filter::default() }, false),
        (Filter { port: Some(1), ..Filter::default() }, false),
    ] {
        let mut tracer = Tracer::start(Running::find(loaded.name()).unwrap(), filter, false).unwrap();
        let mut bytes = Vec::new();
        transfer(&ends, loaded.name(), Duration::from_secs(1), || {
            poll(&mut tracer, |event| bytes.push(event.to_vec()))
        });
        poll(&mut tracer, |event| bytes.push(event.to_vec()));
        let events = events(&bytes);
        if !wanted {
            assert_eq!(events, [], "{filter:?}");
            continue;
        }
        let Event::Flow(flow) = &events[0] else { panic!("the socket comes first: {:?}", events[0]) };
        assert_eq!((flow.netns, flow.local.0, flow.remote.0), (netns, ends.client_addr, ends.server_addr));
        let Event::Transition(first) = &events[1] else { panic!("{:?}", events[1]) };
        assert_eq!((first.from, first.to, first.flow), (Mode::Startup, Some(Mode::Drain), flow.number));
        let bandwidths = events.iter().filter_map(|event| match event {
            Event::Transition(transition) => Some(transition.bandwidth.as_mbps_f64()),
            _ => None,
        });
        // On a path of microseconds the estimate is rough.
        assert!(bandwidths.fold(0.0, |_, last| last) > 10.0);
        assert!(events.iter().all(|event| !matches!(event, Event::Call(_) | Event::Snapshot(_))));
    }
}

#[test]
fn there_is_one_reader_at_a_time_and_after_it_nothing_is_written() {
    require_root_or_skip!();
    let loaded = load(|_| {});
    let find = || Running::find(loaded.name()).unwrap();
    let tracer = Tracer::start(find(), Filter::default(), true).unwrap();
    let refused = Tracer::start(find(), Filter::default(), false);
    assert!(matches!(refused, Err(TraceError::Busy(pid)) if pid == std::process::id()), "{refused:?}");
    drop(tracer);
    // Far more than the ring buffer holds: had anybody written, events would be dropped.
    let ends = shaped("400mbit", 400_000);
    transfer(&ends, loaded.name(), Duration::from_secs(1), || {});
    assert_eq!(loaded.totals().unwrap().dropped_events, 0);
    let mut tracer = Tracer::start(find(), Filter::default(), true).unwrap();
    poll(&mut tracer, |event| panic!("an event of before: {event:?}"));
}

#[test]
fn a_name_that_nobody_has_loaded_is_said() {
    require_root_or_skip!();
    let error = Running::find("nobody-has-this").unwrap_err();
    assert_eq!(error.to_string(), "no BBRv3 of linerate is loaded as \"nobody-has-this\"");
    let error = Running::find("cubic").unwrap_err();
    assert_eq!(error.to_string(), "no BBRv3 of linerate is loaded as \"cubic\"");
}
