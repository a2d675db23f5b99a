//! The C structures of `crates/bbr3/src/bpf`, field by field; their meaning and units are described there. Checked against the C
//! compiler's layout by [`tests`].

#![allow(missing_docs)]

pub use bbr3::raw::{Ack, Conn, Ring, Sample, State};
use bbr3::raw::{Features, RawKnobs};

/// `struct environment` of native.c.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Environment {
    pub knobs: RawKnobs,
    pub features: Features,
    pub random: u64,
    pub scripted: [u32; 2],
    pub scripted_left: u32,
    pub transition_count: u32,
    pub transitions: [[u8; 2]; 16],
    pub counts: [u64; 12],
    pub entries: [u64; 7],
}

/// `struct connection` of native.c.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Connection {
    pub state: State,
    pub ring: Ring,
    pub environment: Environment,
}

unsafe extern "C" {
    #[cfg(test)]
    pub(crate) safe static bbr3_native_layout: [u32; 14];
    #[cfg(test)]
    pub(crate) safe static bbr3_native_event_layout: [u32; EVENT_LAYOUT];
    pub(crate) safe static bbr3_native_default_knobs: RawKnobs;

    pub(crate) fn bbr3_native_init(connection: *mut Connection, conn: *mut Conn);
    pub(crate) fn bbr3_native_ack(connection: *mut Connection, conn: *mut Conn, ack: *const Ack, sample: *mut Sample);
    pub(crate) fn bbr3_native_ssthresh(connection: *mut Connection, conn: *mut Conn) -> u32;
    pub(crate) fn bbr3_native_set_state(connection: *mut Connection, conn: *mut Conn, state: u8);
    pub(crate) fn bbr3_native_in_ack(connection: *mut Connection, conn: *mut Conn);
    pub(crate) fn bbr3_native_undo(connection: *mut Connection, conn: *mut Conn) -> u32;
    pub(crate) fn bbr3_native_tx_start(connection: *mut Connection, conn: *mut Conn);
    pub(crate) fn bbr3_native_bdp_multiple(connection: *mut Connection, bw: u32, gain: u32) -> u32;
    pub(crate) safe fn bbr3_native_bytes_per_second(bw: u32, mss: u32, gain: u32, margin_percent: u32) -> u64;
    pub(crate) fn bbr3_native_inflight_at_loss(connection: *mut Connection, tx_in_flight: u32, lost: u32) -> u32;
}

/// Fields of the five structures of events, and five sizes.
#[cfg(test)]
const EVENT_LAYOUT: usize = 4 + 10 + 16 + 3 + 13 + 5;

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn the_c_compiler_lays_the_structures_out_as_they_are_here() {
        let here = [
            size_of::<Conn>(),
            size_of::<Ack>(),
            size_of::<Sample>(),
            size_of::<State>(),
            size_of::<Ring>(),
            size_of::<Environment>(),
            size_of::<Connection>(),
            offset_of!(Conn, reo_wnd_steps),
            offset_of!(Ack, is_ack_delayed),
            offset_of!(Sample, is_tlp_ack),
            offset_of!(State, min_rtt_stamp),
            offset_of!(State, acks),
            offset_of!(State, tlp_retrans_pending),
            offset_of!(Environment, counts),
        ];
        assert_eq!(bbr3_native_layout.map(|size| size as usize), here);
    }

    #[test]
    fn the_c_compiler_lays_events_out_as_they_are_in_rust() {
        use bbr3::raw::{CallEvent, EventHead, FlowEvent, SnapshotEvent, TransitionEvent};
        fn places(fields: &[bbr3::raw::Field], size: usize) -> impl Iterator<Item = u32> {
            fields.iter().map(|field| field.offset).chain([size]).map(|place| place as u32)
        }
        let here: Vec<u32> = places(EventHead::FIELDS, size_of::<EventHead>())
            .chain(places(FlowEvent::FIELDS, size_of::<FlowEvent>()))
            .chain(places(TransitionEvent::FIELDS, size_of::<TransitionEvent>()))
            .chain(places(SnapshotEvent::FIELDS, size_of::<SnapshotEvent>()))
            .chain(places(CallEvent::FIELDS, size_of::<CallEvent>()))
            .collect();
        assert_eq!(here, bbr3_native_event_layout);
    }

    #[test]
    fn both_languages_have_the_same_default_knobs() {
        assert_eq!(bbr3_native_default_knobs, bbr3::Knobs::default().to_raw().unwrap());
    }
}
