//! The other way to an outcome: SO_WIFI_STATUS, on ordinary interfaces, where the kernel makes the 802.11 frame.
//!
//! For adapters whose driver has no monitor interfaces that send, or where such a one is not wanted. What goes in is an Ethernet
//! frame; tries and sequence number are Linux's choice, and of the outcome it tells only whether an ACK came. A frame to a
//! group, or one to a station that Linux does not know, has no outcome at all. A program can use the socket by itself; an
//! [`Adapter`](super::Adapter) with [`Carrier::Ordinary`](super::Carrier::Ordinary) carries a protocol over it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use frame::Rate;
use frame::rate::Width;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::config::AdapterConfig;
use super::error::Error;
use super::ethernet::Ordinary;
use super::nl80211::{ACCESS_POINT, AD_HOC, Control, Interface};
use crate::sys::packet::{
    Received, bind_packet, bypass_queue, enable_wifi_status, receive_now, receive_status,
};

/// A packet socket on an ordinary 802.11 interface that tells which frames were acknowledged.
#[derive(Debug)]
pub struct OrdinarySocket(OwnedFd);

/// What came back of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrdinaryStatus {
    /// Octets of the Ethernet frame, which were written to the buffer.
    pub octets: usize,
    /// Whether an ACK came.
    pub acked: bool,
}

impl OrdinarySocket {
    /// On the interface of this name (`wlan0`).
    ///
    /// # Errors
    /// [`Error::NoSuchRadio`] if it is no 802.11 interface, [`Error::NoPermission`] without CAP_NET_RAW.
    pub fn open(interface: &str) -> Result<OrdinarySocket, Error> {
        Self::hearing(interface, 0)
    }

    /// The same, and it hears what comes with this EtherType: see [`receive`](Self::receive).
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn hearing(interface: &str, ethertype: u16) -> Result<OrdinarySocket, Error> {
        let all = Control::open()?.interfaces()?;
        let found = all.iter().find(|i| i.name == interface);
        let index = found.ok_or_else(|| Error::NoSuchRadio {
            name: interface.into(),
            have: all.iter().map(|i| i.name.clone()).collect(),
        })?;
        Self::on(index.index, ethertype).map_err(Error::packet("open a packet socket"))
    }

    /// On the interface with this number.
    pub(super) fn on(index: u32, ethertype: u16) -> io::Result<OrdinarySocket> {
        let socket =
            rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        enable_wifi_status(socket.as_fd())?;
        bypass_queue(socket.as_fd())?;
        bind_packet(socket.as_fd(), index, ethertype)?;
        Ok(OrdinarySocket(socket))
    }

