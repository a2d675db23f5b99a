//! What the applications have to send, and when.

use units::{Bytes, Duration, Instant, Rate};

/// What a flow's application does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traffic {
    /// Sends as fast as it can; `bytes`: that much, `None`: until it is stopped.
    Bulk {
        /// How much.
        bytes: Option<Bytes>,
    },
    /// Asks and waits, again and again: one request in the data direction, one response back.
    RequestResponse {
        /// Size of the request.
        request: Bytes,
        /// Size of the response.
        response: Bytes,
        /// From one response to the next request.
        pause: Duration,
    },
    /// Application-limited: writes at a rate of its own, a piece each `every`, as a live stream does.
    Paced {
        /// The application's rate.
        rate: Rate,
        /// From one write to the next.
        every: Duration,
    },
    /// Sends as fast as it can for a while, then nothing for a while.
    OnOff {
        /// How long it sends.
        on: Duration,
        /// How long it does not.
        off: Duration,
    },
}

/// Sizes of the segments of a stream: all full, but the last ones of what the application sends as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    mss: u32,
    /// Segments of one message; `u64::MAX`: a stream without messages.
    per_message: u64,
    last: u32,
}

impl Sizes {
    /// All full.
    pub fn endless(mss: u32) -> Self {
        Self { mss, per_message: u64::MAX, last: mss }
    }

    /// Messages of `size` bytes, one or many. An empty message still takes a segment of one byte.
    pub fn messages(mss: u32, size: Bytes) -> Self {
        let size = size.as_u64().max(1);
        let per_message = size.div_ceil(u64::from(mss));
        let last = size - (per_message - 1) * u64::from(mss);
        Self { mss, per_message, last: last as u32 }
    }

    /// Segments of a message.
    pub fn per_message(&self) -> u64 {
        self.per_message
    }

    /// Payload of a segment.
    #[inline]
    pub fn payload(&self, number: u64) -> u32 {
        if self.per_message == u64::MAX || !(number + 1).is_multiple_of(self.per_message) {
            self.mss
        } else {
            self.last
        }
    }
}

/// The application of a flow's data direction.
#[derive(Debug)]
pub(crate) struct Source {
    traffic: Traffic,
    /// When it does something; `Instant::MAX` for never.
    pub next: Instant,
    on: bool,
    began: Instant,
    writes: u64,
    stopped: bool,
}

impl Source {
    pub fn new(traffic: Traffic) -> Self {
        Self { traffic, next: Instant::MAX, on: false, began: Instant::ZERO, writes: 0, stopped: false }
    }

    pub fn sizes(&self, mss: u32) -> Sizes {
        match self.traffic {
            Traffic::Bulk { bytes: Some(bytes) } => Sizes::messages(mss, bytes),
            Traffic::RequestResponse { request, .. } => Sizes::messages(mss, request),
            Traffic::Bulk { bytes: None } | Traffic::Paced { .. } | Traffic::OnOff { .. } => Sizes::endless(mss),
        }
    }

    /// The connection is up: what there is to send at once, as the first segment there is not.
    pub fn begin(&mut self, now: Instant, sizes: &Sizes) -> u64 {
        self.began = now;
        match self.traffic {
            Traffic::Bulk { .. } | Traffic::RequestResponse { .. } => sizes.per_message(),
            Traffic::Paced { .. } | Traffic::OnOff { .. } => {
                self.next = now;
                0
            }
        }
    }

    /// What is due at `next`. `sent` is the next new segment. Returns the first segment there is not, from now on.
    pub fn act(&mut self, now: Instant, mss: u32, given: u64, sent: u64) -> u64 {
        self.next = Instant::MAX;
        if self.stopped {
            return sent;
        }
        match self.traffic {
            Traffic::Bulk { .. } => given,
            Traffic::RequestResponse { .. } => {
                self.writes += 1;
                given + Sizes::messages(mss, self.request()).per_message()
            }
            Traffic::Paced { rate, every } => {
                // No rounding adds up: all that was due since the start.
                self.writes += 1;
                let due = rate.bytes_in(every * self.writes).as_u64() / u64::from(mss.max(1));
                self.next = self.began + every.max(Duration::from_nanos(1)) * self.writes;
                given.max(due)
            }
            Traffic::OnOff { on, off } => {
                self.on = !self.on;
                // Neither part may be nothing: the turn would last for ever.
                let wait = (if self.on { on } else { off }).max(Duration::from_micros(1));
                self.next = now + wait;
                if self.on { u64::MAX } else { sent }
            }
        }
    }

    fn request(&self) -> Bytes {
        match self.traffic {
            Traffic::RequestResponse { request, .. } => request,
            _ => Bytes::ZERO,
        }
    }

    /// From a response to the next request.
    pub fn pause(&self) -> Duration {
        match self.traffic {
            Traffic::RequestResponse { pause, .. } => pause,
            _ => Duration::ZERO,
        }
    }

    /// The application writes nothing more.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.next = Instant::MAX;
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_segment_of_a_message_has_what_is_left() {
        let sizes = Sizes::messages(1000, Bytes::new(2500));
        assert_eq!((0..6).map(|number| sizes.payload(number)).collect::<Vec<_>>(), [1000, 1000, 500, 1000, 1000, 500]);
        assert_eq!(Sizes::messages(1000, Bytes::new(2000)).payload(1), 1000);
        assert_eq!(Sizes::messages(1000, Bytes::ZERO).payload(0), 1);
        assert_eq!(Sizes::endless(1000).payload(u64::MAX - 1), 1000);
    }

    #[test]
    fn a_paced_application_writes_its_rate_whatever_the_rounding() {
        let mut source = Source::new(Traffic::Paced { rate: Rate::from_mbps(1), every: Duration::from_millis(7) });
        let mut given = source.begin(Instant::ZERO, &Sizes::endless(1000));
        while source.next <= Instant::ZERO + Duration::from_secs(8) {
            given = source.act(source.next, 1000, given, 0);
        }
        assert!((1000..=1001).contains(&given), "{given} segments of 1000 bytes in 8 s at 1 Mbit/s");
    }

    #[test]
    fn on_and_off_take_turns_and_a_stopped_source_gives_nothing_more() {
        let ms = Duration::from_millis;
        let mut source = Source::new(Traffic::OnOff { on: ms(10), off: ms(30) });
        source.begin(Instant::ZERO, &Sizes::endless(1000));
        assert_eq!(source.act(source.next, 1000, 0, 0), u64::MAX);
        assert_eq!(source.next, Instant::ZERO + ms(10));
        assert_eq!(source.act(source.next, 1000, u64::MAX, 17), 17);
        assert_eq!(source.next, Instant::ZERO + ms(40));
        source.stop();
        assert_eq!(source.act(Instant::ZERO + ms(40), 1000, 17, 17), 17);
        assert_eq!(source.next, Instant::MAX);
    }
}
