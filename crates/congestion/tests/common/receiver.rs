use units::{Duration, Instant};

/// The packets that an ACK newly acknowledges. None is lost on the way.
#[derive(Debug, Clone)]
pub struct Acknowledgement {
    pub numbers: Vec<u64>,
}

/// How long an ACK is held back at most.
const MAX_DELAY: Duration = Duration::from_millis(25);

/// Acknowledges every second packet, and at once what is out of order.
#[derive(Debug, Default)]
pub struct Receiver {
    arrived: Vec<u64>,
    expected: u64,
    answer_by: Option<Instant>,
    period: Option<Duration>,
}

impl Receiver {
    pub fn aggregate(&mut self, period: Duration) {
        self.period = Some(period);
    }

    pub fn take(&mut self, now: Instant, number: u64) -> Option<Acknowledgement> {
        self.arrived.push(number);
        let in_order = number == self.expected;
        self.expected = self.expected.max(number + 1);
        if let Some(period) = self.period {
            self.answer_by.get_or_insert(now + period);
            return None;
        }
        if !in_order || self.arrived.len() >= 2 {
            return Some(self.answer());
        }
        self.answer_by.get_or_insert(now + MAX_DELAY);
        None
    }

    pub fn next_event(&self) -> Option<Instant> {
        self.answer_by
    }

    pub fn on_timer(&mut self, now: Instant) -> Option<Acknowledgement> {
        self.answer_by.is_some_and(|by| by <= now).then(|| self.answer())
    }

    fn answer(&mut self) -> Acknowledgement {
        self.answer_by = None;
        Acknowledgement { numbers: std::mem::take(&mut self.arrived) }
    }
}
