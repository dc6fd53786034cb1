//! Between the kernel and the world: frames in, receptions and statuses out, each at its time.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use frame::MacAddr;
use frame::mac::Header;
use linux::hwsim::{Delivery, Event, MAX_SERIES, Medium, Radio, Sent, Series, Status, Switchboard};
use linux::wifi::Control;
use radio::{Attribute, Confirm, Outcome, Token};

use super::count::Counts;
use super::wish::how;
use super::world::{Air, Happening, Port};
use super::{AirError, Begins, NodeSummary, Seat, Seating, Summary, rates};
use crate::scenario::Scenario;

/// Between two looks at the stop flag, and at the channels of radios that send nothing.
const LOOK_NS: u64 = 100_000_000;
/// Timers are late, in the lab by a step or two of its clock: the last of a wait is spent with reading the clock.
const EARLY_NS: u64 = 512;
/// Between two looks whether the module is still there.
const WATCH_NS: u64 = 1_000_000_000;
/// What is later than this counts as late.
const LATE_NS: u64 = 100_000;
/// Origin of a time that has not begun.
const NOT_BEGUN: u64 = u64::MAX;
/// Strength that the kernel is told for an ACK. It shows it to nobody.
const ACK_DBM: i8 = -50;

/// A frame of the kernel that is in the air.
struct Open {
    cookie: u64,
    flags: u32,
    plan: [Series; MAX_SERIES],
    asks: bool,
}

/// What the kernel is told, and the books.
struct Desk {
    medium: Medium,
    /// By which address the kernel knows the radio of each port.
    keys: Vec<Option<MacAddr>>,
    open: HashMap<(Port, Token), Open>,
    counts: Vec<Counts>,
    told: u64,
    late: u64,
    latest_ns: u64,
    /// A radio has.
    has_sent: bool,
}

pub(super) struct Daemon {
    pub seating: Seating,
    desk: Desk,
    air: Air,
    ports: HashMap<MacAddr, Port>,
    /// Tells where the interfaces of this namespace are; numbers of their radios.
    control: Option<(Control, HashMap<u32, Port>)>,
    /// When each radio last sent, and when all were looked at, ns of the air.
    sent_ns: Vec<Option<u64>>,
    /// Addresses that they have sent from.
    senders: HashSet<(Port, MacAddr)>,
    looked_ns: u64,
    /// Not the air, so that it can be asked; and when it was.
    watch: Medium,
    watched_ns: u64,
    strange: u64,
    origin_ns: u64,
    /// What hosts of this process switch.
    board: Option<Switchboard>,
}

impl Daemon {
    /// Becomes the air of the radios.
    pub fn open(scenario: &Scenario, seed: u64, board: Option<Switchboard>) -> Result<Daemon, AirError> {
        let mut medium = Medium::open()?;
        let radios = medium.radios()?;
        let count = scenario.radios();
        if radios.is_empty() {
            return Err(AirError::NoRadios { radios: count });
        }
        let all = (0..scenario.nodes()).flat_map(|n| (0..scenario.adapters(n)).map(move |a| (n, a)));
        let seat = |(port, (node, adapter)): (usize, (u32, u8))| {
            let radio = radios.get(port);
            Seat {
                node: scenario.node_name(node),
                adapter,
                radio: radio.map(|r| r.name.clone()),
                address: radio.map(|r| r.address.to_string()),
            }
        };
        let seating = Seating {
            nodes: all.enumerate().map(seat).collect(),
            spare: radios
                .iter()
                .skip(count as usize)
                .map(|r| r.name.clone())
                .collect(),
        };
        let keys: Vec<_> = (0..count as usize)
            .map(|n| radios.get(n).map(Radio::key))
            .collect();
        let ports = (0..)
            .zip(&keys)
            .filter_map(|(n, key)| Some(((*key)?, n)))
            .collect();
        let mut air = Air::new(scenario, seed);
        for (port, radio) in (0..count).zip(&radios) {
            air.set_address(port, radio.address);
        }
        medium.register()?;
        if let Some(board) = &board {
            medium.watch(board)?;
        }
        let mut daemon = Daemon {
            seating,
            air,
            ports,
            control: control(&radios, count),
            sent_ns: vec![None; count as usize],
            senders: HashSet::new(),
            looked_ns: 0,
            watch: Medium::open()?,
            watched_ns: 0,
            strange: 0,
            origin_ns: 0,
            board,
            desk: Desk {
                medium,
                keys,
                open: HashMap::new(),
                counts: vec![Counts::default(); count as usize],
                told: 0,
                late: 0,
                latest_ns: 0,
                has_sent: false,
            },
        };
        daemon.look();
        Ok(daemon)
    }

