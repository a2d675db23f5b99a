//! The structures that the BPF program and Rust share, as they lie in memory. Each is checked against the program's own type
//! information by a test. Fractions are in 1/256.

/// `struct bbr3_knobs` of params.h, where each field is described; [`crate::Knobs`] is the typed form.
#[repr(C)]
#[allow(missing_docs)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawKnobs {
    pub loss_thresh: u32,
    pub startup_loss_thresh: u32,
    pub bw_lo_loss_thresh: u32,
    pub inflight_lo_loss_thresh: u32,
    pub beta: u32,
    pub headroom: u32,
    pub probe_wait_base_us: u32,
    pub probe_wait_random_us: u32,
    pub probe_max_rounds: u32,
    pub probe_rtt_interval_us: u32,
    pub probe_rtt_duration_us: u32,
    pub min_rtt_window_us: u32,
    pub pacing_margin_percent: u32,
    pub startup_full_loss_count: u32,
}

impl RawKnobs {
    const WORDS: usize = size_of::<Self>() / 4;

    /// As the program's memory holds them.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let words: [u32; Self::WORDS] = [
            self.loss_thresh,
            self.startup_loss_thresh,
            self.bw_lo_loss_thresh,
            self.inflight_lo_loss_thresh,
            self.beta,
            self.headroom,
            self.probe_wait_base_us,
            self.probe_wait_random_us,
            self.probe_max_rounds,
            self.probe_rtt_interval_us,
            self.probe_rtt_duration_us,
            self.min_rtt_window_us,
            self.pacing_margin_percent,
            self.startup_full_loss_count,
        ];
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }
}
