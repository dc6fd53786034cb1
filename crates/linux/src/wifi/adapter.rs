//! One radio that is ours: its interfaces, its sockets, and what it refuses.

mod attributes;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use frame::mac::header::{Header, set_timestamp_us};
use frame::mac::{FrameType, Kind};
use frame::{AccessCategory, MacAddr, Rate, airtime};
use radio::{AckPolicy, Instant, Queue, Refusal, RtsPolicy, TxHow};
use rustix::io::Errno;
use rustix::net::SendFlags;

use super::certify::Proven;
use super::config::{AdapterConfig, Carrier, TsfSource};
use super::error::Error;
use super::ethernet::{self, Ordinary};
use super::filter::{self, Wanted};
use super::keeper::{Keeper, View};
use super::monitor::Monitors;
use super::nl80211::{Control, Monitor};
use super::ordinary::{self, OrdinarySocket};
use super::packet::{radiotap, write};
use super::socket::{make_room, receiver, sender};
use super::wiphy::{RadioBand, Wiphy};
use crate::sys::packet::{Instruction, attach_filter, set_priority};

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
    /// It sends through an interface of the user's.
    ordinary: Option<Ordinary>,
    /// What the sending socket was told last: the priority of a traffic identifier.
    priority: Option<u16>,
    swept: u32,
    proven: Proven,
    /// Computer's TSF less `CLOCK_MONOTONIC`, us, wrapping.
    tsf_offset_us: u64,
    /// Changes of its channel that are asked for and not answered: nothing is sent meanwhile.
    pub(super) retunes: u16,
}