    /// Sends an Ethernet frame.
    ///
    /// # Errors
    /// As send(2) on a packet socket.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        rustix::io::retry_on_intr(|| rustix::net::send(&self.0, frame, SendFlags::DONTWAIT))?;
        Ok(())
    }

    /// The next Ethernet frame that has come: its octets, which were written to the buffer; `None` if there is none yet.
    ///
    /// # Errors
    /// As recv(2) on a packet socket.
    pub fn receive(&self, frame: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::retry_on_intr(|| rustix::net::recv(&self.0, &mut *frame, RecvFlags::DONTWAIT)) {
            Ok((octets, _)) => Ok(Some(octets)),
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// The next outcome, with the frame that it is about; `None` if there is none yet. The socket polls as having an
    /// error while there is.
    ///
    /// # Errors
    /// As recvmsg(2).
    pub fn status(&self, frame: &mut [u8]) -> io::Result<Option<OrdinaryStatus>> {
        loop {
            match receive_status(self.0.as_fd(), frame) {
                Ok(received) => {
                    if let Some(acked) = received.wifi_acked {
                        let octets = received.length;
                        return Ok(Some(OrdinaryStatus { octets, acked }));
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

/// The next frame of the error queue, with its outcome. An error of the socket itself, as when the interface goes down, is taken
/// off meanwhile: it would wake the reader again and again.
pub(super) fn receive_outcome(socket: BorrowedFd<'_>, frame: &mut [u8]) -> io::Result<Received> {
    match receive_status(socket, frame) {
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => receive_now(socket, &mut []),
        received => received,
    }
}

/// An interface that is to carry the frames of a protocol, at one rate.
///
/// # Errors
/// [`Error::Ordinary`] if it is none that can, or not as it is wanted.
pub(super) fn find(
    control: &mut Control,
    config: &AdapterConfig,
    rate: Rate,
) -> Result<(Interface, Ordinary), Error> {
    let name = &config.radio;
    let refuse = |why: String| Error::Ordinary {
        interface: name.clone(),
        why,
    };
    let all = control.interfaces()?;
    let Some(found) = all.iter().find(|i| i.name == *name) else {
        let have: Vec<&str> = all.iter().map(|i| i.name.as_str()).collect();
        let have = if have.is_empty() {
            "none".into()
        } else {
            have.join(", ")
        };
        return Err(refuse(format!("it is no 802.11 interface; there is {have}")));
    };
    if ![AD_HOC, ACCESS_POINT].contains(&found.kind) {
        return Err(refuse(format!(
            "it is neither in an ad hoc network nor an access point's: ip link set {name} down; iw dev {name} set type ibss; and \
             let it join one"
        )));
    }
    let mhz = config.channel_mhz;
    let join = format!("iw dev {name} ibss join NAME {mhz} fixed-freq BSSID");
    let link = control
        .link(found.index)
        .map_err(Error::control("look at an interface"))?;
    if let Some(wanted) = config.address.filter(|wanted| *wanted != found.address) {
        return Err(refuse(format!(
            "its address is {}, and it has to be {wanted}: ip link set {name} down; ip link set {name} address {wanted}; \
             ip link set {name} up; {join}",
            found.address
        )));
    }
    if !link.is_up {
        return Err(refuse(format!("it is down: ip link set {name} up; {join}")));
    }
    if !link.has_carrier {
        return Err(refuse(format!("it is in no network yet: {join}")));
    }
    match found.mhz {
        Some(there) if there == mhz => {}
        there => {
            let there = there.map_or("no channel that is told".into(), |there| format!("{there} MHz"));
            return Err(refuse(format!(
                "its network is on {there}, and {mhz} MHz is asked for"
            )));
        }
    }
    if config.width != Width::Mhz20 || config.tx_power_dbm.is_some() {
        return Err(refuse(
            "width and power of its channel are its network's: leave both as they are".into(),
        ));
    }
    let ordinary = Ordinary {
        rate,
        is_access_point: found.kind == ACCESS_POINT,
    };
    Ok((found.clone(), ordinary))
}

impl From<OrdinarySocket> for OwnedFd {
    fn from(socket: OrdinarySocket) -> OwnedFd {
        socket.0
    }
}

impl AsFd for OrdinarySocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
pub(in crate::wifi) mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use frame::MacAddr;
    use frame::mac::header::Header;
    use frame::mac::{Flags, FrameControl, FrameType, Kind};
    use radio::{Event, Instant, Outcome, Protocol, Radio, TxHow};

    use super::*;
    use crate::wifi::certify::AccessPoint;
    use crate::wifi::confirm::Path;
    use crate::wifi::{
        AdHoc, Adapter, Carrier, Host, HostConfig, Interface, SimulatedRadios, simulated_radios,
    };

    /// The next outcome, as (octets are those of `frame`, acked); `None` if there is none within 100 ms.
    fn outcome(socket: &OrdinarySocket, frame: &[u8]) -> Option<(bool, bool)> {
        let mut back = [0; 100];
        for _ in 0..100 {
            if let Some(status) = socket.status(&mut back).unwrap() {
                return Some((&back[..status.octets] == frame, status.acked));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    }

    /// In the lab the last two radios of mac80211_hwsim, last first, as stations of one ad hoc network, for one test at a time;
    /// elsewhere it says that the test is skipped.
    pub(in crate::wifi) fn ad_hoc_stations() -> Option<(SimulatedRadios, Control, Vec<Interface>)> {
        let turn = simulated_radios(2)?;
        let mut control = Control::open().unwrap();
        let mut all = control.interfaces().unwrap();
        all.retain(|i| i.name.starts_with("wlan"));
        all.sort_by_key(|i| std::cmp::Reverse(i.index));
        all.truncate(2);
        for interface in &all {
            let network = AdHoc {
                ssid: "sdmac",
                mhz: 2412,
                bssid: Some(frame::MacAddr::local(0x1b55)),
            };
            control.join_ad_hoc(interface, &network).unwrap();
        }
        // mac80211 looks for a network for 7 s, with timers that it rounds to whole seconds: one begins after 9 to 12 s.
        let has_joined = |i: &Interface| {
            let carrier = std::fs::read_to_string(format!("/sys/class/net/{}/carrier", i.name));
            carrier.is_ok_and(|c| c.trim() == "1")
        };
        for _ in 0..300 {
            if all.iter().all(has_joined) {
                return Some((turn, control, all));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("no ad hoc network began within 30 s");
    }

    /// Two stations of an ad hoc network: acked while the other one is there, not acked when it has gone. Runs in the
    /// lab, on the two last radios of mac80211_hwsim.
    #[test]
    fn the_error_queue_tells_who_acknowledged() {
        let Some((_turn, mut control, all)) = ad_hoc_stations() else {
            return;
        };
        let [a, b] = [&all[0], &all[1]];
        let socket = OrdinarySocket::open(&a.name).unwrap();
        let frame = |to: [u8; 6]| {
            let mut frame = [0; 60];
            frame[..6].copy_from_slice(&to);
            frame[6..12].copy_from_slice(&a.address.0);
            frame[12..14].copy_from_slice(&[0x88, 0xb5]);
            frame
        };
        // A station of an ad hoc network is known when it was heard.
        let other = OrdinarySocket::open(&b.name).unwrap();
        other
            .send(&[&[0xff; 6], &b.address.0[..], &[0x88, 0xb5], &[0; 46]].concat())
            .unwrap();
        std::thread::sleep(Duration::from_secs(1));
        let to_b = frame(b.address.0);
        socket.send(&to_b).unwrap();
        assert_eq!(outcome(&socket, &to_b), Some((true, true)));
        socket.send(&frame([0xff; 6])).unwrap();
        assert_eq!(outcome(&socket, &to_b), None, "to a group there is none");
        control.set_up(b.index, false).unwrap();
        socket.send(&to_b).unwrap();
        assert_eq!(outcome(&socket, &to_b), Some((true, false)));
        control.set_up(a.index, false).unwrap();
        let error = OrdinarySocket::open("lo").unwrap_err();
        assert!(matches!(error, Error::NoSuchRadio { .. }), "{error}");
    }

    /// Sends its frame when it starts; keeps the outcome, and what is heard.
    #[derive(Default)]
    struct One {
        frame: Vec<u8>,
        outcome: Option<Outcome>,
        heard: Vec<Vec<u8>>,
    }

    impl Protocol for One {
        fn handle(&mut self, _: Instant, event: Event<'_>, radio: &mut dyn Radio) {
            match event {
                Event::Start if !self.frame.is_empty() => {
                    let token = radio.token();
                    radio.request(token, &self.frame, &TxHow::multi_shot(Rate::OFDM_6, 2));
                }
                Event::Confirm(c) => self.outcome = Some(c.outcome),
                Event::Indication(i) => self.heard.push(i.frame.to_vec()),
                _ => {}
            }
        }

        fn deadline(&self) -> Option<Instant> {
            None
        }
    }

    /// An access point sends with its own header, whether a frame is addressed as in its network or as in an ad hoc network; and
    /// who has sent a frame that it passes on is told. Runs in the lab, on the two last radios of mac80211_hwsim.
    #[test]
    fn an_access_point_carries_frames() {
        let Some(radios) = simulated_radios(2) else { return };
        let [station, point] = [2, 1].map(|last| &radios.names[radios.names.len() - last]);
        let mhz = 5180;
        let ear = Adapter::open(AdapterConfig::new(station, mhz)).unwrap();
        let to = ear.address();
        let wiphy = Control::open().unwrap().wiphy(point).unwrap();
        let mut point = AccessPoint::start_as(&wiphy, mhz, "point").unwrap();
        point.set_basic_rates(&[12, 24, 48]).unwrap();
        point.know(to).unwrap();
        let mut ear = Host::new(vec![ear], HostConfig::default()).unwrap();
        let stop = AtomicBool::new(false);
        let elsewhere = MacAddr::local(0x77);
        for (flags, third) in [
            (Flags::NONE, point.address),
            (Flags::FROM_DS, point.address),
            (Flags::FROM_DS, elsewhere),
        ] {
            let mut frame = vec![0; 24];
            frame[..2].copy_from_slice(&FrameControl::new(Kind::DATA, flags).0);
            frame[4..10].copy_from_slice(&to.0);
            frame[10..16].copy_from_slice(&point.address.0);
            frame[16..22].copy_from_slice(&third.0);
            frame.extend(b"body");
            let adapter = Adapter::open(AdapterConfig {
                carrier: Carrier::Ordinary(Rate::OFDM_6),
                ..AdapterConfig::new("point", mhz)
            });
            let config = HostConfig {
                confirm: Path::Status,
                ..HostConfig::default()
            };
            let mut host = Host::new(vec![adapter.unwrap()], config).unwrap();
            let mut one = One {
                frame,
                ..One::default()
            };
            let mut other = One::default();
            for (host, protocol) in [(&mut host, &mut one), (&mut ear, &mut other)] {
                let until = Host::now() + radio::Duration::from_ms(50);
                host.run(protocol, &mut (), Some(until), &stop).unwrap();
            }
            assert_eq!(one.outcome, Some(Outcome::Acked), "{flags:?}");
            let heard: Vec<Header<'_>> = other
                .heard
                .iter()
                .map(|f| Header::parse(f).unwrap())
                .filter(|h| h.frame_type() == FrameType::Data && !h.is_group())
                .collect();
            assert_eq!(heard.len(), 1, "{flags:?}");
            assert_eq!(
                (heard[0].flags(), heard[0].body()),
                (Flags::FROM_DS, &b"body"[..])
            );
            assert_eq!(
                [heard[0].transmitter(), heard[0].address3()],
                [Some(point.address), Some(third)]
            );
        }
    }
}
