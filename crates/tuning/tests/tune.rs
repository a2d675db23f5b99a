//! The tuning job on model hosts whose truth is known.

use std::collections::BTreeSet;

use tuning::plan::{Change, ChangeKind, Place};
use tuning::tune::{Block, Difference, Ends, Event, Kept, Limits, Options, Outcome, Part, Sample, Settled, run};

const CONTROL: &str = "net.ipv4.tcp_congestion_control";
const BUFFERS: &str = "net.ipv4.tcp_rmem";
const QUEUES: &str = "net.core.netdev_max_backlog";
const ACCEPT: &str = "net.core.somaxconn";

/// What a host gives with a set of keys set.
type Truth = fn(&BTreeSet<String>) -> Sample;

struct Model {
    set: BTreeSet<String>,
    truth: Truth,
    random: u64,
    runs: u32,
    /// Stops, or fails, at this call; counted over all calls that act.
    stop_at: u32,
    fail_at: u32,
    calls: u32,
}

impl Model {
    fn new(truth: Truth, seed: u64) -> Self {
        Self {
            set: BTreeSet::new(),
            truth,
            random: seed * 2 + 1,
            runs: 0,
            stop_at: u32::MAX,
            fail_at: u32::MAX,
            calls: 0,
        }
    }

    /// Uniform in -1 to 1 (xorshift64).
    fn noise(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn act(&mut self) -> Result<(), &'static str> {
        self.calls += 1;
        if self.calls == self.fail_at { Err("refused") } else { Ok(()) }
    }
}

impl Ends for Model {
    type Error = &'static str;

    fn measure(&mut self) -> Result<Sample, Self::Error> {
        self.act()?;
        self.runs += 1;
        let truth = (self.truth)(&self.set);
        let (first, second) = (self.noise(), self.noise());
        Ok(Sample {
            goodput_bps: truth.goodput_bps * (1.0 + 0.05 * first),
            rtt_loaded_ms: truth.rtt_loaded_ms.map(|rtt| rtt * (1.0 + 0.05 * second)),
            retransmitted_share: truth.retransmitted_share * (1.0 + 0.2 * first),
        })
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), Self::Error> {
        self.act()?;
        for change in changes {
            assert!(self.set.insert(change.key.clone()), "{} is set twice", change.key);
        }
        Ok(())
    }

    fn undo(&mut self, changes: &[Change]) -> Result<(), Self::Error> {
        self.act()?;
        for change in changes {
            assert!(self.set.remove(&change.key), "{} is not set", change.key);
        }
        Ok(())
    }

    fn stopped(&self) -> bool {
        self.calls >= self.stop_at
    }

    fn tell(&mut self, _: Event<'_>) {}
}

fn signed_rank(with: &[f64], without: &[f64]) -> Difference {
    let pairs: Vec<(f64, f64)> = without.iter().copied().zip(with.iter().copied()).collect();
    let none = Difference { estimate: 0.0, low: 0.0, high: 0.0, p: 1.0 };
    measure::stats::signed_rank(&pairs, 0.95).map_or(none, |test| {
        let (low, high) = test.interval.map_or((test.shift, test.shift), |interval| (interval.low, interval.high));
        Difference { estimate: test.shift, low, high, p: test.p }
    })
}

fn change(key: &str) -> Change {
    Change {
        kind: ChangeKind::Sysctl,
        key: key.into(),
        from: "0".into(),
        to: "1".into(),
        place: Place::Namespace,
        why: String::new(),
        effect: String::new(),
        risk: String::new(),
        source: String::new(),
    }
}

fn parts() -> Vec<Part> {
    [CONTROL, BUFFERS, QUEUES, ACCEPT]
        .map(|key| Part { block: Block::of(&change(key)), changes: vec![change(key)] })
        .to_vec()
}

fn job(model: &mut Model) -> Result<Outcome, &'static str> {
    let mut with_first = false;
    let mut options = Options {
        pairs: 6,
        limits: Limits::default(),
        differ: &signed_rank,
        with_first: &mut || {
            with_first = !with_first;
            with_first
        },
    };
    run(model, parts(), &mut options)
}

fn settled(outcome: &Outcome) -> Vec<Settled> {
    outcome.blocks.iter().map(|job| job.settled).collect()
}

fn sample(megabits: f64, rtt: f64, retransmitted_share: f64) -> Sample {
    Sample { goodput_bps: megabits * 1e6, rtt_loaded_ms: Some(rtt), retransmitted_share }
}

#[test]
fn what_helps_stays_and_what_makes_no_difference_goes() {
    let mut model = Model::new(
        |set| if set.contains(CONTROL) { sample(130.0, 125.0, 0.02) } else { sample(40.0, 121.0, 0.015) },
        1,
    );
    let outcome = job(&mut model).unwrap();
    let expected = [Settled::Kept(Kept::Helped), Settled::NoDifference, Settled::NoDifference, Settled::NotMeasurable];
    assert_eq!(settled(&outcome), expected);
    assert_eq!(model.set, BTreeSet::from([CONTROL.to_owned()]));
    assert_eq!(outcome.kept().map(|change| change.key.as_str()).collect::<Vec<_>>(), [CONTROL]);
    let whole = outcome.judgement.unwrap();
    assert!((2.8..3.8).contains(&whole.goodput_ratio[0]), "{whole:?}");
}

