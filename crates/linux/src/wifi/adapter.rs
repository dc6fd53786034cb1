//! One radio that is ours: its interfaces, its sockets, its attributes, and what it refuses.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use frame::mac::header::{Header, set_timestamp_us};
use frame::mac::{FrameType, Kind};
use frame::{AccessCategory, MacAddr};
use radio::{AckPolicy, Attribute, Capabilities, Queue, Refusal, RtsPolicy, SetError, Settable, Tsf, TxHow};
use rustix::io::Errno;
use rustix::net::SendFlags;

use super::certify::Proven;
use super::config::{AdapterConfig, TsfSource};
use super::error::Error;
use super::filter::{self, Wanted};
use super::monitor::{Monitors, kind};
use super::nl80211::{Control, MONITOR, Monitor};
use super::socket::{receiver, sender};
use super::watch::Watch;
use super::wiphy::{RadioBand, Wiphy};
use crate::clock::monotonic_ns;
use crate::sys::packet::{Instruction, attach_filter};

/// A radio that is open. Its interfaces are removed when it is dropped.
#[derive(Debug)]
pub struct Adapter {
    monitors: Monitors,
    watch: [Watch; 2],
    send: OwnedFd,
    received: OwnedFd,
    sent: OwnedFd,
    config: AdapterConfig,
    wiphy: Wiphy,
    proven: Proven,
    wanted: Wanted,
    tx_power_dbm: Option<i8>,
    /// Interface and channel let frames through.
    state: Result<(), Refusal>,
    /// Addresses of the radio's other interfaces that are up.
    neighbours: Vec<MacAddr>,
    /// Computer's TSF less `CLOCK_MONOTONIC`, us, wrapping.
    tsf_offset_us: u64,
}

impl Adapter {
    /// Opens a radio: makes its interfaces, sets channel and power, opens its sockets.
    ///
    /// # Errors
    /// [`Error`]; nothing is left behind.
    pub fn open(config: AdapterConfig) -> Result<Adapter, Error> {
        let mut control = Control::open()?;
        let wiphy = control.wiphy(&config.radio)?;
        if config.max_tries == 0 {
            return Err(Error::Config("max_tries is 0: a request has at least one try"));
        }
        let monitors = Monitors::open(control, &wiphy, config.monitor, config.address)?;
        let certificate = config.certificate.as_ref();
        let proven = certificate.map(|c| c.proven_for(&wiphy.name, monitors.kind));
        let proven = proven.transpose()?.unwrap_or_default();
        let wanted = Wanted {
            me: monitors.main.address,
            bssid: MacAddr::ZERO,
            promiscuous: false,
        };
        let shows_sent = monitors.cook.as_ref().unwrap_or(&monitors.main).index;
        let packet = Error::packet("open a packet socket");
        let receiver = |index, program: &[Instruction]| receiver(index, program, config.receive_octets);
        let mut adapter = Adapter {
            watch: monitors.control.watch(wiphy.index)?,
            send: sender(monitors.main.index).map_err(&packet)?,
            received: receiver(monitors.main.index, &filter::received(&wanted)).map_err(&packet)?,
            sent: receiver(shows_sent, &filter::sent()).map_err(&packet)?,
            tx_power_dbm: monitors.main.tx_power_dbm,
            monitors,
            config,
            wiphy,
            proven,
            wanted,
            state: Ok(()),
            neighbours: Vec::new(),
            tsf_offset_us: 0,
        };
        let mhz = adapter.config.channel_mhz;
        adapter.tune(mhz).map_err(|why| Error::Channel {
            wiphy: adapter.wiphy.name.clone(),
            mhz,
            why,
        })?;
        if let Some(dbm) = adapter.config.tx_power_dbm {
            let set = adapter.set_tx_power(dbm);
            set.map_err(Error::control("set the transmit power"))?;
        }
        adapter.refresh();
        Ok(adapter)
    }

    /// The BSSID whose beacons are told as such; zero: those of all.
    pub(super) fn bssid(&self) -> MacAddr {
        self.wanted.bssid
    }

    /// Its address.
    pub fn address(&self) -> MacAddr {
        self.wanted.me
    }

    /// What its interface is: [`Monitor::Active`] or [`Monitor::Plain`].
    pub fn monitor(&self) -> Monitor {
        self.monitors.kind
    }

    /// Names of its interfaces.
    pub fn interfaces(&self) -> impl Iterator<Item = &str> {
        let all = [Some(&self.monitors.main), self.monitors.cook.as_ref()];
        all.into_iter().flatten().map(|i| i.name.as_str())
    }

