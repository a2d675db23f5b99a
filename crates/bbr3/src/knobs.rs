use units::{Duration, Probability};

use crate::raw::RawKnobs;

/// What may be chosen as the program is loaded. [`Knobs::default`] is the faithful BBRv3.
///
/// Fractions are rounded down to 1/256, the program's own resolution: 2 % is 5/256 = 1.95 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Knobs {
    /// Loss rate of one flight above which a bandwidth probe went too high and the long-term bound (`inflight_hi`) is set
    /// (BBR.LossThresh, 2 %). Below one.
    pub loss_thresh: Probability,
    /// The same, for leaving STARTUP (2 %).
    pub startup_loss_thresh: Probability,
    /// Loss rate of one flight up to which the short-term bandwidth bound (`bw_lo`) stays as it is. Zero, the default: every loss
    /// lowers it.
    pub bw_lo_loss_thresh: Probability,
    /// The same for the short-term bound on data in flight (`inflight_lo`).
    pub inflight_lo_loss_thresh: Probability,
    /// What is cut off on congestion (1 - BBR.Beta, 30 %). Below one.
    pub beta: Probability,
    /// Part of `inflight_hi` left free for others while cruising (BBR.Headroom, 15 %). Below one.
    pub headroom: Probability,
    /// Shortest wait between bandwidth probes (2 s).
    pub probe_wait_base: Duration,
    /// Random addition to it (up to 1 s).
    pub probe_wait_random: Duration,
    /// Most round trips between bandwidth probes (63). 1 to 250.
    pub probe_max_rounds: u8,
    /// How often PROBE_RTT comes at most (BBR.ProbeRTTInterval, 5 s).
    pub probe_rtt_interval: Duration,
    /// How long it holds the low window at least (BBR.ProbeRTTDuration, 200 ms).
    pub probe_rtt_duration: Duration,
    /// How long a minimum RTT is believed (BBR.MinRTTFilterLen, 10 s). At least `probe_rtt_interval`.
    pub min_rtt_window: Duration,
    /// How far below the estimated bandwidth pacing stays, in percent (BBR.PacingMarginPercent, 1). 0 to 50.
    pub pacing_margin_percent: u8,
    /// ACKs with news of loss in one round of recovery before STARTUP may end on loss (BBRStartupFullLossCnt, 6). 1 to 15.
    pub startup_full_loss_count: u8,
}

/// Two sets of knobs with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Profile {
    /// BBRv3 as specified. Collapses on paths that lose more than 2 % whatever the load.
    #[default]
    Faithful,
    /// For paths that lose packets without congestion: loss of up to 8 % of a flight moves no bound, and PROBE_RTT comes every 10 s, as in BBRv1
    /// (at 5 s it costs a flow on such a path 2 % of its goodput). Takes more than its share of shallow buffers and behind policers, and is
    /// slower to see that a standing queue has gone.
    LossyLink,
}

impl Profile {
    /// Its knobs.
    pub fn knobs(self) -> Knobs {
        match self {
            Self::Faithful => Knobs::default(),
            Self::LossyLink => {
                let tolerated = percent(8);
                Knobs {
                    loss_thresh: tolerated,
                    startup_loss_thresh: tolerated,
                    bw_lo_loss_thresh: tolerated,
                    inflight_lo_loss_thresh: tolerated,
                    probe_rtt_interval: Duration::from_secs(10),
                    ..Knobs::default()
                }
            }
        }
    }
}

/// A knob outside its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{knob} must be {range}")]
pub struct KnobError {
    /// The field of [`Knobs`].
    pub knob: &'static str,
    /// What it may be.
    pub range: &'static str,
}

const fn percent(percent: u32) -> Probability {
    Probability::from_ppb(percent * 10_000_000)
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            loss_thresh: percent(2),
            startup_loss_thresh: percent(2),
            bw_lo_loss_thresh: Probability::ZERO,
            inflight_lo_loss_thresh: Probability::ZERO,
            beta: percent(30),
            headroom: percent(15),
            probe_wait_base: Duration::from_secs(2),
            probe_wait_random: Duration::from_secs(1),
            probe_max_rounds: 63,
            probe_rtt_interval: Duration::from_secs(5),
            probe_rtt_duration: Duration::from_millis(200),
            min_rtt_window: Duration::from_secs(10),
            pacing_margin_percent: 1,
            startup_full_loss_count: 6,
        }
    }
}

