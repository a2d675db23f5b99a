use crate::{Connection, RateSample};

/// Counts round trips: one ends with the delivery of a packet that was sent after it began.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Round {
    /// A value of `delivered`.
    end: u64,
}

impl Round {
    pub(crate) const NEW: Self = Self { end: 0 };

    /// A round trip begins now.
    pub(crate) fn start(&mut self, conn: &Connection) {
        self.end = conn.delivered;
    }

    /// Whether this sample ends it; then the next begins.
    pub(crate) fn ends_with(&mut self, conn: &Connection, sample: Option<&RateSample>) -> bool {
        let ended = sample.is_some_and(|sample| sample.prior_delivered >= self.end);
        if ended {
            self.start(conn);
        }
        ended
    }
}