    /// Name of its driver, where the kernel tells.
    pub fn driver(&self) -> Option<String> {
        super::simulated::driver(&self.wiphy.name)
    }

    /// The band that it is in.
    pub(super) fn band(&self) -> Option<&RadioBand> {
        let (band, _) = self.wiphy.channel(self.config.channel_mhz)?;
        Some(band)
    }

    /// Interfaces that an earlier process had left behind, and that were removed.
    pub fn swept(&self) -> u32 {
        self.monitors.swept
    }

    /// Reads again what may have changed: whether the interface is up and its channel open for sending, and who else
    /// uses the radio. Allocates.
    pub(super) fn refresh(&mut self) {
        self.state = self.look().unwrap_or(Err(Refusal::NoAdapter));
    }

    fn look(&mut self) -> Option<Result<(), Refusal>> {
        let control = &mut self.monitors.control;
        if !control.is_up(self.monitors.main.index).ok()? {
            return Some(Err(Refusal::NoAdapter));
        }
        let index = self.wiphy.index;
        self.wiphy = control.wiphys().ok()?.into_iter().find(|w| w.index == index)?;
        let mut all = control.interfaces().ok()?;
        all.retain(|i| i.wiphy == index);
        let indexes: Vec<u32> = all.iter().map(|i| i.index).collect();
        let _ = attach_filter(self.watch[1].as_fd(), &filter::links(&indexes)); // Else news of others come, too.
        self.neighbours.clear();
        for other in all.iter().filter(|i| i.kind != MONITOR) {
            if control.is_up(other.index).unwrap_or(false) {
                self.neighbours.push(other.address);
            }
        }
        let (_, channel) = self.wiphy.channel(self.config.channel_mhz)?;
        Some(if channel.may_send() {
            Ok(())
        } else {
            Err(Refusal::ChannelForbidden)
        })
    }

    /// Why a request cannot be sent as it is to be, if so. The kernel would drop it without a word, or send it in
    /// another way.
    pub(super) fn refusal(&self, header: &Header<'_>, how: &TxHow) -> Option<Refusal> {
        if let Err(why) = self.state {
            return Some(why);
        }
        let Some((band, _)) = self.wiphy.channel(self.config.channel_mhz) else {
            return Some(Refusal::ChannelForbidden);
        };
        let series = how.series.as_slice();
        if series.iter().any(|s| !band.sends(s.rate, self.config.width)) {
            return Some(Refusal::RateNotSupported);
        }
        let one_rate = series.iter().all(|s| s.rate == series[0].rate);
        let max_tries = self
            .proven
            .max_tries
            .unwrap_or(u8::MAX)
            .min(self.config.max_tries);
        if !one_rate || how.series.attempts() > max_tries.into() {
            return Some(Refusal::NotSupported);
        }
        if self.adds_tries(header, how) == Some(true) {
            return Some(Refusal::NotSupported);
        }
        if how.rts == RtsPolicy::Always || !is_queue_of(header, how.queue) {
            return Some(Refusal::NotSupported);
        }
        let from = header.transmitter();
        let foreign = from.is_some_and(|from| !self.neighbours.contains(&from));
        let dropped = self.monitors.kind == Monitor::Plain && !self.neighbours.is_empty() && foreign;
        dropped.then_some(Refusal::AddressForbidden)
    }

    /// Whether Linux was seen to send more frames than such a request asks for. Without an ACK to wait for there is
    /// one, even where a rate table follows; which path holds, the certificate says.
    fn adds_tries(&self, header: &Header<'_>, how: &TxHow) -> Option<bool> {
        let to_station = header
            .transmitter()
            .is_some_and(|from| self.neighbours.contains(&from));
        let no_ack = how.ack == AckPolicy::NoAck || !header.wants_ack();
        let proof = match (to_station, no_ack) {
            (false, false) => self.proven.one_shot,
            (false, true) => self.proven.no_ack,
            (true, false) => self.proven.one_shot_to_stations,
            (true, true) => self.proven.no_ack_to_stations,
        };
        proof.map(|holds| !holds)
    }

    /// Writes what the adapter fills in: the timestamp of beacons and probe responses, if it is ours to fill in.
    pub(super) fn fill_in(&self, frame: &mut [u8]) {
        if self.config.tsf == TsfSource::Computer {
            let _ = set_timestamp_us(frame, self.tsf().0); // Other frames have none.
        }
    }

