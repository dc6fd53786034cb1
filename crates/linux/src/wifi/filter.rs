//! Which packets of a monitor interface come up, and which news: classic BPF programs, run by the kernel before it wakes
//! anybody.
//!
//! A monitor shows two kinds of packets. What the radio has *received* has no TX_FLAGS in its radiotap header; what
//! comes back because the radio has *sent* it has. TX_FLAGS is bit 15 of the present word, so 0x80 in octet 5.

use frame::MacAddr;

use crate::sys::packet::Instruction;

const PRESENT: u32 = 5;
const PRESENT_TX_FLAGS: u32 = 0x80;
/// Frame control of a beacon, first octet.
const BEACON: u32 = 0x80;
/// The same of a probe request.
const PROBE_REQUEST: u32 = 0x40;
/// The capabilities in a beacon, and the bit of an ad hoc network (IEEE 802.11-2016, 9.4.1.4).
const CAPABILITY: u32 = 24 + 10;
const CAPABILITY_IBSS: u32 = 2;
const ACCEPT: u32 = u32::MAX;
const DROP: u32 = 0;

/// Which received frames come up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Frames for this address and for groups.
    pub me: MacAddr,
    /// Of beacons only those of this BSSID, and those of ad hoc networks, which may be one to join; all if it is zero.
    pub bssid: MacAddr,
    /// Frames for others too.
    pub promiscuous: bool,
}

/// Lets through what the radio has sent.
pub(super) fn sent() -> Vec<Instruction> {
    vec![
        load(libc::BPF_B | libc::BPF_ABS, PRESENT),
        jump(libc::BPF_JSET, PRESENT_TX_FLAGS, 0, 1),
        end(ACCEPT),
        end(DROP),
    ]
}

/// Lets nothing through.
pub(super) fn nothing() -> Vec<Instruction> {
    vec![end(DROP)]
}

/// Lets through what the radio has received, as far as it is wanted.
pub(super) fn received(wanted: &Wanted) -> Vec<Instruction> {
    let [hi, lo] = halves(wanted.me);
    let [bssid_hi, bssid_lo] = halves(wanted.bssid);
    let all_beacons = wanted.bssid == MacAddr::ZERO;
    let octet = libc::BPF_B | libc::BPF_IND;
    let (half, word) = (libc::BPF_H | libc::BPF_IND, libc::BPF_W | libc::BPF_IND);
    let mut p = vec![
        load(libc::BPF_B | libc::BPF_ABS, PRESENT),
        jump(libc::BPF_JSET, PRESENT_TX_FLAGS, TO_DROP, 0),
        // X: octets of the radiotap header, a little-endian number at octet 2.
        load(libc::BPF_B | libc::BPF_ABS, 3),
        step(libc::BPF_ALU | libc::BPF_LSH | libc::BPF_K, 8),
        step(libc::BPF_MISC | libc::BPF_TAX, 0),
        load(libc::BPF_B | libc::BPF_ABS, 2),
        step(libc::BPF_ALU | libc::BPF_ADD | libc::BPF_X, 0),
        step(libc::BPF_MISC | libc::BPF_TAX, 0),
    ];
    if !all_beacons {
        p.extend([
            load(octet, 0),
            jump(libc::BPF_JEQ, BEACON, 0, 6), // Not a beacon: to the receiver address.
            load(word, 16),
            jump(libc::BPF_JEQ, bssid_hi, 0, 2),
            load(half, 20),
            jump(libc::BPF_JEQ, bssid_lo, TO_ACCEPT, 0),
            load(octet, CAPABILITY),
            jump(libc::BPF_JSET, CAPABILITY_IBSS, TO_ACCEPT, TO_DROP),
        ]);
    }
    if !wanted.promiscuous {
        p.extend([
            load(octet, 4),
            jump(libc::BPF_JSET, 1, TO_ACCEPT, 0), // A group.
            // A probe request to address zero is for all: so mac80211 (6.1) looks for ad hoc networks.
            load(octet, 0),
            jump(libc::BPF_JEQ, PROBE_REQUEST, 0, 4),
            load(word, 4),
            jump(libc::BPF_JEQ, 0, 0, 2),
            load(half, 8),
            jump(libc::BPF_JEQ, 0, TO_ACCEPT, 0),
            load(word, 4),
            jump(libc::BPF_JEQ, hi, 0, TO_DROP),
            load(half, 8),
            jump(libc::BPF_JEQ, lo, TO_ACCEPT, TO_DROP),
        ]);
    }
    finish(p)
}

