//! Takes connections, reads their cookies, and decides who gets in. Never waits for anybody.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Scope;

use host::clock::Clock;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use socket2::Socket;
use units::{Duration, Instant};

use super::event::Event;
use super::routes::{Route, Routes};
use super::session::{self, Session};
use super::{ServerLimits, ServerPlan};
use crate::iperf::latency;
use crate::iperf::token::Verifier;
use crate::iperf::wire::{COOKIE_LENGTH, Cookie, State};

/// Connections taken in one go, so that a flood of them does not keep the others waiting.
const AT_ONCE: usize = 64;
/// The gate looks around at least so often.
const ROUND_MS: u16 = 50;
/// How often drops are told of.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// epoll's name for the event that tests end with; listeners have the numbers below, connections those above.
const WAKE: u64 = 1 << 16;
const FIRST_CONNECTION: u64 = WAKE + 1;

/// What the gate and all sessions share.
pub(super) struct House<'a> {
    pub(super) plan: &'a ServerPlan,
    pub(super) clock: Clock,
    pub(super) routes: Routes,
    pub(super) verifier: Mutex<Option<Verifier>>,
    pub(super) on_event: &'a (dyn Fn(Event) + Sync),
    pub(super) tests_started: AtomicU64,
    /// Addresses of tests that ended since the gate last looked.
    ended: Mutex<Vec<IpAddr>>,
    wake: EventFd,
}

/// A connection that has not said all of its cookie, or waits for a place.
#[derive(Debug)]
struct Undecided {
    socket: TcpStream,
    peer: SocketAddr,
    cookie: [u8; COOKIE_LENGTH],
    have: usize,
    since: Instant,
    /// It was answered, and is kept only until the client closes it.
    answered: bool,
}

struct Gate<'scope, 'env> {
    house: &'env House<'env>,
    scope: &'scope Scope<'scope, 'env>,
    limits: ServerLimits,
    epoll: Epoll,
    /// By number of arrival, so that the first is the oldest.
    undecided: BTreeMap<u64, Undecided>,
    waiting: VecDeque<u64>,
    /// The connections that wait, by number of arrival.
    in_line: HashMap<u64, Undecided>,
    tests: usize,
    tests_of: HashMap<IpAddr, usize>,
    next: u64,
    dropped: u64,
    dropped_for: &'static str,
    told_at: Instant,
}

/// Serves until the stop flag is set and every test has ended.
pub(super) fn run(
    plan: &ServerPlan,
    listeners: &[Socket],
    clock: Clock,
    on_event: &(dyn Fn(Event) + Sync),
) -> io::Result<()> {
    let house = House {
        plan,
        clock,
        routes: Routes::default(),
        verifier: Mutex::new(plan.token.clone().map(Verifier::new)),
        on_event,
        tests_started: AtomicU64::new(0),
        ended: Mutex::default(),
        wake: EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?,
    };
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    for (number, listener) in listeners.iter().enumerate() {
        epoll.add(listener, EpollEvent::new(EpollFlags::EPOLLIN, number as u64))?;
    }
    epoll.add(&house.wake, EpollEvent::new(EpollFlags::EPOLLIN, WAKE))?;
    std::thread::scope(|scope| {
        let mut gate = Gate {
            house: &house,
            scope,
            limits: plan.limits,
            epoll,
            undecided: BTreeMap::new(),
            waiting: VecDeque::new(),
            in_line: HashMap::new(),
            tests: 0,
            tests_of: HashMap::new(),
            next: FIRST_CONNECTION,
            dropped: 0,
            dropped_for: "",
            told_at: clock.now(),
        };
        gate.serve(listeners)
    })
}

impl House<'_> {
    /// A test of this address is over.
    pub(super) fn test_ended(&self, address: IpAddr) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).push(address);
        let _ = self.wake.write(1);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.plan.stop.is_stopped()
    }
}