    /// Until `stop` is set, or the radios are gone.
    pub fn serve(&mut self, begins: Begins, stop: &AtomicBool) -> Result<(), AirError> {
        self.origin_ns = match begins {
            // What takes place while it is set up would be told late.
            Begins::WithAir => Medium::now_ns(),
            Begins::WithHosts => NOT_BEGUN,
        };
        let mut now = 0;
        while !stop.load(Ordering::Relaxed) {
            while let Some(change) = self.board.as_ref().and_then(Switchboard::next) {
                self.advance(change.at_ns.saturating_sub(self.origin_ns).min(now), now)?;
                match change.attribute {
                    Attribute::Channel(mhz) => self.air.tune(change.radio, mhz),
                    other => self.air.switch(change.radio, other),
                }
            }
            let begins_ns = self.board.as_ref().and_then(Switchboard::begins_ns);
            if let (NOT_BEGUN, Some(begins_ns)) = (self.origin_ns, begins_ns) {
                self.origin_ns = begins_ns;
            }
            self.advance(now, now)?;
            while let Some(event) = self.desk.medium.receive()? {
                match event {
                    Event::Sent(sent) => self.take(&sent)?,
                    Event::Address {
                        radio,
                        address,
                        added,
                    } => {
                        if let Some(port) = self.ports.get(&radio) {
                            match added {
                                true => self.air.add_address(*port, address),
                                false => self.air.remove_address(*port, address),
                            }
                        }
                    }
                }
            }
            if now - self.watched_ns >= WATCH_NS {
                self.watched_ns = now;
                if !self.watch.is_there()? {
                    return Err(AirError::Gone);
                }
            }
            let next = self.air.next_ns().unwrap_or(u64::MAX);
            if next > now {
                let until = self.origin_ns.saturating_add(next.saturating_sub(EARLY_NS));
                let look = match self.origin_ns {
                    NOT_BEGUN => Medium::now_ns(),
                    origin_ns => origin_ns + now,
                };
                self.desk.medium.wait(until.min(look + LOOK_NS))?;
            }
            now = self.now_or(next);
        }
        Ok(())
    }

    /// Plays until `until_ns`; told at `now`.
    fn advance(&mut self, until_ns: u64, now: u64) -> Result<(), AirError> {
        let desk = &mut self.desk;
        let mhz: Vec<u16> = (0..).zip(&desk.keys).map(|(n, _)| self.air.mhz(n)).collect();
        self.air.advance(until_ns, |at, port, happening| {
            desk.tell(now - at, port, mhz[port as usize], happening)
        })
    }

    /// The time since it began, ns, and 0 until then; if `next` is close by, that is waited for, by reading the clock.
    fn now_or(&self, next: u64) -> u64 {
        let due = self.origin_ns.saturating_add(next);
        loop {
            let at = Medium::now_ns();
            if at >= due || due - at > EARLY_NS {
                return at.saturating_sub(self.origin_ns);
            }
            std::hint::spin_loop();
        }
    }

    /// A radio sends a frame.
    fn take(&mut self, sent: &Sent) -> Result<(), AirError> {
        let Some(&port) = self.ports.get(&sent.radio) else {
            self.strange += 1;
            self.desk.refuse(sent)?;
            return Ok(());
        };
        self.desk.has_sent = true;
        let now = self.air.now_ns();
        let from = Header::parse(&sent.frame).ok().and_then(|h| h.transmitter());
        let is_new = from.is_some_and(|from| !self.senders.contains(&(port, from)));
        if is_new || now - self.looked_ns >= LOOK_NS {
            self.look();
        }
        if let Some(from) = from.filter(|_| is_new) {
            // An adapter takes the ACK to whatever it has sent as; also those that cannot be seen from here.
            self.senders.insert((port, from));
            self.air.add_address(port, from);
        }
        self.sent_ns[port as usize] = Some(now);
        self.desk.counts[port as usize].frames += 1;
        if let Some(mhz) = sent.mhz {
            self.air.tune(port, mhz);
        }
        let Some((how, asks)) = how(sent, self.air.mhz(port)) else {
            self.desk.counts[port as usize].refused += 1;
            self.desk.refuse(sent)?;
            return Ok(());
        };
        let token = self.air.send(port, &sent.frame, &how);
        let open = Open {
            cookie: sent.cookie,
            flags: sent.flags,
            plan: sent.plan,
            asks,
        };
        self.desk.open.insert((port, token), open);
        Ok(())
    }