/// Lets through news of rtnetlink about these interfaces (`ifi_index` behind `struct nlmsghdr`): those of others would make
/// a host read its own again, in the midst of its work. News about all if there are more than a program has room for.
pub(super) fn links(indexes: &[u32]) -> Vec<Instruction> {
    const INDEX: u32 = 16 + 4;
    const MOST: usize = 200; // a jump reaches 255 instructions
    let Some((last, others)) = indexes.split_last() else {
        return nothing();
    };
    if others.len() > MOST {
        return vec![end(ACCEPT)];
    }
    let mut p = vec![load(libc::BPF_W | libc::BPF_ABS, INDEX)];
    p.extend(
        others
            .iter()
            .map(|i| jump(libc::BPF_JEQ, i.to_be(), TO_ACCEPT, 0)),
    );
    p.push(jump(libc::BPF_JEQ, last.to_be(), TO_ACCEPT, TO_DROP));
    finish(p)
}

/// Lets through news of nl80211 about this radio (attribute `wiphy_attribute`), and those about no radio: rules for all.
pub(super) fn radio(wiphy_attribute: u16, wiphy: u32) -> Vec<Instruction> {
    const ATTRIBUTES: u32 = 16 + 4; // struct nlmsghdr, struct genlmsghdr
    const FIND_ATTRIBUTE: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_NLATTR).cast_unsigned();
    finish(vec![
        load(libc::BPF_IMM, ATTRIBUTES),
        step(libc::BPF_LDX | libc::BPF_IMM, wiphy_attribute.into()),
        load(libc::BPF_W | libc::BPF_ABS, FIND_ATTRIBUTE),
        jump(libc::BPF_JEQ, 0, TO_ACCEPT, 0),
        step(libc::BPF_MISC | libc::BPF_TAX, 0),
        load(libc::BPF_W | libc::BPF_IND, 4),
        jump(libc::BPF_JEQ, wiphy.to_be(), TO_ACCEPT, TO_DROP),
    ])
}

/// Places that are known when the program is whole.
const TO_ACCEPT: u8 = 0xfe;
const TO_DROP: u8 = 0xff;

/// Adds the two ends, and makes jumps to them of the places.
fn finish(mut p: Vec<Instruction>) -> Vec<Instruction> {
    let accept = p.len();
    for (i, instruction) in p.iter_mut().enumerate() {
        for place in [&mut instruction.jt, &mut instruction.jf] {
            match *place {
                TO_ACCEPT => *place = (accept - i - 1) as u8,
                TO_DROP => *place = (accept - i) as u8,
                _ => {}
            }
        }
    }
    p.extend([end(ACCEPT), end(DROP)]);
    p
}

fn halves(address: MacAddr) -> [u32; 2] {
    let [a, b, c, d, e, f] = address.0;
    [u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([0, 0, e, f])]
}

fn step(code: u32, k: u32) -> Instruction {
    Instruction {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    }
}

fn load(how: u32, at: u32) -> Instruction {
    step(libc::BPF_LD | how, at)
}

fn jump(test: u32, k: u32, jt: u8, jf: u8) -> Instruction {
    Instruction {
        jt,
        jf,
        ..step(libc::BPF_JMP | test | libc::BPF_K, k)
    }
}

