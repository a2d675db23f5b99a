//! The program's knobs on the command line and in output.

use bbr3::raw::RawKnobs;
use bbr3::{Knobs, Profile};
use clap::ValueEnum;
use serde_json::{Value, json};
use units::{Duration, Probability};

use crate::exit::Failure;
use crate::lab::quantity;

/// A set of knobs with a name.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileName {
    /// BBRv3 as specified
    Faithful,
    /// Loss of up to 8 % moves no bound: for links that lose without congestion. Takes more than its share elsewhere
    LossyLink,
}

impl ProfileName {
    fn profile(self) -> Profile {
        match self {
            Self::Faithful => Profile::Faithful,
            Self::LossyLink => Profile::LossyLink,
        }
    }

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Faithful => "faithful",
            Self::LossyLink => "lossy-link",
        }
    }
}

/// Every knob as an option. Fractions have a resolution of 1/256 and are rounded down.
#[derive(clap::Args, Debug, Clone, Default)]
#[command(next_help_heading = "The algorithm")]
pub struct KnobArguments {
    /// All knobs at once; the options below change single ones
    #[arg(long, value_enum, value_name = "NAME")]
    pub profile: Option<ProfileName>,
    /// Loss rate of a flight above which a bandwidth probe went too high [faithful: 2%]
    #[arg(long, value_name = "P", value_parser = quantity::<Probability>)]
    loss_thresh: Option<Probability>,
    /// The same, for leaving STARTUP [2%]
    #[arg(long, value_name = "P", value_parser = quantity::<Probability>)]
    startup_loss_thresh: Option<Probability>,
    /// Loss rate up to which the short-term bandwidth bound stays [0%]
    #[arg(long, value_name = "P", value_parser = quantity::<Probability>)]
    bw_lo_loss_thresh: Option<Probability>,
    /// Loss rate up to which the short-term in-flight bound stays [0%]
    #[arg(long, value_name = "P", value_parser = quantity::<Probability>)]
    inflight_lo_loss_thresh: Option<Probability>,
    /// What is cut off on congestion [30%]
    #[arg(long, value_name = "P", value_parser = quantity::<Probability>)]
    beta: Option<Probability>,
    /// Part of the long-term in-flight bound left free for others while cruising [15%]
    #[arg(long, value_name = "P", value_parser = quantity::<Probability>)]
    headroom: Option<Probability>,
    /// Shortest wait between bandwidth probes [2s]
    #[arg(long, value_name = "T", value_parser = quantity::<Duration>)]
    probe_wait_base: Option<Duration>,
    /// Random addition to it, at most [1s]
    #[arg(long, value_name = "T", value_parser = quantity::<Duration>)]
    probe_wait_random: Option<Duration>,
    /// Most round trips between bandwidth probes [63]
    #[arg(long, value_name = "N")]
    probe_max_rounds: Option<u8>,
    /// How often PROBE_RTT comes at most [5s]
    #[arg(long, value_name = "T", value_parser = quantity::<Duration>)]
    probe_rtt_interval: Option<Duration>,
    /// How long PROBE_RTT lasts at least [200ms]
    #[arg(long, value_name = "T", value_parser = quantity::<Duration>)]
    probe_rtt_duration: Option<Duration>,
    /// How long a minimum RTT is believed [10s]
    #[arg(long, value_name = "T", value_parser = quantity::<Duration>)]
    min_rtt_window: Option<Duration>,
    /// How far below the estimated bandwidth pacing stays, in percent [1]
    #[arg(long, value_name = "N")]
    pacing_margin_percent: Option<u8>,
    /// ACKs with news of loss in one round before STARTUP may end on loss [6]
    #[arg(long, value_name = "N")]
    startup_full_loss_count: Option<u8>,
}

impl KnobArguments {
    /// Whether nothing was asked for.
    pub fn is_empty(&self) -> bool {
        self.profile.is_none() && !self.changes_single_knobs()
    }

    fn changes_single_knobs(&self) -> bool {
        self.options().len() > 2 * usize::from(self.profile.is_some())
    }

    /// The knobs: those of the profile, or else `base`, with the single ones changed.
    pub fn resolve(&self, base: Knobs) -> Result<Knobs, Failure> {
        let base = self.profile.map_or(base, |profile| profile.profile().knobs());
        let knobs = self.over(base);
        knobs.check().map_err(|error| {
            let knob = error.knob.replace('_', "-");
            Failure::usage(format_args!("--{knob} must be {}", error.range.replace('_', "-")))
        })?;
        Ok(knobs)
    }

    /// The profile's name for the record, `+` behind it where single knobs were changed.
    pub fn label(&self, base: &str) -> String {
        let base = self.profile.map_or(base, |profile| profile.name()).trim_end_matches('+').to_owned();
        if self.changes_single_knobs() { base + "+" } else { base }
    }