    /// Hands a packet to the kernel.
    pub(super) fn send(&self, packet: &[u8]) -> Result<(), Refusal> {
        let send = || rustix::net::send(&self.send, packet, SendFlags::DONTWAIT);
        match rustix::io::retry_on_intr(send) {
            Ok(_) => Ok(()),
            Err(Errno::NOBUFS | Errno::AGAIN | Errno::NOMEM) => Err(Refusal::QueueFull),
            Err(Errno::PERM | Errno::ACCESS) => Err(Refusal::NoPermission),
            Err(Errno::INVAL | Errno::MSGSIZE) => Err(Refusal::BadFrame),
            Err(_) => Err(Refusal::NoAdapter),
        }
    }

    fn tune(&mut self, mhz: u16) -> Result<(), &'static str> {
        let Some((band, channel)) = self.wiphy.channel(mhz) else {
            return Err("it has no such channel");
        };
        if channel.is_disabled {
            return Err("the rules of the country forbid it; set the right country (iw reg set)");
        }
        let kind = kind(band, channel, self.config.width)?;
        self.monitors.set_channel(mhz, kind)?;
        self.config.channel_mhz = mhz;
        Ok(())
    }

    /// Sets an attribute; the kernel does it before this returns.
    pub(super) fn set(&mut self, attribute: Attribute) -> Result<(), SetError> {
        if !self.settable().contains(&attribute) {
            return Err(SetError::NotSupported);
        }
        match attribute {
            Attribute::Channel(mhz) => {
                let known = self.wiphy.channel(mhz).map(|(_, channel)| channel.is_disabled);
                if known.ok_or(SetError::OutOfRange)? {
                    return Err(SetError::Forbidden);
                }
                self.tune(mhz).map_err(|_| SetError::NotSupported)?;
                self.refresh();
            }
            Attribute::TxPower(dbm) => {
                // More than is allowed there mac80211 would take, and send with less.
                let here = self.wiphy.channel(self.config.channel_mhz);
                let most = here.and_then(|(_, channel)| channel.max_dbm).unwrap_or(i8::MAX);
                if !(0..=most).contains(&dbm) {
                    return Err(SetError::OutOfRange);
                }
                self.set_tx_power(dbm).map_err(|e| set_error(&e))?;
            }
            Attribute::Bssid(bssid) => self.want(Wanted { bssid, ..self.wanted })?,
            Attribute::Promiscuous(promiscuous) => self.want(Wanted {
                promiscuous,
                ..self.wanted
            })?,
            Attribute::Tsf(tsf) => self.tsf_offset_us = tsf.0.wrapping_sub(monotonic_ns() / 1_000),
            _ => return Err(SetError::NotSupported),
        }
        Ok(())
    }

    fn set_tx_power(&mut self, dbm: i8) -> io::Result<()> {
        self.monitors.control.set_tx_power(self.wiphy.index, Some(dbm))?;
        self.monitors.restore_tx_power = true;
        self.tx_power_dbm = Some(dbm);
        Ok(())
    }

    fn want(&mut self, wanted: Wanted) -> Result<(), SetError> {
        let program = filter::received(&wanted);
        attach_filter(self.received.as_fd(), &program).map_err(|e| set_error(&e))?;
        self.wanted = wanted;
        Ok(())
    }

    fn settable(&self) -> Settable {
        let all = Settable::NONE
            .with(&Attribute::Channel(0))
            .with(&Attribute::TxPower(0))
            .with(&Attribute::Bssid(MacAddr::ZERO))
            .with(&Attribute::Promiscuous(false));
        match self.config.tsf {
            TsfSource::Adapter => all,
            TsfSource::Computer => all.with(&Attribute::Tsf(Tsf(0))),
        }
    }

    /// What it can do, given that `outstanding` requests may be open at once.
    pub(super) fn capabilities(&self, outstanding: u16) -> Capabilities {
        use radio::Plane::{T1, T8, T9};
        // As that interface Linux would send, with the rate table of the stations that it knows.
        let one_shot = match self.neighbours.contains(&self.wanted.me) {
            true => self.proven.one_shot_to_stations,
            false => self.proven.one_shot,
        };
        Capabilities {
            not_before: true,
            abort: true,
            one_shot: one_shot == Some(true),
            attempts: true,
            tsf: false,
            planes: [T1, T8, T9].iter().fold(0, |planes, p| planes | 1 << p.index()),
            max_outstanding: outstanding,
            max_frame_octets: radio::MAX_FRAME_OCTETS as u16,
            settable: self.settable(),
        }
    }

    /// The computer's TSF.
    fn tsf(&self) -> Tsf {
        Tsf((monotonic_ns() / 1_000).wrapping_add(self.tsf_offset_us))
    }

    /// Reads an attribute that does not depend on requests.
    pub(super) fn get(&self, name: radio::AttributeName) -> Option<Attribute> {
        use radio::AttributeName as Name;
        Some(match name {
            Name::Address => Attribute::Address(self.wanted.me),
            Name::Bssid => Attribute::Bssid(self.wanted.bssid),
            Name::Channel => Attribute::Channel(self.config.channel_mhz),
            Name::TxPower => Attribute::TxPower(self.tx_power_dbm?),
            Name::Promiscuous => Attribute::Promiscuous(self.wanted.promiscuous),
            Name::Tsf if self.config.tsf == TsfSource::Computer => Attribute::Tsf(self.tsf()),
            _ => return None,
        })
    }

    /// Whether indications may carry the adapter's time.
    pub(super) fn tells_tsft(&self) -> bool {
        self.config.tsf == TsfSource::Adapter
    }

    /// The socket of received frames, and that of frames that were sent.
    pub(super) fn sockets(&self) -> [BorrowedFd<'_>; 2] {
        [self.received.as_fd(), self.sent.as_fd()]
    }

    /// Lets nothing up that the radio has sent: its outcomes come another way.
    pub(super) fn show_nothing_sent(&self) -> Result<(), Error> {
        attach_filter(self.sent.as_fd(), &filter::nothing()).map_err(Error::packet("filter a packet socket"))
    }

    /// A socket that shows all that the radio sends and tells of, also for its other interfaces.
    pub(super) fn show_all_sent(&self) -> Result<OwnedFd, Error> {
        let index = self.monitors.main.index;
        receiver(index, &filter::sent(), self.config.receive_octets)
            .map_err(Error::packet("open a packet socket"))
    }

    /// Name of its radio.
    pub(super) fn wiphy_name(&self) -> &str {
        &self.wiphy.name
    }

    /// What tells of changes.
    pub(super) fn watches(&self) -> &[Watch; 2] {
        &self.watch
    }
}