    /// Finds out to which addresses radios answer, since the kernel does not tell those of monitors, and on which channels
    /// those are that have not told by sending. Only those of this namespace can be seen: others must send before
    /// they are found under an address that is not their permanent one, or on another channel than the scenario's.
    fn look(&mut self) {
        let before = std::mem::replace(&mut self.looked_ns, self.air.now_ns());
        let Some((control, ports)) = &mut self.control else {
            return;
        };
        for interface in control.interfaces().unwrap_or_default() {
            let Some(&port) = ports.get(&interface.wiphy) else {
                continue;
            };
            self.air.add_address(port, interface.address);
            let silent = self.sent_ns[port as usize].is_none_or(|sent| sent < before);
            if let (true, Some(mhz)) = (silent, interface.mhz) {
                self.air.tune(port, mhz);
            }
        }
    }

    /// What it has carried so far.
    pub fn summary(&self, seed: u64) -> Summary {
        let of_port = |(port, seat): (Port, &Seat)| {
            let (tries, overlapping) = self.air.tries(port);
            NodeSummary {
                seat: seat.clone(),
                counts: Counts {
                    tries,
                    overlapping,
                    ..self.desk.counts[port as usize]
                },
            }
        };
        let nodes: Vec<_> = (0..).zip(&self.seating.nodes).map(of_port).collect();
        Summary {
            seed,
            seconds: self.air.now_ns() as f64 / 1e9,
            total: nodes.iter().fold(Counts::default(), |a, n| a.plus(&n.counts)),
            nodes,
            strange_frames: self.strange,
            latest_us: self.desk.latest_ns as f64 / 1e3,
            late_ratio: self.desk.late as f64 / self.desk.told.max(1) as f64,
            overflows: self.desk.medium.overflows(),
        }
    }
}

impl Desk {
    /// Tells the kernel; false if it did not take a frame. `late_ns` after it happened.
    fn tell(&mut self, late_ns: u64, port: Port, mhz: u16, what: Happening) -> Result<bool, AirError> {
        let Some(key) = self.keys[port as usize] else {
            return Ok(false);
        };
        // Until a radio sends, nobody is there who could be told too late.
        let begun = u64::from(self.has_sent);
        self.told += begun;
        self.late += begun * u64::from(late_ns > LATE_NS);
        self.latest_ns = self.latest_ns.max(begun * late_ns);
        match what {
            Happening::Done(confirm) => {
                if let Some(open) = self.open.remove(&(port, confirm.token)) {
                    self.end(port, key, &open, &confirm)?;
                }
                Ok(true)
            }
            Happening::Heard {
                frame,
                rate,
                signal_dbm,
                ..
            } => {
                let band = rates::band(mhz).unwrap_or(frame::Band::Ghz5);
                let what = Delivery {
                    frame: &frame,
                    rate_index: rates::legacy_index(rate, band),
                    signal_dbm,
                    mhz,
                };
                let taken = self.medium.deliver(key, &what)?;
                let counts = &mut self.counts[port as usize];
                counts.received += u64::from(taken);
                counts.not_taken += u64::from(!taken);
                Ok(taken)
            }
        }
    }

    fn end(&mut self, port: Port, radio: MacAddr, open: &Open, confirm: &Confirm) -> Result<(), AirError> {
        let known = self.medium.report(&Status {
            radio,
            cookie: open.cookie,
            flags: open.flags,
            acked: confirm.outcome.is_acked(),
            signal_dbm: ACK_DBM,
            done: rates::done(&open.plan, confirm.attempts),
        })?;
        let counts = &mut self.counts[port as usize];
        counts.forgotten += u64::from(!known);
        *match confirm.outcome {
            Outcome::Acked => &mut counts.acked,
            Outcome::Refused(_) => &mut counts.refused,
            _ if open.asks => &mut counts.not_acked,
            _ => &mut counts.unasked,
        } += 1;
        Ok(())
    }

    /// Ends a frame that is not sent.
    fn refuse(&mut self, sent: &Sent) -> Result<(), AirError> {
        self.medium.report(&Status {
            radio: sent.radio,
            cookie: sent.cookie,
            flags: sent.flags,
            acked: false,
            signal_dbm: ACK_DBM,
            done: rates::done(&sent.plan, 0),
        })?;
        Ok(())
    }
}

/// nl80211 with the ports of its radios by their numbers; `None` if it cannot be had, which costs nothing but what
/// [`Daemon::look`] finds.
fn control(radios: &[Radio], count: u32) -> Option<(Control, HashMap<u32, Port>)> {
    let mut control = Control::open().ok()?;
    let all = control.wiphys().ok()?;
    let port = |name: &str| {
        (0..count)
            .zip(radios)
            .find(|(_, r)| r.name == name)
            .map(|(n, _)| n)
    };
    let ports = all
        .iter()
        .filter_map(|w| Some((w.index, port(&w.name)?)))
        .collect();
    Some((control, ports))
}
