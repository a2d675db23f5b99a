use units::{Duration, Probability};

/// What may be chosen. [`Params::default`] is the draft's BBRv3. The same set, ranges and defaults as the knobs of linerate's kernel program.
///
/// Fractions are rounded down to 1/256, the resolution of the arithmetic: 2 % is 5/256 = 1.95 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// Loss rate of one flight above which a bandwidth probe went too high and the long-term bound on packets in flight is set (BBR.LossThresh,
    /// 2 %). Below one.
    pub loss_thresh: Probability,
    /// The same, for leaving STARTUP (2 %).
    pub startup_loss_thresh: Probability,
    /// Loss rate of one flight up to which the short-term bound on the bandwidth stays as it is. Zero, the default: every loss lowers it.
    pub bw_lo_loss_thresh: Probability,
    /// The same for the short-term bound on packets in flight.
    pub inflight_lo_loss_thresh: Probability,
    /// What is cut off on congestion (1 - BBR.Beta, 30 %). Below one.
    pub beta: Probability,
    /// Part of the long-term bound left free for others while cruising (BBR.Headroom, 15 %). Below one.
    pub headroom: Probability,
    /// Shortest wait between bandwidth probes (2 s). 1 ms to 1 h.
    pub probe_wait_base: Duration,
    /// Random addition to it (up to 1 s). At most 1 h.
    pub probe_wait_random: Duration,
    /// Most round trips between bandwidth probes (63). 1 to 250.
    pub probe_max_rounds: u8,
    /// How often PROBE_RTT comes at most (BBR.ProbeRTTInterval, 5 s). 1 ms to 1 h.
    pub probe_rtt_interval: Duration,
    /// How long it holds the low window at least (BBR.ProbeRTTDuration, 200 ms). 1 ms to 1 h.
    pub probe_rtt_duration: Duration,
    /// How long a minimum RTT is believed (BBR.MinRTTFilterLen, 10 s). At least `probe_rtt_interval`, at most 1 h.
    pub min_rtt_window: Duration,
    /// How far below the estimated bandwidth pacing stays, in percent (BBR.PacingMarginPercent, 1). 0 to 50.
    pub pacing_margin_percent: u8,
    /// ACKs with news of loss in one round of recovery before STARTUP may end on loss (BBRStartupFullLossCnt, 6). 1 to 15.
    pub startup_full_loss_count: u8,
}

const fn percent(percent: u32) -> Probability {
    Probability::from_ppb(percent * 10_000_000)
}

impl Default for Params {
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

/// A parameter outside its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{param} must be {range}")]
pub struct ParamError {
    /// The field of [`Params`].
    pub param: &'static str,
    /// What it may be.
    pub range: &'static str,
}

/// The parameters as the arithmetic uses them: fractions of 256, times in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fixed {
    pub loss_thresh: u32,
    pub startup_loss_thresh: u32,
    pub bw_lo_loss_thresh: u32,
    pub inflight_lo_loss_thresh: u32,
    pub beta: u32,
    pub headroom: u32,
    pub probe_wait_base_us: u32,
    pub probe_wait_random_us: u32,
    pub probe_max_rounds: u32,
    pub probe_rtt_interval_us: u64,
    pub probe_rtt_duration_us: u64,
    pub min_rtt_window_us: u64,
    pub pacing_margin_percent: u32,
    pub startup_full_loss_count: u8,
}

fn below_one(param: &'static str, fraction: Probability) -> Result<u32, ParamError> {
    match (u64::from(fraction.as_ppb()) * 256 / 1_000_000_000) as u32 {
        256.. => Err(ParamError { param, range: "below 100 %" }),
        parts => Ok(parts),
    }
}

fn micros(param: &'static str, time: Duration, shortest: Duration) -> Result<u32, ParamError> {
    if time > Duration::from_secs(3600) || time < shortest {
        let range = if shortest == Duration::ZERO { "at most 1 h" } else { "1 ms to 1 h" };
        return Err(ParamError { param, range });
    }
    Ok(time.as_micros() as u32)
}

impl Params {
    /// For paths that lose packets without congestion: loss of up to 8 % of a flight moves no bound, and PROBE_RTT comes every 10 s. Takes more
    /// than its share of shallow buffers and behind policers.
    pub fn lossy_link() -> Self {
        let tolerated = percent(8);
        Self {
            loss_thresh: tolerated,
            startup_loss_thresh: tolerated,
            bw_lo_loss_thresh: tolerated,
            inflight_lo_loss_thresh: tolerated,
            probe_rtt_interval: Duration::from_secs(10),
            ..Self::default()
        }
    }

    /// In fixed point.
    ///
    /// # Errors
    /// The first that is not within its range.
    pub(crate) fn to_fixed(self) -> Result<Fixed, ParamError> {
        let short = Duration::from_millis(1);
        let between = |param, value: u8, most: u8, least: u8, range| {
            if (least..=most).contains(&value) { Ok(value) } else { Err(ParamError { param, range }) }
        };
        if self.min_rtt_window < self.probe_rtt_interval {
            return Err(ParamError { param: "min_rtt_window", range: "at least probe_rtt_interval" });
        }
        let margin = between("pacing_margin_percent", self.pacing_margin_percent, 50, 0, "0 to 50")?;
        Ok(Fixed {
            loss_thresh: below_one("loss_thresh", self.loss_thresh)?,
            startup_loss_thresh: below_one("startup_loss_thresh", self.startup_loss_thresh)?,
            bw_lo_loss_thresh: below_one("bw_lo_loss_thresh", self.bw_lo_loss_thresh)?,
            inflight_lo_loss_thresh: below_one("inflight_lo_loss_thresh", self.inflight_lo_loss_thresh)?,
            beta: below_one("beta", self.beta)?,
            headroom: below_one("headroom", self.headroom)?,
            probe_wait_base_us: micros("probe_wait_base", self.probe_wait_base, short)?,
            probe_wait_random_us: micros("probe_wait_random", self.probe_wait_random, Duration::ZERO)?,
            probe_max_rounds: between("probe_max_rounds", self.probe_max_rounds, 250, 1, "1 to 250")?.into(),
            probe_rtt_interval_us: micros("probe_rtt_interval", self.probe_rtt_interval, short)?.into(),
            probe_rtt_duration_us: micros("probe_rtt_duration", self.probe_rtt_duration, short)?.into(),
            min_rtt_window_us: micros("min_rtt_window", self.min_rtt_window, short)?.into(),
            pacing_margin_percent: margin.into(),
            startup_full_loss_count: between(
                "startup_full_loss_count",
                self.startup_full_loss_count,
                15,
                1,
                "1 to 15",
            )?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_out_of_range_is_named() {
        let default = Params::default();
        let refused = |params: Params| params.to_fixed().unwrap_err();
        assert_eq!(refused(Params { beta: Probability::ONE, ..default }).param, "beta");
        assert_eq!(refused(Params { probe_max_rounds: 0, ..default }).range, "1 to 250");
        assert_eq!(refused(Params { probe_rtt_interval: Duration::from_secs(11), ..default }).param, "min_rtt_window");
        assert_eq!(refused(Params { probe_rtt_duration: Duration::ZERO, ..default }).range, "1 ms to 1 h");
        assert_eq!(refused(Params { probe_wait_random: Duration::MAX, ..default }).range, "at most 1 h");
        assert!(Params { probe_wait_random: Duration::ZERO, ..default }.to_fixed().is_ok());
        assert!(Params::lossy_link().to_fixed().is_ok());
    }
}
