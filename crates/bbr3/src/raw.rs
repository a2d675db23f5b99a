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

    /// From the program's memory. `None` where it has another length.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != size_of::<Self>() {
            return None;
        }
        let mut words = bytes.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap_or_default()));
        let mut next = || words.next().unwrap_or_default();
        Some(Self {
            loss_thresh: next(),
            startup_loss_thresh: next(),
            bw_lo_loss_thresh: next(),
            inflight_lo_loss_thresh: next(),
            beta: next(),
            headroom: next(),
            probe_wait_base_us: next(),
            probe_wait_random_us: next(),
            probe_max_rounds: next(),
            probe_rtt_interval_us: next(),
            probe_rtt_duration_us: next(),
            min_rtt_window_us: next(),
            pacing_margin_percent: next(),
            startup_full_loss_count: next(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;

    #[test]
    fn knobs_come_back_from_the_programs_memory() {
        for profile in [Profile::Faithful, Profile::LossyLink] {
            let raw = profile.knobs().to_raw().unwrap();
            assert_eq!(RawKnobs::from_bytes(&raw.to_bytes()), Some(raw));
        }
        assert_eq!(RawKnobs::from_bytes(&[0; 60]), None);
    }
}
