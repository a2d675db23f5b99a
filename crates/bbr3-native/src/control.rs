use bbr3::raw::{Features, RawKnobs};
use bbr3::recording::Header;
use bbr3::{Event, Knobs, Mode};

use crate::conformance;
use crate::raw::{self, Ack, Conn, Connection, Environment, Ring, Sample, State};
use crate::recorder::{self, Recorder};

/// The kernel's states of loss recovery, `enum tcp_ca_state` of include/uapi/linux/tcp.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum CaState {
    /// Nothing is amiss.
    Open = 0,
    /// Duplicate ACKs or SACKs, and no loss yet.
    Disorder = 1,
    /// The window was reduced for another reason than loss.
    Cwr = 2,
    /// Fast recovery.
    Recovery = 3,
    /// After a retransmission timeout.
    Loss = 4,
}

/// What BBRv3 counts, in the order of `enum bbr3_count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Bandwidth probes that lost too much.
    TooHigh = 5,
    /// STARTUPs ended by loss.
    StartupLoss = 6,
    /// Spurious recoveries undone.
    Undo = 7,
    /// Retransmission timeouts.
    Rto = 8,
    /// Losses repaired by a tail loss probe.
    TlpRecovery = 9,
    /// Restarts from idle.
    IdleRestart = 10,
}

/// BBRv3 of one connection: the kernel program's own code. Every method is one of the kernel's callbacks.
#[derive(Debug, Clone)]
pub struct Bbr3 {
    pub(crate) connection: Box<Connection>,
    recorder: Option<Recorder>,
    is_shadowed: bool,
}

impl Bbr3 {
    /// A connection that has not begun. `seed` decides the random waits between bandwidth probes.
    pub fn new(knobs: RawKnobs, seed: u64) -> Self {
        let environment = Environment {
            knobs,
            features: Features { cong_control_four_args: 1, app_limited_writable: 1 },
            // Never zero: the generator would stay there.
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            scripted: [0; 2],
            scripted_left: 0,
            transition_count: 0,
            transitions: [[0; 2]; 16],
            counts: [0; 12],
            entries: [0; 7],
        };
        let connection = Connection { state: State::default(), ring: Ring::default(), environment };
        Self { connection: Box::new(connection), recorder: None, is_shadowed: false }
    }

    /// The faithful BBRv3.
    pub fn faithful(seed: u64) -> Self {
        Self::new(raw::bbr3_native_default_knobs, seed)
    }

    /// With these knobs.
    ///
    /// # Errors
    /// Where one is out of range.
    pub fn with(knobs: Knobs, seed: u64) -> Result<Self, bbr3::KnobError> {
        Ok(Self::new(knobs.to_raw()?, seed))
    }

    /// Behaves as on kernels that do not let a program write `app_limited` (before 6.4).
    pub fn without_app_limited(mut self) -> Self {
        self.connection.environment.features.app_limited_writable = 0;
        self
    }

    /// Decides the next random wait: `rounds` (0 or 1), then `fraction` of 2^32.
    pub fn script_probe_wait(&mut self, rounds: u32, fraction: u32) {
        let environment = &mut self.connection.environment;
        // Drawn from the end.
        environment.scripted = [fraction, rounds << 31];
        environment.scripted_left = 2;
    }

    /// Keeps a record of every call from now on, as `linerate cc trace --record` does of the kernel's.
    pub fn record(mut self) -> Self {
        self.recorder = Some(Recorder::default());
        self
    }

    /// Holds every call from now on against the BBRv3 of the `congestion` crate, which starts each from the same state. Not where a knob is
    /// out of the range that the loader and the crate allow.
    ///
    /// # Panics
    /// Each method, where the two differ.
    pub fn shadowed(mut self) -> Self {
        let params = conformance::params(self.connection.environment.knobs);
        self.is_shadowed = congestion::Bbr3::new(params, 0).is_ok();
        self
    }

    /// The calls recorded since this was last taken, and the header that goes before them.
    pub fn take_recording(&mut self) -> (Header, Vec<Event>) {
        let environment = &self.connection.environment;
        let (knobs, features) = (environment.knobs, environment.features);
        let header = Header { knobs, features, name: "native".into(), kernel: "none".into() };
        (header, self.recorder.as_mut().map(Recorder::take).unwrap_or_default())
    }

    /// One call; with its record, where they are wanted.
    fn call_native(
        &mut self,
        call: (u32, u32),
        conn: &mut Conn,
        ack: Option<&Ack>,
        native: impl FnOnce(*mut Connection, *mut Conn) -> u32,
    ) -> u32 {
        let before = *conn;
        // Scripted random numbers are this build's only.
        let snapshot =
            (self.is_shadowed && self.connection.environment.scripted_left == 0).then(|| self.connection.clone());
        let answer = native(&raw mut *self.connection, conn);
        if let Some(snapshot) = snapshot {
            let event = recorder::event(call, &before, ack, conn, answer, &self.connection.state);
            conformance::check_step(&snapshot, &event);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.add(call, &before, ack, conn, answer, &self.connection.state);
        }
        answer
    }

