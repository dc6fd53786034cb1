//! One radio that is ours: its interfaces, its sockets, its attributes, and what it refuses.

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
use super::keeper::{Keeper, View};
use super::monitor::Monitors;
use super::nl80211::{Control, Monitor};
use super::socket::{receiver, sender};
use super::wiphy::{RadioBand, Wiphy};
use crate::clock::monotonic_ns;
use crate::sys::packet::{Instruction, attach_filter};

/// A radio that is open. Its interfaces are removed when it is dropped; of a host's adapter, when the host is.
#[derive(Debug)]
pub struct Adapter {
    /// Until the clerk of a host has it.
    keeper: Option<Keeper>,
    /// What the keeper saw last.
    view: View,
    send: OwnedFd,
    received: OwnedFd,
    sent: OwnedFd,
    config: AdapterConfig,
    /// As it was when the radio was opened.
    wiphy: Wiphy,
    driver: Option<String>,
    main: u32,
    interfaces: Vec<String>,
    kind: Monitor,
    swept: u32,
    proven: Proven,
    /// Computer's TSF less `CLOCK_MONOTONIC`, us, wrapping.
    tsf_offset_us: u64,
    /// Changes of its channel that are asked for and not answered: nothing is sent meanwhile.
    pub(super) retunes: u16,
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
        let (main, kind, swept) = (monitors.main.index, monitors.kind, monitors.swept);
        let shows_sent = monitors.cook.as_ref().unwrap_or(&monitors.main).index;
        let interfaces = [Some(&monitors.main), monitors.cook.as_ref()];
        let interfaces = interfaces.into_iter().flatten().map(|i| i.name.clone());
        let interfaces = interfaces.collect();
        let packet = Error::packet("open a packet socket");
        let receiver = |index, program: &[Instruction]| receiver(index, program, config.receive_octets);
        let send = sender(main).map_err(&packet)?;
        let received = receiver(main, &filter::received(&wanted)).map_err(&packet)?;
        let sent = receiver(shows_sent, &filter::sent()).map_err(&packet)?;
        let view = View::new(config.channel_mhz, monitors.main.tx_power_dbm, wanted);
        let filtered = received.try_clone().map_err(&packet)?;
        let mut keeper = Keeper::new(monitors, wiphy.clone(), filtered, config.width, view)?;
        let mhz = config.channel_mhz;
        keeper.tune(mhz).map_err(|why| Error::Channel {
            wiphy: wiphy.name.clone(),
            mhz,
            why,
        })?;
        if let Some(dbm) = config.tx_power_dbm {
            let set = keeper.set_tx_power(dbm);
            set.map_err(Error::control("set the transmit power"))?;
        }
        keeper.refresh();
        Ok(Adapter {
            view: keeper.view(),
            keeper: Some(keeper),
            send,
            received,
            sent,
            driver: super::simulated::driver(&wiphy.name),
            config,
            wiphy,
            main,
            interfaces,
            kind,
            swept,
            proven,
            tsf_offset_us: 0,
            retunes: 0,
        })
    }

    /// The BSSID whose beacons are told as such; zero: those of all.
    pub(super) fn bssid(&self) -> MacAddr {
        self.view.wanted.bssid
    }

    /// Its address.
    pub fn address(&self) -> MacAddr {
        self.view.wanted.me
    }

    /// What its interface is: [`Monitor::Active`] or [`Monitor::Plain`].
    pub fn monitor(&self) -> Monitor {
        self.kind
    }

    /// Names of its interfaces.
    pub fn interfaces(&self) -> impl Iterator<Item = &str> {
        self.interfaces.iter().map(String::as_str)
    }

    /// Name of its driver, where the kernel tells.
    pub fn driver(&self) -> Option<&str> {
        self.driver.as_deref()
    }

    /// The band that it is in.
    pub(super) fn band(&self) -> Option<&RadioBand> {
        let (band, _) = self.wiphy.channel(self.view.mhz)?;
        Some(band)
    }

    /// Interfaces that an earlier process had left behind, and that were removed.
    pub fn swept(&self) -> u32 {
        self.swept
    }

    /// Reads an adapter without a host again.
    #[cfg(test)]
    pub(super) fn refresh(&mut self) {
        let keeper = self.keeper.as_mut().expect("no host has it");
        keeper.refresh();
        self.view = keeper.view();
    }

    /// Whether its interfaces are there and up; of an adapter without a host.
    pub(super) fn is_up(&mut self) -> bool {
        self.keeper.as_mut().is_none_or(Keeper::is_up)
    }

    /// Gives away what asks the kernel; from then on what it sees comes by [`see`](Self::see).
    pub(super) fn give_keeper(&mut self) -> Option<Keeper> {
        self.keeper.take()
    }

    /// The radio as it is now. Does not allocate.
    pub(super) fn see(&mut self, view: View) {
        self.view = view;
    }

    /// Why a request cannot be sent as it is to be, if so. The kernel would drop it without a word, or send it in
    /// another way.
    pub(super) fn refusal(&self, header: &Header<'_>, how: &TxHow) -> Option<Refusal> {
        if let Err(why) = self.view.state {
            return Some(why);
        }
        let Some(rates) = self.view.rates else {
            return Some(Refusal::ChannelForbidden);
        };
        let series = how.series.as_slice();
        if series.iter().any(|s| !rates.sends(s.rate, self.config.width)) {
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
        let neighbours = self.view.neighbours();
        let foreign = from.is_some_and(|from| !neighbours.contains(&from));
        let dropped = self.kind == Monitor::Plain && !neighbours.is_empty() && foreign;
        dropped.then_some(Refusal::AddressForbidden)
    }

    /// Whether Linux was seen to send more frames than such a request asks for. Without an ACK to wait for there is
    /// one, even where a rate table follows; which path holds, the certificate says.
    fn adds_tries(&self, header: &Header<'_>, how: &TxHow) -> Option<bool> {
        let to_station = header
            .transmitter()
            .is_some_and(|from| self.view.neighbours().contains(&from));
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

    /// Sets an attribute that takes no kernel; `None` if it takes the keeper.
    pub(super) fn set_here(&mut self, attribute: Attribute) -> Option<Result<(), SetError>> {
        if !self.settable().contains(&attribute) {
            return Some(Err(SetError::NotSupported));
        }
        match attribute {
            Attribute::Tsf(tsf) => {
                self.tsf_offset_us = tsf.0.wrapping_sub(monotonic_ns() / 1_000);
                Some(Ok(()))
            }
            _ => None,
        }
    }

    /// Whether [`set_here`](Self::set_here) does it.
    pub(super) fn sets_here(&self, attribute: &Attribute) -> bool {
        matches!(attribute, Attribute::Tsf(_)) || !self.settable().contains(attribute)
    }

    /// Sets an attribute of an adapter without a host; it is done when this returns.
    pub(super) fn set(&mut self, attribute: Attribute) -> Result<(), SetError> {
        if let Some(result) = self.set_here(attribute) {
            return result;
        }
        let keeper = self.keeper.as_mut().ok_or(SetError::NotSupported)?;
        let result = keeper.set(attribute);
        self.view = keeper.view();
        result
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
        let one_shot = match self.view.neighbours().contains(&self.view.wanted.me) {
            true => self.proven.one_shot_to_stations,
            false => self.proven.one_shot,
        };
        Capabilities {
            not_before: true,
            abort: true,
            one_shot: one_shot == Some(true),
            attempts: true,
            tsf: false,
            // what a monitor sends has one rate, whatever the driver could
            series: 1,
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
            Name::Address => Attribute::Address(self.view.wanted.me),
            Name::Bssid => Attribute::Bssid(self.view.wanted.bssid),
            Name::Channel => Attribute::Channel(self.view.mhz),
            Name::TxPower => Attribute::TxPower(self.view.tx_power_dbm?),
            Name::Promiscuous => Attribute::Promiscuous(self.view.wanted.promiscuous),
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
        receiver(self.main, &filter::sent(), self.config.receive_octets)
            .map_err(Error::packet("open a packet socket"))
    }

    /// Name of its radio.
    pub(super) fn wiphy_name(&self) -> &str {
        &self.wiphy.name
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
