//! What a sender's TCP samples say about the path that its data took.
//!
//! No probe is sent for this: the load of a test is the probe, and the kernel's counters are the evidence. A sender that is held back by a window or
//! by its own rate limit never meets the bottleneck, and then only a lower bound comes out, which is said.
//!
//! | figure | how |
//! | --- | --- |
//! | min RTT | the kernel's own minimum over the whole test |
//! | bottleneck bandwidth | the 90th percentile of what arrived in windows of a few RTTs, with headers; it is the bottleneck's only where a queue built up, or losses cut what exceeded it |
//! | queueing delay | 95th percentile of the smoothed RTT, less the minimum |
//! | loss | segments sent again over segments sent |
//! | kind of loss | see [`LossKind`] |
//!
//! How losses come about shows in what goes with them. Where a *queue overflows*, RTTs just before losses are among the highest there are. A
//! *policer* drops what exceeds its tokens, without a queue: losses come when as much has arrived beyond its rate as its bucket is deep, or, where
//! that is always so, of what is sent more nearly all is lost. *Random*
//! losses care for neither; they are counted like Poisson's, the variance of their number being about its mean, and in *bursts* the variance is many
//! times the mean.

use units::{Bytes, Duration, Instant, Rate};

use crate::stats::{mann_whitney, median, percentile};
use crate::traffic::TcpSample;

/// How losses come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossKind {
    /// There were none.
    None,
    /// Each for itself, whatever the load.
    Random,
    /// In bursts, whatever the load.
    Bursty,
    /// What exceeds a rate is dropped without a queue.
    Policed,
    /// A queue at the bottleneck overflows, or its management drops when it is long.
    QueueOverflow,
    /// Too few to tell.
    Unclear,
}

impl LossKind {
    /// As in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Random => "random",
            Self::Bursty => "bursty",
            Self::Policed => "policed",
            Self::QueueOverflow => "queue-overflow",
            Self::Unclear => "unclear",
        }
    }
}

/// What is known about a path.
#[derive(Debug, Clone, PartialEq)]
pub struct PathEstimate {
    /// Bottleneck bandwidth, headers of IP and TCP included.
    pub bottleneck: Option<Rate>,
    /// Whether it may be wider.
    pub at_least: bool,
    /// Minimum round-trip time.
    pub min_rtt: Option<Duration>,
    /// Queueing delay that the load caused.
    pub queueing_delay: Option<Duration>,
    /// Segments sent again over segments sent.
    pub loss: f64,
    /// How losses come about.
    pub loss_kind: LossKind,
    /// What that was told by.
    pub evidence: Evidence,
}

/// The figures that the verdict rests on.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Evidence {
    /// Samples in which losses showed.
    pub loss_events: usize,
    /// Whether RTTs rose by more than noise.
    pub queue_seen: bool,
    /// How much higher RTTs are just before losses than at other times: 1 always, 0 no different, -1 never. `None`: not enough of either.
    pub rtt_before_loss: Option<f64>,
    /// Segments lost for each segment more that was sent in a window; `None`: windows do not differ enough.
    pub lost_per_excess: Option<f64>,
    /// Of all losses, the share that came when more had just arrived than in nine tenths of the time, for the token rate that explains
    /// most of them. `None`: too few.
    pub empty_bucket: Option<f64>,
    /// Variance over mean of the losses in a window, what the load explains left out; `None`: too few.
    pub dispersion: Option<f64>,
    /// Share of the time in which a window of the sender or the receiver held the sender back.
    pub window_limited: f64,
}

impl PathEstimate {
    /// Bandwidth-delay product.
    pub fn bdp(&self) -> Option<Bytes> {
        Some(self.bottleneck?.bdp(self.min_rtt?))
    }
}

/// Fewer samples with losses than this tell nothing about their kind.
const LEAST_EVENTS: usize = 5;
/// A queue is seen where the RTT rises by this share of the minimum...
const QUEUE_SHARE: f64 = 0.1;
/// ...and by so much: less is noise of the ends.
const QUEUE_LEAST: Duration = Duration::from_micros(500);
/// Windows this near to the highest rates count as being there...
const NEAR_TOP: f64 = 0.1;
/// ...and this share of all of them makes a ceiling.
const PLATEAU: f64 = 0.2;
/// From this effect on, RTTs before losses are taken for higher.
const BEFORE_LOSS: f64 = 0.35;
/// From this slope on, what exceeds a rate is taken for dropped.
const EXCESS: f64 = 0.5;
/// From this share on, losses are taken to come from an empty bucket.
const EMPTY_BUCKET: f64 = 0.7;
/// From this dispersion on, losses are taken for bursts.
const BURSTY: f64 = 4.0;
/// A sender that is held back by a window for more than this share does not fill the path.
const WINDOW_LIMITED: f64 = 0.5;