#[test]
fn a_block_that_only_works_with_a_later_one_is_kept_as_needed() {
    // The receive window bounds both controls; with room, only one of them uses it.
    let truth: Truth = |set| match (set.contains(CONTROL), set.contains(BUFFERS)) {
        (_, false) => sample(100.0, 90.0, 0.0),
        (false, true) => sample(160.0, 90.0, 0.0),
        (true, true) => sample(400.0, 92.0, 0.0),
    };
    let mut model = Model::new(truth, 2);
    let outcome = job(&mut model).unwrap();
    assert_eq!(settled(&outcome)[..2], [Settled::Kept(Kept::Needed), Settled::Kept(Kept::Helped)]);
    assert_eq!(model.set.len(), 2);
}

#[test]
fn nothing_is_changed_where_nothing_helps_and_no_run_is_wasted() {
    let mut model = Model::new(|_| sample(940.0, 0.4, 0.0), 3);
    let outcome = job(&mut model).unwrap();
    assert!(outcome.kept().next().is_none());
    assert_eq!(outcome.judgement, None);
    assert!(model.set.is_empty());
    assert!(model.runs < 3 * 12, "{} runs: a pair that can change nothing is not run", model.runs);
    for block in &outcome.blocks[..3] {
        assert!(block.series.with.len() >= 2, "one pair alone decides nothing: {:?}", block.series);
    }
}

#[test]
fn what_lengthens_the_queue_without_carrying_more_is_taken_back() {
    let mut model = Model::new(|set| sample(50.0, if set.contains(BUFFERS) { 400.0 } else { 60.0 }, 0.0), 4);
    let outcome = job(&mut model).unwrap();
    assert_eq!(settled(&outcome)[1], Settled::Harmed);
    assert!(model.set.is_empty());
}

#[test]
fn a_shorter_queue_is_a_help_of_its_own() {
    let mut model = Model::new(|set| sample(50.0, if set.contains(CONTROL) { 60.0 } else { 400.0 }, 0.0), 5);
    let outcome = job(&mut model).unwrap();
    assert_eq!(settled(&outcome)[0], Settled::Kept(Kept::Helped));
}

#[test]
fn retransmissions_are_paid_for_by_much_more_goodput_only() {
    let cheap: Truth = |set| if set.contains(CONTROL) { sample(44.0, 60.0, 0.05) } else { sample(40.0, 60.0, 0.001) };
    let dear: Truth = |set| if set.contains(CONTROL) { sample(80.0, 60.0, 0.05) } else { sample(40.0, 60.0, 0.001) };
    assert_eq!(settled(&job(&mut Model::new(cheap, 6)).unwrap())[0], Settled::Harmed);
    assert_eq!(settled(&job(&mut Model::new(dear, 6)).unwrap())[0], Settled::Kept(Kept::Helped));
}

#[test]
fn blocks_that_undo_each_other_leave_the_host_as_it_was() {
    // Each helps beside what was there at its turn, and all together carry nothing more.
    let truth: Truth = |set| match (set.contains(CONTROL), set.contains(BUFFERS)) {
        (false, _) => sample(100.0, 60.0, 0.0),
        (true, false) => sample(80.0, 20.0, 0.0),
        (true, true) => sample(96.0, 61.0, 0.0),
    };
    let mut model = Model::new(truth, 7);
    let outcome = job(&mut model).unwrap();
    assert!(outcome.kept().next().is_none(), "{:?}", settled(&outcome));
    assert!(model.set.is_empty());
}

#[test]
fn stopped_anywhere_it_keeps_only_what_was_decided() {
    let truth: Truth = |set| match (set.contains(CONTROL), set.contains(BUFFERS)) {
        (_, false) => sample(100.0, 90.0, 0.0),
        (false, true) => sample(160.0, 90.0, 0.0),
        (true, true) => sample(400.0, 92.0, 0.0),
    };
    let mut whole = Model::new(truth, 8);
    job(&mut whole).unwrap();
    for stop_at in 0..whole.calls {
        let mut model = Model::new(truth, 8);
        model.stop_at = stop_at;
        let outcome = job(&mut model).unwrap();
        assert!(outcome.partial, "stopped at call {stop_at}");
        let kept: BTreeSet<String> = outcome.kept().map(|change| change.key.clone()).collect();
        assert_eq!(model.set, kept, "stopped at call {stop_at}");
    }
}

#[test]
fn every_failure_is_handed_on() {
    let truth: Truth = |set| if set.contains(CONTROL) { sample(130.0, 90.0, 0.0) } else { sample(40.0, 90.0, 0.0) };
    let mut whole = Model::new(truth, 9);
    job(&mut whole).unwrap();
    for fail_at in 1..=whole.calls {
        let mut model = Model::new(truth, 9);
        model.fail_at = fail_at;
        assert_eq!(job(&mut model).unwrap_err(), "refused", "at call {fail_at}");
    }
}

#[test]
fn two_hundred_hosts_on_which_nothing_matters_are_left_alone_as_often_as_stated() {
    // Three blocks with a false difference in one of twenty at most; and those have to be as large as a help must be.
    let touched = (0..200).filter(|seed| !{
        let mut model = Model::new(|_| sample(50.0, 60.0, 0.01), 1000 + seed);
        job(&mut model).unwrap();
        model.set.is_empty()
    });
    let touched = touched.count();
    assert!(touched <= 10, "{touched} of 200 hosts were changed for nothing");
}