/// In 1/256, rounded down as the kernel's fixed-point constants are.
fn unit(fraction: Probability) -> u32 {
    (u64::from(fraction.as_ppb()) * 256 / 1_000_000_000) as u32
}

fn below_one(knob: &'static str, fraction: Probability) -> Result<u32, KnobError> {
    match unit(fraction) {
        256.. => Err(KnobError { knob, range: "below 100 %" }),
        parts => Ok(parts),
    }
}

/// The longest time a knob may hold: the program adds it to clocks as a 32-bit count of microseconds.
const LONGEST: Duration = Duration::from_secs(3600);

fn micros(knob: &'static str, time: Duration, shortest: Duration) -> Result<u32, KnobError> {
    if time > LONGEST || time < shortest {
        return Err(KnobError { knob, range: if shortest == Duration::ZERO { "at most 1 h" } else { "1 ms to 1 h" } });
    }
    Ok(time.as_micros() as u32)
}

fn between(
    knob: &'static str,
    value: u8,
    allowed: std::ops::RangeInclusive<u8>,
    range: &'static str,
) -> Result<u32, KnobError> {
    if allowed.contains(&value) { Ok(u32::from(value)) } else { Err(KnobError { knob, range }) }
}

impl Knobs {
    /// Whether every knob is within its range.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), KnobError> {
        self.to_raw().map(|_| ())
    }

    /// From the program's own form: what [`Knobs::to_raw`] makes of it is the same again.
    pub fn from_raw(raw: RawKnobs) -> Self {
        let fraction = |parts: u32| Probability::from_ppb(parts.min(256) * (1_000_000_000 / 256));
        let time = |micros: u32| Duration::from_micros(u64::from(micros));
        let count = |value: u32| u8::try_from(value).unwrap_or(u8::MAX);
        Self {
            loss_thresh: fraction(raw.loss_thresh),
            startup_loss_thresh: fraction(raw.startup_loss_thresh),
            bw_lo_loss_thresh: fraction(raw.bw_lo_loss_thresh),
            inflight_lo_loss_thresh: fraction(raw.inflight_lo_loss_thresh),
            beta: fraction(raw.beta),
            headroom: fraction(raw.headroom),
            probe_wait_base: time(raw.probe_wait_base_us),
            probe_wait_random: time(raw.probe_wait_random_us),
            probe_max_rounds: count(raw.probe_max_rounds),
            probe_rtt_interval: time(raw.probe_rtt_interval_us),
            probe_rtt_duration: time(raw.probe_rtt_duration_us),
            min_rtt_window: time(raw.min_rtt_window_us),
            pacing_margin_percent: count(raw.pacing_margin_percent),
            startup_full_loss_count: count(raw.startup_full_loss_count),
        }
    }

    /// In the program's own form.
    ///
    /// # Errors
    /// The first knob that is not within its range.
    pub fn to_raw(self) -> Result<RawKnobs, KnobError> {
        let short = Duration::from_millis(1);
        if self.min_rtt_window < self.probe_rtt_interval {
            return Err(KnobError { knob: "min_rtt_window", range: "at least probe_rtt_interval" });
        }
        Ok(RawKnobs {
            loss_thresh: below_one("loss_thresh", self.loss_thresh)?,
            startup_loss_thresh: below_one("startup_loss_thresh", self.startup_loss_thresh)?,
            bw_lo_loss_thresh: below_one("bw_lo_loss_thresh", self.bw_lo_loss_thresh)?,
            inflight_lo_loss_thresh: below_one("inflight_lo_loss_thresh", self.inflight_lo_loss_thresh)?,
            beta: below_one("beta", self.beta)?,
            headroom: below_one("headroom", self.headroom)?,
            probe_wait_base_us: micros("probe_wait_base", self.probe_wait_base, short)?,
            probe_wait_random_us: micros("probe_wait_random", self.probe_wait_random, Duration::ZERO)?,
            probe_max_rounds: between("probe_max_rounds", self.probe_max_rounds, 1..=250, "1 to 250")?,
            probe_rtt_interval_us: micros("probe_rtt_interval", self.probe_rtt_interval, short)?,
            probe_rtt_duration_us: micros("probe_rtt_duration", self.probe_rtt_duration, short)?,
            min_rtt_window_us: micros("min_rtt_window", self.min_rtt_window, short)?,
            pacing_margin_percent: between("pacing_margin_percent", self.pacing_margin_percent, 0..=50, "0 to 50")?,
            startup_full_loss_count: between(
                "startup_full_loss_count",
                self.startup_full_loss_count,
                1..=15,
                "1 to 15",
            )?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_the_faithful_bbr3_in_the_kernels_fixed_point() {
        let raw = Knobs::default().to_raw().unwrap();
        assert_eq!((raw.loss_thresh, raw.startup_loss_thresh, raw.beta, raw.headroom), (5, 5, 76, 38));
        assert_eq!((raw.bw_lo_loss_thresh, raw.inflight_lo_loss_thresh), (0, 0));
        assert_eq!(
            (raw.probe_wait_base_us, raw.probe_wait_random_us, raw.probe_max_rounds),
            (2_000_000, 1_000_000, 63)
        );
        assert_eq!((raw.probe_rtt_interval_us, raw.probe_rtt_duration_us), (5_000_000, 200_000));
        assert_eq!((raw.min_rtt_window_us, raw.pacing_margin_percent, raw.startup_full_loss_count), (10_000_000, 1, 6));
        assert_eq!(Profile::Faithful.knobs(), Knobs::default());
    }

    #[test]
    fn the_lossy_link_profile_moves_every_loss_threshold_and_the_interval_of_probe_rtt_and_nothing_else() {
        let raw = Profile::LossyLink.knobs().to_raw().unwrap();
        let faithful = Knobs::default().to_raw().unwrap();
        assert_eq!(raw.loss_thresh, 20);
        let same = RawKnobs {
            loss_thresh: 5,
            startup_loss_thresh: 5,
            bw_lo_loss_thresh: 0,
            inflight_lo_loss_thresh: 0,
            probe_rtt_interval_us: 5_000_000,
            ..raw
        };
        assert_eq!(raw.probe_rtt_interval_us, 10_000_000);
        assert_eq!(same, faithful);
    }

    #[test]
    fn knobs_read_back_from_a_program_give_the_same_program() {
        for profile in [Profile::Faithful, Profile::LossyLink] {
            let raw = profile.knobs().to_raw().unwrap();
            assert_eq!(Knobs::from_raw(raw).to_raw().unwrap(), raw);
        }
        let raw = RawKnobs { beta: 255, headroom: 1, ..Knobs::default().to_raw().unwrap() };
        assert_eq!(Knobs::from_raw(raw).to_raw().unwrap(), raw);
    }

    #[test]
    fn a_knob_out_of_range_is_named() {
        let knobs = Knobs::default();
        let refused = |knobs: Knobs| knobs.check().unwrap_err().to_string();
        assert_eq!(refused(Knobs { loss_thresh: Probability::ONE, ..knobs }), "loss_thresh must be below 100 %");
        assert_eq!(refused(Knobs { beta: Probability::ONE, ..knobs }), "beta must be below 100 %");
        assert_eq!(refused(Knobs { probe_max_rounds: 0, ..knobs }), "probe_max_rounds must be 1 to 250");
        assert_eq!(refused(Knobs { pacing_margin_percent: 51, ..knobs }), "pacing_margin_percent must be 0 to 50");
        assert_eq!(
            refused(Knobs { probe_rtt_interval: Duration::from_secs(11), ..knobs }),
            "min_rtt_window must be at least probe_rtt_interval"
        );
        assert_eq!(
            refused(Knobs { probe_rtt_duration: Duration::ZERO, ..knobs }),
            "probe_rtt_duration must be 1 ms to 1 h"
        );
        assert_eq!(
            refused(Knobs { probe_wait_random: Duration::MAX, ..knobs }),
            "probe_wait_random must be at most 1 h"
        );
        assert!(Knobs { probe_wait_random: Duration::ZERO, ..knobs }.check().is_ok());
    }
}