/// Estimates from the samples of streams that ran side by side, each over the same time and in its order; `header` is what IP and TCP
/// add to each segment. `None` where the first stream has fewer than three samples.
pub fn estimate(streams: &[&[TcpSample]], header: Bytes) -> Option<PathEstimate> {
    let all = Joined::of(streams)?;
    let min_rtt = streams.iter().flat_map(|stream| stream.iter()).filter_map(|sample| sample.min_rtt).min();
    let windows = all.windows(window_length(min_rtt));
    let rates: Vec<f64> = windows.iter().map(|window| window.delivered / window.seconds).collect();
    let mss = streams.iter().filter_map(|stream| stream.last()).map(|last| last.mss.as_u64()).max().unwrap_or(0);
    let packet = (mss + header.as_u64()) as f64 * 8.0;
    let bottleneck = percentile(&rates, 90.0).map(|segments| Rate::from_bps((segments * packet) as u64));
    let queueing_delay = min_rtt.and_then(|least| {
        let rtts: Vec<Duration> = all.points.iter().filter_map(|point| point.srtt).collect();
        Some(percentile(&rtts, 95.0)?.saturating_sub(least))
    });
    let evidence = gather(&all, &windows, min_rtt, queueing_delay, streams);
    let sent = all.total(|point| point.delivered) + all.total(|point| point.lost);
    let lost = all.total(|point| point.lost);
    let loss = if sent > 0.0 { lost / sent } else { 0.0 };
    let loss_kind = judge(lost, &evidence);
    let filled = loss_kind == LossKind::Policed || is_plateau(&windows, &rates, min_rtt);
    Some(PathEstimate {
        bottleneck,
        at_least: !filled || evidence.window_limited > WINDOW_LIMITED,
        min_rtt,
        queueing_delay,
        loss,
        loss_kind,
        evidence,
    })
}

fn judge(lost: f64, evidence: &Evidence) -> LossKind {
    if lost == 0.0 {
        return LossKind::None;
    }
    let full_queue = evidence.queue_seen && evidence.rtt_before_loss.is_some_and(|effect| effect >= BEFORE_LOSS);
    // An overflow may be one event of thousands of segments at a flow's start, with the highest RTTs before it.
    if evidence.loss_events < LEAST_EVENTS {
        return if full_queue { LossKind::QueueOverflow } else { LossKind::Unclear };
    }
    if full_queue {
        return LossKind::QueueOverflow;
    }
    if is_policed(evidence) {
        return LossKind::Policed;
    }
    match evidence.dispersion {
        Some(dispersion) if dispersion >= BURSTY => LossKind::Bursty,
        Some(_) => LossKind::Random,
        None => LossKind::Unclear,
    }
}

/// Whether the highest rates are a ceiling that a queue stands before: a good share of windows is near it, and RTTs are raised in most of them.
fn is_plateau(windows: &[Window], rates: &[f64], min_rtt: Option<Duration>) -> bool {
    let (Some(top), Some(least)) = (percentile(rates, 90.0), min_rtt) else { return false };
    let near: Vec<&Window> =
        windows.iter().zip(rates).filter(|(_, rate)| (**rate / top - 1.0).abs() <= NEAR_TOP).map(|(w, _)| w).collect();
    let raised = near.iter().filter(|window| window.srtt.is_some_and(|rtt| rtt >= least + raised_by(least))).count();
    near.len() as f64 >= PLATEAU * windows.len() as f64 && raised * 2 > near.len()
}

/// What a queue raises the RTT by at least.
fn raised_by(min_rtt: Duration) -> Duration {
    QUEUE_LEAST.max(Duration::from_nanos((min_rtt.as_nanos() as f64 * QUEUE_SHARE) as u64))
}

/// Losses where a bucket of tokens must be empty; where that is always so, losses that grow with what is sent.
fn is_policed(evidence: &Evidence) -> bool {
    evidence.empty_bucket.is_some_and(|share| share >= EMPTY_BUCKET)
        || (!evidence.queue_seen && evidence.lost_per_excess.is_some_and(|slope| slope >= EXCESS))
}

/// Long enough that what is counted is not the timing of acknowledgements.
fn window_length(min_rtt: Option<Duration>) -> Duration {
    (min_rtt.unwrap_or(Duration::ZERO) * 2).max(Duration::from_millis(100))
}

