use crate::Mode;

/// `COUNTS` of telemetry.h.
#[cfg(feature = "bpf")]
const COUNTS: usize = 12;
const MODES: usize = Mode::ALL.len();
#[cfg(feature = "bpf")]
pub(crate) const LENGTH: usize = (COUNTS + MODES) * 8;

/// Counters over all sockets since the program was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Sockets that began with this control.
    pub inits: u64,
    /// Sockets that left it.
    pub releases: u64,
    /// Sockets that had to run Reno, because no storage was to be had.
    pub degraded: u64,
    /// Of those, sockets that got storage later.
    pub recovered: u64,
    /// ACKs processed, counted as each round trip ends.
    pub acks: u64,
    /// Bandwidth probes that lost too much.
    pub probes_too_high: u64,
    /// STARTUPs ended by loss.
    pub startups_ended_by_loss: u64,
    /// Recoveries found to be spurious and undone.
    pub undos: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Losses repaired by a tail loss probe.
    pub tail_loss_repairs: u64,
    /// Restarts from idle while application-limited.
    pub idle_restarts: u64,
    /// Events for which the ring buffer had no room.
    pub dropped_events: u64,
    /// Entries into each mode, in the order of [`Mode::ALL`].
    pub entries: [u64; MODES],
}

impl Totals {
    /// Entries into `mode`.
    pub fn entries_into(&self, mode: Mode) -> u64 {
        self.entries[mode as usize]
    }

    /// Reads `struct bbr3_totals`. `None` where it has another length.
    #[cfg(feature = "bpf")]
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != LENGTH {
            return None;
        }
        let mut words = bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()));
        let mut next = || words.next().unwrap_or_default();
        Some(Self {
            inits: next(),
            releases: next(),
            degraded: next(),
            recovered: next(),
            acks: next(),
            probes_too_high: next(),
            startups_ended_by_loss: next(),
            undos: next(),
            timeouts: next(),
            tail_loss_repairs: next(),
            idle_restarts: next(),
            dropped_events: next(),
            entries: std::array::from_fn(|_| next()),
        })
    }
}
