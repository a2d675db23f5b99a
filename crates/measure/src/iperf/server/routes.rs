//! Where a connection goes by its cookie.

use std::collections::HashMap;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::iperf::latency::{FOR_QUESTIONS, FOREIGN};
use crate::iperf::stream::Watch;
use crate::iperf::wire::{COOKIE_LENGTH, Cookie};

/// A stream's connection and its place in the order of arrival.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) order: u64,
    pub(super) socket: TcpStream,
}

/// What a running test lets in.
#[derive(Debug)]
pub(super) struct Door {
    streams: Sender<Arrival>,
    /// Streams that it still wants.
    wanted: AtomicUsize,
    /// Connections for questions that it still takes.
    questions: AtomicUsize,
    /// Its streams, once they stand: received ones and sent ones.
    pub(super) watches: OnceLock<(Vec<Watch>, Vec<Watch>)>,
    /// Set when the test is over: probes end.
    pub(super) over: AtomicBool,
}

impl Door {
    /// Lets in `questions` connections for questions and no streams yet.
    pub(super) fn new(streams: Sender<Arrival>, questions: usize) -> Self {
        Self {
            streams,
            wanted: AtomicUsize::new(0),
            questions: AtomicUsize::new(questions),
            watches: OnceLock::new(),
            over: AtomicBool::new(false),
        }
    }

    pub(super) fn want_streams(&self, count: usize) {
        self.wanted.store(count, Ordering::Release);
    }
}

/// What a cookie means.
#[derive(Debug)]
pub(super) enum Route {
    /// A new client.
    NewTest,
    /// It went to its test, or was not wanted there.
    Taken,
    /// It asks questions of this test.
    Questions(Arc<Door>, TcpStream),
    /// It asks once.
    Foreign(TcpStream),
    /// Nobody wants it.
    Unwanted,
}

/// Doors by cookie.
#[derive(Debug, Default)]
pub(super) struct Routes {
    doors: Mutex<HashMap<Cookie, Arc<Door>>>,
    probes: Mutex<HashMap<Cookie, Arc<Door>>>,
}

impl Routes {
    /// Opens a door; `false` where another test has this cookie.
    pub(super) fn open(&self, cookie: Cookie, door: &Arc<Door>) -> bool {
        let mut doors = self.doors.lock().unwrap_or_else(PoisonError::into_inner);
        if doors.contains_key(&cookie) {
            return false;
        }
        doors.insert(cookie, Arc::clone(door));
        true
    }

    pub(super) fn open_for_probes(&self, cookie: Cookie, door: &Arc<Door>) {
        self.probes.lock().unwrap_or_else(PoisonError::into_inner).insert(cookie, Arc::clone(door));
    }

    pub(super) fn close(&self, cookie: &Cookie, probes: Option<&Cookie>) {
        self.doors.lock().unwrap_or_else(PoisonError::into_inner).remove(cookie);
        if let Some(probes) = probes {
            self.probes.lock().unwrap_or_else(PoisonError::into_inner).remove(probes);
        }
    }

    /// Sends a connection where its cookie says.
    pub(super) fn route(&self, cookie: &Cookie, order: u64, socket: &mut Option<TcpStream>) -> Route {
        let last = cookie.0[COOKIE_LENGTH - 1];
        if last == FOR_QUESTIONS || last == FOREIGN {
            let mut base = *cookie;
            base.0[COOKIE_LENGTH - 1] = 0;
            let door = self.probes.lock().unwrap_or_else(PoisonError::into_inner).get(&base).cloned();
            return match (door, socket.take()) {
                (Some(_), Some(socket)) if last == FOREIGN => Route::Foreign(socket),
                (Some(door), Some(socket)) if take_one(&door.questions) => Route::Questions(door, socket),
                _ => Route::Unwanted,
            };
        }
        let door = self.doors.lock().unwrap_or_else(PoisonError::into_inner).get(cookie).cloned();
        let Some(door) = door else { return Route::NewTest };
        if !take_one(&door.wanted) {
            return Route::Unwanted;
        }
        if let Some(socket) = socket.take() {
            // Where the test has ended meanwhile, the connection ends with it.
            let _ = door.streams.send(Arrival { order, socket });
        }
        Route::Taken
    }
}

fn take_one(count: &AtomicUsize) -> bool {
    count.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).is_ok()
}