/// All streams between two instants.
#[derive(Debug, Clone, Copy)]
struct Point {
    at: Instant,
    seconds: f64,
    /// Segments that arrived.
    delivered: f64,
    /// Segments sent again.
    lost: f64,
    /// Of the first stream, at the end.
    srtt: Option<Duration>,
}

struct Joined {
    points: Vec<Point>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Window {
    seconds: f64,
    delivered: f64,
    lost: f64,
    /// The highest in it, of the first stream.
    srtt: Option<Duration>,
}

impl Joined {
    fn of(streams: &[&[TcpSample]]) -> Option<Self> {
        let first = *streams.first()?;
        if first.len() < 3 {
            return None;
        }
        let mut places = vec![0; streams.len()];
        let mut totals = |at: Instant| {
            let mut sum = (0.0, 0.0);
            for (stream, place) in streams.iter().zip(&mut places) {
                while *place + 1 < stream.len() && stream[*place + 1].at <= at {
                    *place += 1;
                }
                if let Some(sample) = stream.get(*place) {
                    sum.0 += f64::from(sample.delivered_segments);
                    sum.1 += f64::from(sample.retransmitted_segments);
                }
            }
            sum
        };
        let mut points = Vec::new();
        let mut before = (first[0].at, totals(first[0].at));
        for sample in &first[1..] {
            let seconds = sample.at.since(before.0).as_secs_f64();
            if seconds <= 0.0 {
                continue;
            }
            let now = totals(sample.at);
            points.push(Point {
                at: sample.at,
                seconds,
                delivered: (now.0 - before.1.0).max(0.0),
                lost: (now.1 - before.1.1).max(0.0),
                srtt: sample.srtt,
            });
            before = (sample.at, now);
        }
        (points.len() >= 2).then_some(Self { points })
    }

    fn total(&self, of: fn(&Point) -> f64) -> f64 {
        self.points.iter().map(of).sum()
    }

    /// Points joined into windows of at least `length`.
    fn windows(&self, length: Duration) -> Vec<Window> {
        let mut windows = Vec::new();
        let mut current = Window::default();
        for point in &self.points {
            current.seconds += point.seconds;
            current.delivered += point.delivered;
            current.lost += point.lost;
            current.srtt = current.srtt.max(point.srtt);
            if current.seconds >= length.as_secs_f64() {
                windows.push(current);
                current = Window::default();
            }
        }
        windows
    }