impl Gate<'_, '_> {
    fn serve(&mut self, listeners: &[Socket]) -> io::Result<()> {
        let mut events = [EpollEvent::empty(); 256];
        while !self.house.is_stopped() {
            let ready = match self.epoll.wait(&mut events, EpollTimeout::from(ROUND_MS)) {
                Ok(count) => count,
                Err(nix::errno::Errno::EINTR) => 0,
                Err(errno) => return Err(errno.into()),
            };
            for event in &events[..ready] {
                match event.data() {
                    WAKE => {
                        let _ = self.house.wake.read();
                    }
                    number if number < WAKE => self.accept(&listeners[number as usize]),
                    number if self.in_line.contains_key(&number) => self.leave_line(number),
                    number => self.read_cookie(number),
                }
            }
            self.count_ended();
            self.forget_old();
            self.admit_waiting();
            self.tell_drops();
        }
        Ok(())
    }

    fn accept(&mut self, listener: &Socket) {
        for _ in 0..AT_ONCE {
            let (socket, peer) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(
                        error.raw_os_error(),
                        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS)
                    ) =>
                {
                    // It would be ready at once again: make room, or at least let time pass.
                    if !self.drop_oldest("no more open files") {
                        std::thread::sleep(std::time::Duration::from_millis(10));
                    }
                    return;
                }
                // The connection was gone before it was taken.
                Err(_) => continue,
            };
            let Some(peer) = peer.as_socket() else { continue };
            let socket = TcpStream::from(socket);
            if socket.set_nonblocking(true).is_err() {
                continue;
            }
            if self.undecided.len() >= self.limits.undecided {
                self.drop_oldest("too many connections that said nothing");
            }
            let number = self.next;
            self.next += 1;
            let interest = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP;
            if self.epoll.add(&socket, EpollEvent::new(interest, number)).is_ok() {
                let since = self.house.clock.now();
                let cookie = [0; COOKIE_LENGTH];
                let undecided = Undecided { socket, peer, cookie, have: 0, since, answered: false };
                self.undecided.insert(number, undecided);
                // Its cookie is often there already.
                self.read_cookie(number);
            }
        }
    }

    fn read_cookie(&mut self, number: u64) {
        let Some(one) = self.undecided.get_mut(&number) else { return };
        if one.answered {
            self.undecided.remove(&number);
            return;
        }
        loop {
            match one.socket.read(&mut one.cookie[one.have..]) {
                Ok(0) => return self.drop_undecided(number, "closed before its cookie was complete"),
                Ok(count) => one.have += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.drop_undecided(number, "broke before its cookie was complete"),
            }
            if one.have == COOKIE_LENGTH {
                break;
            }
        }
        if let Some(one) = self.undecided.remove(&number) {
            let _ = self.epoll.delete(one.socket.as_fd());
            self.decide(number, one);
        }
    }

    /// The cookie is known.
    fn decide(&mut self, number: u64, one: Undecided) {
        let cookie = Cookie(one.cookie);
        let Undecided { socket, peer, since, .. } = one;
        let mut socket = Some(socket);
        match self.house.routes.route(&cookie, number, &mut socket) {
            Route::Taken => {}
            Route::Foreign(mut socket) => {
                // One byte fits into an empty socket. The client ends the connection; to wait for that here would hold a place.
                let _ = socket.write(&[1]);
                self.linger(number, socket, peer);
            }
            Route::Questions(door, socket) => {
                let house = self.house;
                let answered = Arc::clone(&door);
                let stop = move || house.is_stopped() || door.over.load(Ordering::Relaxed);
                let answer = move || latency::answer(socket, &answered.watches, &stop);
                // Where no thread can be had, the client's questions go unanswered.
                let _ = std::thread::Builder::new().name("bench-answers".into()).spawn_scoped(self.scope, answer);
            }
            Route::NewTest => {
                if let Some(socket) = socket {
                    let (cookie, have) = (cookie.0, COOKIE_LENGTH);
                    self.new_test(number, Undecided { socket, peer, cookie, have, since, answered: false });
                }
            }
            Route::Unwanted => self.count_drop("a cookie that nobody waits for"),
        }
    }

    /// Keeps an answered connection until the client closes it, among those that have nothing to say.
    fn linger(&mut self, number: u64, socket: TcpStream, peer: SocketAddr) {
        let interest = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP;
        if self.epoll.add(&socket, EpollEvent::new(interest, number)).is_ok() {
            let since = self.house.clock.now();
            let kept = Undecided { socket, peer, cookie: [0; COOKIE_LENGTH], have: 0, since, answered: true };
            self.undecided.insert(number, kept);
        }
    }

    fn new_test(&mut self, number: u64, mut one: Undecided) {
        if self.has_room_for(one.peer.ip()) && self.waiting.is_empty() {
            return self.start(one);
        }
        if self.waiting.len() >= self.limits.waiting {
            let _ = one.socket.write(&[State::AccessDenied.byte()]);
            return (self.house.on_event)(Event::Busy { peer: one.peer });
        }
        // While it waits it has nothing to send: what comes is its end.
        if self.epoll.add(&one.socket, EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP, number)).is_ok() {
            (self.house.on_event)(Event::Waiting { peer: one.peer });
            one.since = self.house.clock.now();
            self.waiting.push_back(number);
            self.in_line.insert(number, one);
        }
    }

    fn has_room_for(&self, address: IpAddr) -> bool {
        let of_address = self.tests_of.get(&address.to_canonical()).copied().unwrap_or(0);
        self.tests < self.limits.tests && of_address < self.limits.tests_per_address
    }

    fn start(&mut self, one: Undecided) {
        let address = one.peer.ip().to_canonical();
        let (house, peer) = (self.house, one.peer);
        let session = Session { house, control: one.socket, cookie: Cookie(one.cookie), peer };
        let run = move || {
            let _ended = OnDrop(|| house.test_ended(address));
            // One test's mistake is no other's.
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| session::run(session))).is_err() {
                let reason = "a mistake in linerate: this test was broken off".to_owned();
                (house.on_event)(Event::Refused { peer, reason });
            }
        };
        let started = std::thread::Builder::new().name("bench-test".into()).spawn_scoped(self.scope, run);
        if started.is_ok() {
            self.tests += 1;
            *self.tests_of.entry(address).or_default() += 1;
        }
    }

    fn count_ended(&mut self) {
        let ended = std::mem::take(&mut *self.house.ended.lock().unwrap_or_else(PoisonError::into_inner));
        for address in ended {
            self.tests = self.tests.saturating_sub(1);
            if let Some(count) = self.tests_of.get_mut(&address) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    self.tests_of.remove(&address);
                }
            }
        }
    }

    /// Starts who waits, the first that there is room for.
    fn admit_waiting(&mut self) {
        let now = self.house.clock.now();
        while let Some(place) = self.waiting.iter().position(|number| {
            let one = self.in_line.get(number);
            one.is_none_or(|one| self.has_room_for(one.peer.ip()) || now.since(one.since) >= self.limits.wait)
        }) {
            let Some(number) = self.waiting.remove(place) else { return };
            let Some(mut one) = self.in_line.remove(&number) else { continue };
            let _ = self.epoll.delete(one.socket.as_fd());
            if self.has_room_for(one.peer.ip()) {
                self.start(one);
            } else {
                let _ = one.socket.write(&[State::AccessDenied.byte()]);
                (self.house.on_event)(Event::Busy { peer: one.peer });
            }
        }
    }

    /// A client in line closed its connection, or spoke out of turn.
    fn leave_line(&mut self, number: u64) {
        self.waiting.retain(|other| *other != number);
        if let Some(one) = self.in_line.remove(&number) {
            (self.house.on_event)(Event::Busy { peer: one.peer });
        }
    }

    fn forget_old(&mut self) {
        let now = self.house.clock.now();
        while let Some((number, one)) = self.undecided.first_key_value()
            && now.since(one.since) >= self.limits.patience
        {
            let number = *number;
            self.drop_undecided(number, "said nothing for too long");
        }
    }

    fn drop_oldest(&mut self, reason: &'static str) -> bool {
        let oldest = self.undecided.first_key_value().map(|(number, _)| *number);
        if let Some(number) = oldest {
            self.drop_undecided(number, reason);
        }
        oldest.is_some()
    }

    fn drop_undecided(&mut self, number: u64, reason: &'static str) {
        if self.undecided.remove(&number).is_some_and(|one| !one.answered) {
            self.count_drop(reason);
        }
    }

    fn count_drop(&mut self, reason: &'static str) {
        self.dropped += 1;
        self.dropped_for = reason;
    }

    fn tell_drops(&mut self) {
        let now = self.house.clock.now();
        if self.dropped > 0 && now.since(self.told_at) >= TELL_EVERY {
            (self.house.on_event)(Event::Dropped { connections: self.dropped, reason: self.dropped_for });
            self.dropped = 0;
            self.told_at = now;
        }
    }
}

struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