    fn over(&self, base: Knobs) -> Knobs {
        Knobs {
            loss_thresh: self.loss_thresh.unwrap_or(base.loss_thresh),
            startup_loss_thresh: self.startup_loss_thresh.unwrap_or(base.startup_loss_thresh),
            bw_lo_loss_thresh: self.bw_lo_loss_thresh.unwrap_or(base.bw_lo_loss_thresh),
            inflight_lo_loss_thresh: self.inflight_lo_loss_thresh.unwrap_or(base.inflight_lo_loss_thresh),
            beta: self.beta.unwrap_or(base.beta),
            headroom: self.headroom.unwrap_or(base.headroom),
            probe_wait_base: self.probe_wait_base.unwrap_or(base.probe_wait_base),
            probe_wait_random: self.probe_wait_random.unwrap_or(base.probe_wait_random),
            probe_max_rounds: self.probe_max_rounds.unwrap_or(base.probe_max_rounds),
            probe_rtt_interval: self.probe_rtt_interval.unwrap_or(base.probe_rtt_interval),
            probe_rtt_duration: self.probe_rtt_duration.unwrap_or(base.probe_rtt_duration),
            min_rtt_window: self.min_rtt_window.unwrap_or(base.min_rtt_window),
            pacing_margin_percent: self.pacing_margin_percent.unwrap_or(base.pacing_margin_percent),
            startup_full_loss_count: self.startup_full_loss_count.unwrap_or(base.startup_full_loss_count),
        }
    }

    /// The same options again, as words for a command line.
    pub fn options(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut add = |option: &str, value: Option<String>| {
            if let Some(value) = value {
                words.extend([format!("--{option}"), value]);
            }
        };
        let text = |value: Option<Probability>| value.map(|value| value.to_string());
        // The program counts in microseconds.
        let time = |value: Option<Duration>| value.map(|value| format!("{}us", value.as_micros()));
        let number = |value: Option<u8>| value.map(|value| value.to_string());
        add("profile", self.profile.map(|profile| profile.name().to_owned()));
        add("loss-thresh", text(self.loss_thresh));
        add("startup-loss-thresh", text(self.startup_loss_thresh));
        add("bw-lo-loss-thresh", text(self.bw_lo_loss_thresh));
        add("inflight-lo-loss-thresh", text(self.inflight_lo_loss_thresh));
        add("beta", text(self.beta));
        add("headroom", text(self.headroom));
        add("probe-wait-base", time(self.probe_wait_base));
        add("probe-wait-random", time(self.probe_wait_random));
        add("probe-max-rounds", number(self.probe_max_rounds));
        add("probe-rtt-interval", time(self.probe_rtt_interval));
        add("probe-rtt-duration", time(self.probe_rtt_duration));
        add("min-rtt-window", time(self.min_rtt_window));
        add("pacing-margin-percent", number(self.pacing_margin_percent));
        add("startup-full-loss-count", number(self.startup_full_loss_count));
        words
    }
}

/// A knob's name and its value in words, in the order of the program.
pub fn in_words(raw: RawKnobs) -> Vec<(&'static str, String)> {
    let knobs = Knobs::from_raw(raw);
    vec![
        ("loss_thresh", percent(knobs.loss_thresh)),
        ("startup_loss_thresh", percent(knobs.startup_loss_thresh)),
        ("bw_lo_loss_thresh", percent(knobs.bw_lo_loss_thresh)),
        ("inflight_lo_loss_thresh", percent(knobs.inflight_lo_loss_thresh)),
        ("beta", percent(knobs.beta)),
        ("headroom", percent(knobs.headroom)),
        ("probe_wait_base", knobs.probe_wait_base.to_string()),
        ("probe_wait_random", knobs.probe_wait_random.to_string()),
        ("probe_max_rounds", knobs.probe_max_rounds.to_string()),
        ("probe_rtt_interval", knobs.probe_rtt_interval.to_string()),
        ("probe_rtt_duration", knobs.probe_rtt_duration.to_string()),
        ("min_rtt_window", knobs.min_rtt_window.to_string()),
        ("pacing_margin_percent", knobs.pacing_margin_percent.to_string()),
        ("startup_full_loss_count", knobs.startup_full_loss_count.to_string()),
    ]
}

fn percent(fraction: Probability) -> String {
    format!("{:.2} %", fraction.as_f64() * 100.0)
}

/// For a JSON document.
pub fn to_json(raw: RawKnobs) -> Value {
    let fraction = |parts: u32| f64::from(parts) / 256.0;
    let ms = |micros: u32| f64::from(micros) / 1000.0;
    json!({
        "loss_thresh": fraction(raw.loss_thresh),
        "startup_loss_thresh": fraction(raw.startup_loss_thresh),
        "bw_lo_loss_thresh": fraction(raw.bw_lo_loss_thresh),
        "inflight_lo_loss_thresh": fraction(raw.inflight_lo_loss_thresh),
        "beta": fraction(raw.beta),
        "headroom": fraction(raw.headroom),
        "probe_wait_base_ms": ms(raw.probe_wait_base_us),
        "probe_wait_random_ms": ms(raw.probe_wait_random_us),
        "probe_max_rounds": raw.probe_max_rounds,
        "probe_rtt_interval_ms": ms(raw.probe_rtt_interval_us),
        "probe_rtt_duration_ms": ms(raw.probe_rtt_duration_us),
        "min_rtt_window_ms": ms(raw.min_rtt_window_us),
        "pacing_margin_percent": raw.pacing_margin_percent,
        "startup_full_loss_count": raw.startup_full_loss_count,
    })
}