impl Adapter {
    /// Opens a radio: makes its interfaces, sets channel and power, opens its sockets. With [`Carrier::Ordinary`] the interface
    /// that sends is there already, and the one that is made only listens, on the channel of that one.
    ///
    /// # Errors
    /// [`Error`]; nothing is left behind.
    pub fn open(config: AdapterConfig) -> Result<Adapter, Error> {
        let mut control = Control::open()?;
        let ordinary = match config.carrier {
            Carrier::Monitor(_) => None,
            Carrier::Ordinary(rate) => Some(ordinary::find(&mut control, &config, rate)?),
        };
        let wiphy = control.wiphy(&config.radio)?;
        if config.max_tries == 0 {
            return Err(Error::Config("max_tries is 0: a request has at least one try"));
        }
        let mhz = config.channel_mhz;
        let (kind, address) = match config.carrier {
            Carrier::Monitor(kind) => (kind, config.address),
            Carrier::Ordinary(_) => (Some(Monitor::Plain), None),
        };
        let mut monitors = Monitors::open(control, &wiphy, kind, address)?;
        if let Some((interface, ordinary)) = &ordinary {
            monitors.pin(interface, mhz, ordinary.rate)?;
        }
        let certificate = config.certificate.as_ref().filter(|_| ordinary.is_none());
        let proven = certificate.map(|c| c.proven_for(&wiphy.name, monitors.kind));
        let proven = proven.transpose()?.unwrap_or_default();
        let user = ordinary.as_ref().map(|(interface, _)| interface);
        let sends = user.unwrap_or(&monitors.main);
        let wanted = Wanted {
            me: sends.address,
            bssid: MacAddr::ZERO,
            promiscuous: false,
        };
        let (main, kind, swept) = (monitors.main.index, monitors.kind, monitors.swept);
        let shows_sent = monitors.cook.as_ref().unwrap_or(&monitors.main).index;
        let interfaces = [user, Some(&monitors.main), monitors.cook.as_ref()];
        let interfaces = interfaces.into_iter().flatten().map(|i| i.name.clone());
        let interfaces = interfaces.collect();
        let packet = Error::packet("open a packet socket");
        let receiver = |index, program: &[Instruction]| receiver(index, program, config.receive_octets);
        let received = receiver(main, &filter::received(&wanted)).map_err(&packet)?;
        let (send, sent) = match user {
            None => (sender(main), receiver(shows_sent, &filter::sent())),
            Some(interface) => {
                let socket = OrdinarySocket::on(interface.index, 0).map_err(&packet)?;
                let send = OwnedFd::from(socket);
                let sent = make_room(&send, config.receive_octets).and_then(|()| send.try_clone());
                (Ok(send), sent)
            }
        };
        let (send, sent) = (send.map_err(&packet)?, sent.map_err(&packet)?);
        let view = View::new(mhz, sends.tx_power_dbm, wanted);
        let filtered = received.try_clone().map_err(&packet)?;
        let (user, ordinary) = ordinary.unzip();
        let softmac = config.softmac.clone();
        let mut keeper = Keeper::new(
            monitors,
            wiphy.clone(),
            filtered,
            config.width,
            user,
            softmac,
            view,
        )?;
        if ordinary.is_none() {
            keeper.tune(mhz).map_err(|why| Error::Channel {
                wiphy: wiphy.name.clone(),
                mhz,
                why,
            })?;
        }
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
            ordinary,
            priority: None,
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

    /// What its monitor interface is: [`Monitor::Active`] or [`Monitor::Plain`].
    pub fn monitor(&self) -> Monitor {
        self.kind
    }

    /// Whether an interface of the user's carries its frames, as [`Carrier::Ordinary`] has it.
    pub fn is_ordinary(&self) -> bool {
        self.ordinary.is_some()
    }

    /// Names of its interfaces, the one that sends first.
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
        if let Some(ordinary) = &self.ordinary {
            let is_its_queue = is_queue_of(header, how.queue);
            return ordinary.refusal(self.view.wanted.me, header, how, is_its_queue);
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

    /// Writes what goes to the socket for a frame; gives the octets before the frame, and all. `None` if there is no room.
    pub(super) fn write(
        &self,
        header: &Header<'_>,
        frame: &[u8],
        how: &TxHow,
        expects_ack: bool,
        out: &mut [u8],
    ) -> Option<(usize, usize)> {
        if self.ordinary.is_some() {
            return ethernet::write(header, out).map(|all| (0, all));
        }
        // Without an ACK to wait for there is one try.
        let tries = if expects_ack { how.series.attempts() } else { 1 };
        let radiotap = radiotap(how.series.as_slice()[0].rate, tries as u8, expects_ack);
        write(radiotap, frame, out)
    }

    /// Writes what the adapter fills in: the timestamp of beacons and probe responses, if it is ours to fill in.
    ///
    /// It tells the time at which it is on the air itself, if the frame goes out at once.
    pub(super) fn fill_in(&self, frame: &mut [u8], rate: Rate) {
        if self.config.tsf == TsfSource::Computer && self.ordinary.is_none() {
            let ahead_us = airtime::timestamp_ns(rate) / 1_000;
            let _ = set_timestamp_us(frame, self.tsf().0.wrapping_add(ahead_us)); // Other frames have none.
        }
    }

    /// Hands a packet with this traffic identifier to the kernel. In an injected frame it is written; an ordinary interface knows
    /// it by the priority of the socket, 256 and the identifier (cfg80211_classify8021d).
    pub(super) fn send(&mut self, packet: &[u8], tid: u8) -> Result<(), Refusal> {
        let priority = 256 + u16::from(tid);
        if self.ordinary.is_some() && self.priority != Some(priority) {
            set_priority(self.send.as_fd(), priority).map_err(|_| Refusal::NoPermission)?;
            self.priority = Some(priority);
        }
        let send = || rustix::net::send(&self.send, packet, SendFlags::DONTWAIT);
        match rustix::io::retry_on_intr(send) {
            Ok(_) => Ok(()),
            Err(Errno::NOBUFS | Errno::AGAIN | Errno::NOMEM) => Err(Refusal::QueueFull),
            Err(Errno::PERM | Errno::ACCESS) => Err(Refusal::NoPermission),
            Err(Errno::INVAL | Errno::MSGSIZE) => Err(Refusal::BadFrame),
            Err(_) => Err(Refusal::NoAdapter),
        }
    }

    /// Lets the time of an adapter that has the computer's begin at `start`.
    pub(super) fn begin(&mut self, start: Instant) {
        self.tsf_offset_us = 0_u64.wrapping_sub(start.as_ns() / 1_000);
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