    /// The highest smoothed RTT in the RTT and a half before each loss, and those of all other times.
    ///
    /// A loss shows about one RTT after the packet met the full queue, and is sent again then.
    fn rtts_by_loss(&self, least: Duration) -> (Vec<f64>, Vec<f64>) {
        let (mut before, mut other) = (Vec::new(), Vec::new());
        let mut quiet_from = Instant::ZERO;
        for (index, point) in self.points.iter().enumerate() {
            let Some(srtt) = point.srtt else { continue };
            let span = srtt.max(least) * 3 / 2;
            let since = Instant::from_nanos(point.at.as_nanos().saturating_sub(span.as_nanos()));
            let highest = self.points[..=index].iter().rev().take_while(|p| p.at >= since).filter_map(|p| p.srtt).max();
            let Some(highest) = highest else { continue };
            if point.lost > 0.0 {
                // One recovery is one event: what is sent again later in it met the same queue.
                if point.at >= quiet_from {
                    before.push(highest.as_millis_f64());
                    quiet_from = point.at + srtt;
                }
            } else if point.at >= quiet_from {
                other.push(highest.as_millis_f64());
            }
        }
        (before, other)
    }
}

fn gather(
    all: &Joined,
    windows: &[Window],
    min_rtt: Option<Duration>,
    queueing_delay: Option<Duration>,
    streams: &[&[TcpSample]],
) -> Evidence {
    let least = min_rtt.unwrap_or(Duration::ZERO);
    let (before, other) = all.rtts_by_loss(least);
    let enough = !before.is_empty() && other.len() >= LEAST_EVENTS;
    Evidence {
        loss_events: all.points.iter().filter(|point| point.lost > 0.0).count(),
        queue_seen: queueing_delay.is_some_and(|delay| delay >= raised_by(least)),
        rtt_before_loss: if enough { mann_whitney(&other, &before, 0.95).map(|test| test.effect) } else { None },
        lost_per_excess: lost_per_excess(windows),
        empty_bucket: empty_bucket(all),
        dispersion: dispersion(windows),
        window_limited: window_limited(streams),
    }
}

/// The slope of losses over what was sent, from window to window.
fn lost_per_excess(windows: &[Window]) -> Option<f64> {
    let busy: Vec<(f64, f64)> = windows
        .iter()
        .map(|window| ((window.delivered + window.lost) / window.seconds, window.lost / window.seconds))
        .collect();
    let mean = |of: fn(&(f64, f64)) -> f64| busy.iter().map(of).sum::<f64>() / busy.len() as f64;
    let (sent, lost) = (mean(|w| w.0), mean(|w| w.1));
    let spread: f64 = busy.iter().map(|w| (w.0 - sent).powi(2)).sum();
    let together: f64 = busy.iter().map(|w| (w.0 - sent) * (w.1 - lost)).sum();
    // Windows that differ by less than 2 % on average have nothing to say.
    let enough = busy.len() >= 8 && (spread / busy.len() as f64).sqrt() >= 0.02 * sent;
    enough.then(|| together / spread)
}

/// How far losses are explained by a bucket of tokens that is empty: the highest share over the token rates that are possible.
///
/// For a token rate, what was taken out of the bucket and not yet put back is a running sum of arrivals less the rate, never below zero. A
/// policer drops when that is as high as the bucket is deep, whatever that is. A loss shows up to an RTT after its packet, and the
/// bucket fills meanwhile, so that the highest sum of the RTT before counts.
fn empty_bucket(all: &Joined) -> Option<f64> {
    let events: Vec<usize> = (0..all.points.len()).filter(|index| all.points[*index].lost > 0.0).collect();
    let (first, last) = (*events.first()?, *events.last()?);
    let seconds = all.points[last].at.since(all.points[first].at).as_secs_f64();
    if events.len() < LEAST_EVENTS || seconds <= 0.0 {
        return None;
    }
    let arrived: f64 = all.points[first + 1..=last].iter().map(|point| point.delivered).sum();
    let lost: f64 = events.iter().map(|index| all.points[*index].lost).sum();
    let share_at = |rate: f64| {
        let mut level = 0.0f64;
        let levels: Vec<f64> = all
            .points
            .iter()
            .map(|point| {
                level = (level + point.delivered - rate * point.seconds).max(0.0);
                level
            })
            .collect();
        let high = percentile(&levels, 90.0).unwrap_or(0.0);
        if high <= 0.0 {
            return 0.0;
        }
        let explained = events.iter().filter(|index| {
            let point = &all.points[**index];
            let since =
                Instant::from_nanos(point.at.as_nanos().saturating_sub(point.srtt.map_or(0, Duration::as_nanos)));
            let recent =
                levels[..=**index].iter().zip(&all.points[..=**index]).rev().take_while(|(_, p)| p.at >= since);
            recent.map(|(level, _)| *level).fold(0.0, f64::max) >= high
        });
        explained.map(|index| all.points[*index].lost).sum::<f64>() / lost
    };
    (0..=10).map(|step| share_at(arrived / seconds * (1.0 + 0.05 * f64::from(step)))).reduce(f64::max)
}

/// Variance of the losses of a window over their mean, where each segment is lost with the same probability.
fn dispersion(windows: &[Window]) -> Option<f64> {
    let sent: f64 = windows.iter().map(|window| window.delivered + window.lost).sum();
    let share = windows.iter().map(|window| window.lost).sum::<f64>() / sent;
    // Windows in which less than one loss is expected in a hundred say nothing.
    let told: Vec<f64> = windows
        .iter()
        .map(|window| ((window.delivered + window.lost) * share, window.lost))
        .filter(|(expected, _)| *expected > 0.01)
        .map(|(expected, lost)| (lost - expected).powi(2) / expected)
        .collect();
    (told.len() >= 8 && sent > 0.0).then(|| told.iter().sum::<f64>() / (told.len() - 1) as f64)
}

fn window_limited(streams: &[&[TcpSample]]) -> f64 {
    let shares: Vec<f64> = streams
        .iter()
        .filter_map(|stream| {
            let (first, last) = (stream.first()?, stream.last()?);
            let busy = (last.busy - first.busy).as_secs_f64();
            let limited = (last.rwnd_limited - first.rwnd_limited) + (last.sndbuf_limited - first.sndbuf_limited);
            (busy > 0.0).then(|| limited.as_secs_f64() / busy)
        })
        .collect();
    median(&shares).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use host::tcp::CaState;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;

    /// A flow whose every 10 ms are told: segments delivered, segments lost, RTT in ms.
    fn flow(mut step: impl FnMut(usize) -> (u32, u32, u64)) -> Vec<TcpSample> {
        let mut samples = Vec::new();
        let (mut delivered, mut lost) = (0, 0);
        for n in 0..1_000 {
            let (more, gone, rtt) = step(n);
            delivered += more;
            lost += gone;
            samples.push(TcpSample {
                at: Instant::from_nanos(n as u64 * 10_000_000),
                bytes_acked: Bytes::new(u64::from(delivered) * 1448),
                delivered_segments: delivered,
                srtt: Some(Duration::from_millis(rtt)),
                min_rtt: Some(Duration::from_millis(20)),
                rttvar: Duration::ZERO,
                cwnd_segments: 100,
                ssthresh_segments: None,
                mss: Bytes::new(1448),
                unacked_segments: 0,
                sacked_segments: 0,
                lost_segments: 0,
                unsent: Bytes::ZERO,
                pacing_rate: None,
                delivery_rate: Rate::ZERO,
                delivery_app_limited: false,
                retransmitted_segments: lost,
                bytes_retrans: Bytes::ZERO,
                timeouts: None,
                reordering_seen: 0,
                busy: Duration::from_millis(n as u64 * 10),
                rwnd_limited: Duration::ZERO,
                sndbuf_limited: Duration::ZERO,
                ca_state: CaState::Open,
                send_window: None,
            });
        }
        samples
    }

    fn of(samples: &[TcpSample]) -> PathEstimate {
        estimate(&[samples], Bytes::new(52)).unwrap()
    }

    fn uniform(random: &mut Xoshiro256PlusPlus) -> f64 {
        (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    #[test]
    fn a_full_path_without_loss_shows_its_rate_and_its_queue() {
        let found = of(&flow(|_| (83, 0, 35)));
        // 83 segments of 1500 bytes in 10 ms.
        let rate = found.bottleneck.unwrap().as_mbps_f64();
        assert!((rate - 99.6).abs() < 0.5, "{rate}");
        assert!(!found.at_least);
        assert_eq!(found.queueing_delay, Some(Duration::from_millis(15)));
        assert_eq!(found.loss_kind, LossKind::None);
        assert_eq!(found.bdp().unwrap().as_u64() / 1000, 249);
    }

    #[test]
    fn without_a_queue_the_bottleneck_may_be_wider() {
        assert!(of(&flow(|_| (83, 0, 20))).at_least);
    }

    #[test]
    fn independent_losses_are_random_and_those_in_a_row_are_bursts() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let single = flow(|_| (83, (0..83).filter(|_| uniform(&mut random) < 0.01).count() as u32, 35));
        let found = of(&single);
        assert_eq!(found.loss_kind, LossKind::Random, "{found:?}");
        assert!((found.loss - 0.01).abs() < 0.002, "{found:?}");
        let rows = flow(|_| (83, if uniform(&mut random) < 0.02 { 40 } else { 0 }, 35));
        assert_eq!(of(&rows).loss_kind, LossKind::Bursty, "{:?}", of(&rows));
    }

    #[test]
    fn losses_at_the_highest_rtts_are_an_overflow() {
        // A sawtooth of the RTT with 20 losses at each peak.
        let saw = flow(|n| (83, if n % 100 == 99 { 20 } else { 0 }, 20 + (n % 100) as u64 * 60 / 100));
        assert_eq!(of(&saw).loss_kind, LossKind::QueueOverflow, "{:?}", of(&saw));
    }

    #[test]
    fn what_exceeds_a_rate_without_a_queue_is_policed() {
        // What is sent rises and falls by half; 83 segments pass and the rest is lost.
        let policed = flow(|n| {
            let sent = 60 + (n % 100) as u32 / 2;
            (sent.min(83), sent.saturating_sub(83), 20)
        });
        let found = of(&policed);
        assert_eq!(found.loss_kind, LossKind::Policed, "{found:?}");
        assert!(!found.at_least);
    }

    #[test]
    fn two_losses_tell_nothing_about_their_kind() {
        let found = of(&flow(|n| (83, u32::from(n == 300 || n == 700), 20)));
        assert_eq!(found.loss_kind, LossKind::Unclear, "{found:?}");
    }

    #[test]
    fn a_sender_held_back_by_a_window_does_not_know_the_bottleneck() {
        let mut samples = flow(|_| (83, 0, 35));
        for sample in &mut samples {
            sample.rwnd_limited = sample.busy;
        }
        assert!(of(&samples).at_least);
    }
}
