use bbr3::Event;
use bbr3::raw::{CallEvent, EventHead};

use crate::raw::{Ack, Conn, State};

/// `EVENT_CALL` of events.h.
const EVENT_CALL: u32 = 4;

/// Keeps every call, as trace.h writes it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recorder {
    events: Vec<Event>,
}

/// `call`: number and argument.
pub(crate) fn event(
    (call, argument): (u32, u32),
    before: &Conn,
    ack: Option<&Ack>,
    after: &Conn,
    answer: u32,
    state: &State,
) -> CallEvent {
    let size = size_of::<CallEvent>() as u32;
    CallEvent {
        event: EventHead { kind: EVENT_CALL, size, flow: 1, time_ns: before.now_us.saturating_mul(1000) },
        call,
        argument,
        answer,
        before: *before,
        ack: ack.copied().unwrap_or_default(),
        pacing_rate: after.pacing_rate,
        cwnd: after.cwnd,
        ssthresh: after.ssthresh,
        app_limited: after.app_limited,
        after: *state,
        ..CallEvent::default()
    }
}

impl Recorder {
    /// As [`event`].
    pub(crate) fn add(
        &mut self,
        call: (u32, u32),
        before: &Conn,
        ack: Option<&Ack>,
        after: &Conn,
        answer: u32,
        state: &State,
    ) {
        self.events.push(Event::Call(Box::new(event(call, before, ack, after, answer, state))));
    }

    pub(crate) fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}