    /// `init`.
    pub fn init(&mut self, conn: &mut Conn) {
        self.call_native((0, 0), conn, None, |connection, conn| {
            // SAFETY: both are whole structures of the C layout (checked by a test), valid and not shared during the call.
            unsafe { raw::bbr3_native_init(connection, conn) };
            0
        });
    }

    /// `cong_control`. Returns what the ACK told.
    pub fn ack(&mut self, conn: &mut Conn, ack: &Ack) -> Sample {
        let mut sample = Sample::default();
        self.call_native((1, 0), conn, Some(ack), |connection, conn| {
            // SAFETY: as in `init`.
            unsafe { raw::bbr3_native_ack(connection, conn, ack, &raw mut sample) };
            0
        });
        sample
    }

    /// `ssthresh`.
    pub fn ssthresh(&mut self, conn: &mut Conn) -> u32 {
        self.call_native((2, 0), conn, None, |connection, conn| {
            // SAFETY: as in `init`.
            unsafe { raw::bbr3_native_ssthresh(connection, conn) }
        })
    }

    /// `set_state`, before the state changes.
    pub fn set_state(&mut self, conn: &mut Conn, state: CaState) {
        self.call_native((3, state as u32), conn, None, |connection, conn| {
            // SAFETY: as in `init`.
            unsafe { raw::bbr3_native_set_state(connection, conn, state as u8) };
            0
        });
    }

    /// `in_ack_event`.
    pub fn in_ack(&mut self, conn: &mut Conn) {
        // The kernel program looks only where a retransmitted probe is outstanding.
        if conn.tlp_high_seq == 0 || conn.tlp_retrans == 0 {
            return;
        }
        self.call_native((4, 0), conn, None, |connection, conn| {
            // SAFETY: as in `init`.
            unsafe { raw::bbr3_native_in_ack(connection, conn) };
            0
        });
    }

    /// `undo_cwnd`: the window to go back to.
    pub fn undo(&mut self, conn: &mut Conn) -> u32 {
        self.call_native((5, 0), conn, None, |connection, conn| {
            // SAFETY: as in `init`.
            unsafe { raw::bbr3_native_undo(connection, conn) }
        })
    }

    /// `cwnd_event` CA_EVENT_TX_START.
    pub fn tx_start(&mut self, conn: &mut Conn) {
        self.call_native((6, 0), conn, None, |connection, conn| {
            // SAFETY: as in `init`.
            unsafe { raw::bbr3_native_tx_start(connection, conn) };
            0
        });
    }

    /// Everything it remembers.
    pub fn state(&self) -> &State {
        &self.connection.state
    }

    /// The same, to be set by a test.
    pub fn state_mut(&mut self) -> &mut State {
        &mut self.connection.state
    }

    /// The state it is in.
    pub fn mode(&self) -> Mode {
        Mode::ALL[usize::from(self.connection.state.mode)]
    }

    /// How often something happened.
    pub fn count(&self, what: Count) -> u64 {
        self.connection.environment.counts[what as usize]
    }

    /// How often it entered a mode.
    pub fn entries_into(&self, mode: Mode) -> u64 {
        self.connection.environment.entries[mode as usize]
    }

    /// Changes of mode since the last call, at most sixteen: from, to.
    pub fn take_transitions(&mut self) -> Vec<(Mode, Mode)> {
        let environment = &mut self.connection.environment;
        let count = std::mem::take(&mut environment.transition_count) as usize;
        let mode = |number: u8| Mode::ALL[usize::from(number)];
        environment.transitions[..count].iter().map(|[from, to]| (mode(*from), mode(*to))).collect()
    }

    /// The 52 bytes of its monitor record.
    pub fn monitor(&self) -> Vec<u8> {
        self.connection.state.monitor.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// The draft's `BDPMultiple`, in packets: `bw` in packets/µs << 24, `gain` in 1/256.
    pub fn bdp_multiple(&mut self, bw: u32, gain: u32) -> u32 {
        // SAFETY: as in `init`.
        unsafe { raw::bbr3_native_bdp_multiple(&raw mut *self.connection, bw, gain) }
    }

    /// The draft's `InflightAtLoss`, in packets.
    pub fn inflight_at_loss(&mut self, tx_in_flight: u32, lost: u32) -> u32 {
        // SAFETY: as in `init`.
        unsafe { raw::bbr3_native_inflight_at_loss(&raw mut *self.connection, tx_in_flight, lost) }
    }

    /// Bytes per second of `bw` (packets/µs << 24) times `gain`/256, `margin_percent` below.
    pub fn bytes_per_second(bw: u32, mss: u32, gain: u32, margin_percent: u32) -> u64 {
        raw::bbr3_native_bytes_per_second(bw, mss, gain, margin_percent)
    }
}
