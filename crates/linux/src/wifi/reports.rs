//! What a radio reports of the packets that its ordinary interfaces have sent: each comes back when the driver has told the
//! kernel how it went. A monitor interface of the same radio shows it; nothing of the interfaces themselves is touched.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use frame::mac::header::Header;
use radio::{Instant, MAX_FRAME_OCTETS};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::error::Error;
use super::monitor::Monitors;
use super::nl80211::{Control, Monitor};
use super::packet::status;
use super::source::times;
use crate::sys::packet::{bind_packet, enable_receive_stamps, receive_now};

/// Room for the longest frame with a radiotap header.
const ROOM: usize = MAX_FRAME_OCTETS + 512;
/// LLC and SNAP without the type of what follows (IEEE 802, Annex of RFC 1042).
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];
/// Octets before that in a frame that the adapter has encrypted (CCMP, GCMP).
const CIPHER_OCTETS: usize = 8;

/// The reports of one radio.
#[derive(Debug)]
pub struct Reports {
    socket: OwnedFd,
    octets: Box<[u8]>,
    monitors: Monitors,
    interface: u32,
}

impl Reports {
    /// Of the radio that this interface belongs to (`wlan0`). Needs CAP_NET_ADMIN and CAP_NET_RAW.
    ///
    /// # Errors
    /// [`Error::NoSuchRadio`] if it is no 802.11 interface, and those of opening a radio.
    pub fn open(interface: &str) -> Result<Reports, Error> {
        let mut control = Control::open()?;
        let all = control.interfaces()?;
        let none = || Error::NoSuchRadio {
            name: interface.into(),
            have: all.iter().map(|i| i.name.clone()).collect(),
        };
        let found = all.iter().find(|i| i.name == interface).ok_or_else(none)?;
        let wiphys = control.wiphys()?;
        let wiphy = wiphys.iter().find(|w| w.index == found.wiphy).ok_or_else(none)?;
        let monitors = Monitors::open(control, wiphy, Some(Monitor::Plain), None)?;
        let open = || -> io::Result<OwnedFd> {
            let fd =
                rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
            enable_receive_stamps(fd.as_fd())?;
            bind_packet(fd.as_fd(), monitors.main.index, libc::ETH_P_ALL as u16)?;
            Ok(fd)
        };
        Ok(Reports {
            socket: open().map_err(Error::packet("open a packet socket"))?,
            octets: vec![0; ROOM].into(),
            monitors,
            interface: found.index,
        })
    }

    /// Microseconds for which the medium was busy since some time before. `None`: the driver does not count that. Asks the
    /// kernel, and the kernel may ask the radio.
    pub fn busy_time_us(&mut self) -> Option<u64> {
        self.monitors.control.busy_time_us(self.interface)
    }

    /// The next packet (of IP, for example) that was sent or given up, and when the report of it came on CLOCK_MONOTONIC.
    /// `None` if there is none yet. Polls as readable when there may be.
    pub fn take(&mut self) -> Option<(Instant, &[u8])> {
        let (at, range) = loop {
            let received = match receive_now(self.socket.as_fd(), &mut self.octets) {
                Ok(received) => received,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                // Nothing there, or the interface is down.
                Err(_) => return None,
            };
            let octets = &self.octets[..received.length.min(ROOM)];
            let sent = status(octets).and_then(|s| packet_of(s.frame));
            if let Some(packet) = sent {
                let (t8, now) = times(received.stamp_ns);
                let end = packet.as_ptr_range().end.addr() - octets.as_ptr().addr();
                break (t8.unwrap_or(now), end - packet.len()..end);
            }
        };
        Some((at, &self.octets[range]))
    }
}

impl AsFd for Reports {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The packet within a frame of data.
fn packet_of(frame: &[u8]) -> Option<&[u8]> {
    let header = Header::parse(frame).ok()?;
    let body = header.body();
    let within = |body: &&[u8]| body.starts_with(&SNAP);
    let plain = Some(body).filter(within);
    let llc = plain.or_else(|| body.get(CIPHER_OCTETS..).filter(within))?;
    llc.get(SNAP.len() + 2..)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::OrdinarySocket;
    use super::super::ordinary::tests::ad_hoc_stations;
    use super::*;

    /// Two stations of an ad hoc network: what one sends to the other is reported, acknowledged or not, after it was sent.
    /// Runs in the lab, on the two last radios of mac80211_hwsim.
    #[test]
    fn packets_of_an_ordinary_interface_are_reported() {
        let Some((_turn, mut control, all)) = ad_hoc_stations() else {
            return;
        };
        let [a, b] = [&all[0], &all[1]];
        let mut reports = Reports::open(&a.name).unwrap();
        let again = Reports::open(&a.name).unwrap_err();
        assert!(matches!(again, Error::InUse { .. }), "{again}");
        let [from_a, from_b] = [a, b].map(|i| OrdinarySocket::open(&i.name).unwrap());
        let frame = |to: [u8; 6], from: [u8; 6], packet: &[u8]| [&to[..], &from, &[8, 0], packet].concat();
        from_b.send(&frame([0xff; 6], b.address.0, &[9; 46])).unwrap();
        std::thread::sleep(Duration::from_secs(1));
        let mut last = Instant::ZERO;
        for n in 0..20 {
            let packet = [n; 60];
            let sent = Instant::from_ns(crate::clock::monotonic_ns());
            from_a.send(&frame(b.address.0, a.address.0, &packet)).unwrap();
            let mut reported = None;
            for _ in 0..100 {
                // The kernel's own packets, for the neighbours, are reported, too.
                while let Some((at, octets)) = reports.take() {
                    reported = (octets == packet).then_some(at).or(reported);
                }
                if reported.is_some() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            let at = reported.unwrap();
            assert!(at >= sent && at > last, "{sent:?} {at:?} {last:?}");
            last = at;
        }
        drop(reports);
        for interface in [a, b] {
            control.set_up(interface.index, false).unwrap();
        }
        let ours = |i: &super::super::Interface| i.name.starts_with("sdmac");
        assert!(!control.interfaces().unwrap().iter().any(ours));
    }

    #[test]
    fn a_packet_is_found_behind_its_headers() {
        let mut frame = vec![0x08, 0, 0, 0];
        frame.extend([1; 20]);
        let data = |before: &[u8], llc: &[u8]| [&frame[..], before, llc, &[8, 0], b"packet"].concat();
        assert_eq!(packet_of(&data(&[], &SNAP)), Some(&b"packet"[..]));
        assert_eq!(packet_of(&data(&[7; 8], &SNAP)), Some(&b"packet"[..]));
        assert_eq!(packet_of(&data(&[7; 4], &SNAP)), None);
        assert_eq!(packet_of(&frame[..10]), None);
        assert_eq!(packet_of(&[]), None);
    }
}