fn end(verdict: u32) -> Instruction {
    step(libc::BPF_RET | libc::BPF_K, verdict)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::time::Duration;

    use super::*;
    use crate::netlink::{message, number};
    use crate::sys::packet::{attach_filter, receive_stamped};

    const ME: MacAddr = MacAddr::local(7);
    const OTHER: MacAddr = MacAddr::local(8);
    const BSSID: MacAddr = MacAddr::local(9);

    /// The verdicts of the kernel's own interpreter. Behind a UDP socket the header of UDP would be in the way, so
    /// the packets travel over a pair of Unix sockets.
    fn passes(program: &[Instruction], packets: &[Vec<u8>]) -> Vec<bool> {
        let (a, b) = std::os::unix::net::UnixDatagram::pair().unwrap();
        b.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        attach_filter(b.as_fd(), program).unwrap();
        let passed = |packet: &Vec<u8>| {
            a.send(packet).is_ok() // The filter of a Unix socket refuses at the sender, or drops in silence.
                && {
                    b.set_nonblocking(true).unwrap();
                    receive_stamped(b.as_fd(), &mut [0; 512]).is_ok()
                }
        };
        packets.iter().map(passed).collect()
    }

    #[test]
    fn news_about_others_do_not_come() {
        let link = |index: u32| {
            message(libc::RTM_NEWLINK, 0, |m| {
                m.extend([0; 4]);
                m.extend(index.to_ne_bytes());
                m.extend([0; 8]);
            })
        };
        let links_of = |own: &[u32]| passes(&links(own), &[1, 3, 0x0100_0000, 70_000].map(link));
        assert_eq!(links_of(&[3]), [false, true, false, false]);
        assert_eq!(links_of(&[70_000, 1]), [true, false, false, true]);
        assert_eq!(links_of(&[]), [false; 4]);
        assert_eq!(links_of(&(0..500).collect::<Vec<_>>()), [true; 4]);
        let news = |attributes: &[(u16, u32)]| {
            message(30, 0, |m| {
                m.extend([7, 1, 0, 0]);
                attributes
                    .iter()
                    .for_each(|(kind, value)| number(m, *kind, *value));
            })
        };
        let all = [
            news(&[(3, 5), (1, 2)]),
            news(&[(3, 2), (1, 5)]),
            news(&[(3, 2)]),
            news(&[]),
        ];
        assert_eq!(passes(&radio(1, 2), &all), [true, false, true, true]);
    }

    /// A radiotap header of `octets` octets with or without TX_FLAGS, and a frame.
    fn packet(octets: usize, sent: bool, control: u8, receiver: MacAddr, address3: MacAddr) -> Vec<u8> {
        let mut p = vec![0; octets];
        p[2..4].copy_from_slice(&(octets as u16).to_le_bytes());
        p[5] = if sent { 0x80 } else { 0x40 };
        p.extend([control, 0, 0, 0]);
        p.extend(receiver.0);
        p.extend(OTHER.0);
        p.extend(address3.0);
        p.extend([0; 20]);
        p
    }

    #[test]
    fn what_was_sent_and_what_was_received_are_told_apart() {
        let both = [packet(13, true, 8, OTHER, OTHER), packet(36, false, 8, ME, OTHER)];
        assert_eq!(passes(&sent(), &both), [true, false]);
        let wanted = Wanted {
            me: ME,
            bssid: MacAddr::ZERO,
            promiscuous: false,
        };
        assert_eq!(passes(&received(&wanted), &both), [false, true]);
    }

    #[test]
    fn only_what_is_wanted_comes_up() {
        // Headers up to a length of which the upper octet counts.
        for octets in [8, 36, 300] {
            let packets = [
                packet(octets, false, 0x08, ME, BSSID),
                packet(octets, false, 0x88, OTHER, BSSID),
                packet(octets, false, 0x08, MacAddr::BROADCAST, BSSID),
                packet(octets, false, 0x80, MacAddr::BROADCAST, BSSID),
                packet(octets, false, 0x80, MacAddr::BROADCAST, OTHER),
                packet(octets, false, 0x08, MacAddr([2, 0, 0, 0, 0, 8]), BSSID),
                packet(octets, true, 0x08, ME, BSSID),
            ];
            let verdicts = |bssid, promiscuous| {
                let wanted = Wanted {
                    me: ME,
                    bssid,
                    promiscuous,
                };
                passes(&received(&wanted), &packets)
            };
            assert_eq!(
                verdicts(MacAddr::ZERO, false),
                [true, false, true, true, true, false, false]
            );
            assert_eq!(
                verdicts(BSSID, false),
                [true, false, true, true, false, false, false]
            );
            assert_eq!(
                verdicts(BSSID, true),
                [true, true, true, true, false, true, false]
            );
            assert_eq!(
                verdicts(MacAddr::ZERO, true),
                [true, true, true, true, true, true, false]
            );
        }
    }

    /// Of two ad hoc networks of one name one joins the other, so a member hears of others.
    #[test]
    fn beacons_of_other_ad_hoc_networks_come_up() {
        let wanted = Wanted {
            me: ME,
            bssid: BSSID,
            promiscuous: false,
        };
        let beacon = |capability| {
            let mut p = packet(36, false, 0x80, MacAddr::BROADCAST, OTHER);
            p[36 + 34] = capability;
            p
        };
        let packets = [beacon(1), beacon(2), beacon(0x12)];
        assert_eq!(passes(&received(&wanted), &packets), [false, true, true]);
    }

    #[test]
    fn a_probe_request_to_nobody_is_for_all() {
        let wanted = Wanted {
            me: ME,
            bssid: BSSID,
            promiscuous: false,
        };
        let all = [MacAddr::ZERO, OTHER, MacAddr([0, 0, 0, 0, 0, 2]), ME]
            .map(|to| packet(36, false, 0x40, to, OTHER));
        assert_eq!(passes(&received(&wanted), &all), [true, false, false, true]);
        let data = [packet(36, false, 8, MacAddr::ZERO, OTHER)];
        assert_eq!(passes(&received(&wanted), &data), [false]);
    }

    /// Packets that end early are dropped, and the kernel takes the program as it is.
    #[test]
    fn cut_packets_do_not_pass() {
        let wanted = Wanted {
            me: ME,
            bssid: BSSID,
            promiscuous: false,
        };
        let whole = packet(36, false, 8, ME, OTHER);
        let cut: Vec<_> = (1..46).map(|n| whole[..n].to_vec()).collect();
        assert!(passes(&received(&wanted), &cut).iter().all(|p| !p));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        attach_filter(socket.as_fd(), &received(&wanted)).unwrap();
    }
}