/// Whether Linux puts a frame into this queue: by its traffic identifier, and without one into best effort; what is
/// not data goes with voice. There is no way into the beacon queue, so beacons go with voice, too.
fn is_queue_of(header: &Header<'_>, queue: Queue) -> bool {
    let voice = header.access_category() == AccessCategory::Voice;
    let data = header.frame_type() == FrameType::Data;
    match queue {
        Queue::Beacon => header.kind() == Kind::BEACON || (voice && !data),
        queue => Queue::from(header.access_category()) == queue,
    }
}

fn set_error(error: &io::Error) -> SetError {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => SetError::NoPermission,
        Some(libc::EINVAL | libc::ERANGE) => SetError::OutOfRange,
        Some(libc::ENODEV) => SetError::NotFound,
        _ => SetError::NotSupported,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::mac::{AckPolicy, Flags, FrameControl, QosControl};

    fn in_queue(kind: Kind, tid: u8, queue: Queue) -> bool {
        let mut mpdu = [0; 26];
        mpdu[..2].copy_from_slice(&FrameControl::new(kind, Flags::NONE).0);
        mpdu[24..].copy_from_slice(&QosControl::new(tid, AckPolicy::Normal).0.to_le_bytes());
        is_queue_of(&Header::parse(&mpdu).unwrap(), queue)
    }

    /// The queues that Linux 6.1 was seen to choose.
    #[test]
    fn the_queue_follows_the_frame() {
        let queues = [Queue::BestEffort, Queue::Background, Queue::Video, Queue::Voice];
        let of = |kind, tid| queues.map(|q| in_queue(kind, tid, q));
        for (tid, queue) in [(0, 0), (3, 0), (1, 1), (2, 1), (4, 2), (5, 2), (6, 3), (7, 3)] {
            assert_eq!(
                of(Kind::QOS_DATA, tid),
                std::array::from_fn(|i| i == queue),
                "TID {tid}"
            );
        }
        assert_eq!(of(Kind::DATA, 0), [true, false, false, false]);
        assert_eq!(of(Kind::BEACON, 0), [false, false, false, true]);
        assert!(in_queue(Kind::BEACON, 0, Queue::Beacon));
        assert!(!in_queue(Kind::DATA, 0, Queue::Beacon) && !in_queue(Kind::QOS_DATA, 6, Queue::Beacon));
    }
}
