use std::collections::HashMap;
use std::fmt;

use bbr3::Event;
use bbr3::raw::{CallEvent, Conn, Field, Sample, State};
use bbr3::recording::Header;
use zerocopy::IntoBytes;

use crate::Bbr3;
use crate::raw;

/// `enum bbr3_call` of events.h.
const CALLS: [&str; 7] = ["init", "ack", "ssthresh", "set_state", "in_ack", "undo_cwnd", "tx_start"];

/// The name of a call of this number.
pub(crate) fn call_name(call: u32) -> &'static str {
    CALLS.get(call as usize).copied().unwrap_or("an unknown call")
}

/// Fields of the state that the algorithm neither reads nor writes.
const TELEMETRY: [&str; 4] = ["monitor", "traced", "flow", "recorded"];

/// Repeats recorded connections with the native build, call by call, and holds every decision and everything remembered against
/// the recording.
#[derive(Debug)]
pub struct Replay {
    header: Header,
    flows: HashMap<u64, Bbr3>,
    counts: Replayed,
}

/// How much was repeated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Calls repeated with the same result.
    pub calls: u64,
    /// Of those, ACKs.
    pub acks: u64,
    /// Connections repeated from their first call.
    pub from_init: u64,
    /// Times a connection was taken up from a snapshot.
    pub snapshots: u64,
    /// Calls of connections of which neither beginning nor snapshot was recorded.
    pub skipped: u64,
}

/// Where kernel and native build part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The socket's number.
    pub flow: u64,
    /// Calls that agreed before, over all sockets.
    pub after: u64,
    /// The callback.
    pub call: &'static str,
    /// The decision, or the field of `struct bbr3_state`.
    pub field: &'static str,
    /// Its bytes as recorded, and as they came out here.
    pub recorded: Vec<u8>,
    /// See `recorded`.
    pub replayed: Vec<u8>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { flow, after, call, field, recorded, replayed } = self;
        write!(
            f,
            "socket {flow}, {call} after {after} calls: {field} is {recorded:02x?} in the recording and {replayed:02x?} here"
        )
    }
}

impl std::error::Error for Difference {}

impl Replay {
    /// For a recording with this header.
    pub fn new(header: Header) -> Self {
        Self { header, flows: HashMap::new(), counts: Replayed::default() }
    }

    /// What was repeated so far.
    pub fn replayed(&self) -> Replayed {
        self.counts
    }

    /// Repeats one event.
    ///
    /// # Errors
    /// The first [`Difference`].
    pub fn feed(&mut self, event: &Event) -> Result<(), Difference> {
        match event {
            Event::Flow(_) | Event::Transition(_) => Ok(()),
            Event::Snapshot(snapshot) => {
                let mut cc = Bbr3::new(self.header.knobs, 0);
                cc.connection.environment.features = self.header.features;
                cc.connection.state = snapshot.state;
                cc.connection.ring = snapshot.ring;
                self.flows.insert(snapshot.event.flow, cc);
                self.counts.snapshots += 1;
                Ok(())
            }
            Event::Call(call) => self.repeat(call),
        }
    }

    fn repeat(&mut self, call: &CallEvent) -> Result<(), Difference> {
        let flow = call.event.flow;
        let name = call_name(call.call);
        if name == "init" {
            let mut cc = Bbr3::new(self.header.knobs, 0);
            cc.connection.environment.features = self.header.features;
            cc.connection.environment.random = u64::from(call.after.random) << 32;
            self.flows.insert(flow, cc);
            self.counts.from_init += 1;
        }
        let Some(cc) = self.flows.get_mut(&flow) else {
            self.counts.skipped += 1;
            return Ok(());
        };
        let mut conn = call.before;
        let answer = cc.call(call, &mut conn);
        let differs = |field: &'static str, recorded: &[u8], replayed: &[u8]| {
            if recorded == replayed {
                return Ok(());
            }
            let after = self.counts.calls;
            Err(Difference { flow, after, call: name, field, recorded: recorded.into(), replayed: replayed.into() })
        };
        differs("pacing_rate", call.pacing_rate.as_bytes(), conn.pacing_rate.as_bytes())?;
        differs("cwnd", call.cwnd.as_bytes(), conn.cwnd.as_bytes())?;
        differs("ssthresh", call.ssthresh.as_bytes(), conn.ssthresh.as_bytes())?;
        differs("app_limited", call.app_limited.as_bytes(), conn.app_limited.as_bytes())?;
        differs("answer", call.answer.as_bytes(), answer.as_bytes())?;
        for Field { name, offset, size } in State::FIELDS.iter().filter(|field| !TELEMETRY.contains(&field.name)) {
            let of = |state: &State| state.as_bytes()[*offset..offset + size].to_vec();
            differs(name, &of(&call.after), &of(&cc.connection.state))?;
        }
        cc.end_of_round();
        self.counts.calls += 1;
        self.counts.acks += u64::from(name == "ack");
        Ok(())
    }
}

impl Bbr3 {
    /// One recorded callback; what the kernel is answered.
    fn call(&mut self, call: &CallEvent, conn: &mut Conn) -> u32 {
        let connection = &raw mut *self.connection;
        let mut sample = Sample::default();
        // SAFETY: whole structures of the C layout (checked by a test), valid and not shared during the call.
        unsafe {
            match call.call {
                0 => raw::bbr3_native_init(connection, conn),
                1 => raw::bbr3_native_ack(connection, conn, &call.ack, &raw mut sample),
                2 => return raw::bbr3_native_ssthresh(connection, conn),
                3 => raw::bbr3_native_set_state(connection, conn, call.argument as u8),
                4 => raw::bbr3_native_in_ack(connection, conn),
                5 => return raw::bbr3_native_undo(connection, conn),
                6 => raw::bbr3_native_tx_start(connection, conn),
                _ => {}
            }
        }
        0
    }

    /// The kernel program adds a socket's ACKs to its totals as a round trip ends.
    fn end_of_round(&mut self) {
        if self.connection.state.round_start != 0 {
            self.connection.state.acks = 0;
        }
    }
}
