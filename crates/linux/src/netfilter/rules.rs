//! The rules that bring packets into a queue: a table of nf_tables for each of IPv4 and IPv6, that belongs to a socket.
//!
//! Numbers are those of linux/netfilter/nf_tables.h. The way into the queue is the expression `queue`; where the kernel
//! has none (CONFIG_NFT_QUEUE), it is the target NFQUEUE of xtables, through nft_compat, as `iptables-nft` does it.

use std::io;
use std::os::fd::AsFd;

use radio::Instant;
use rustix::net::netlink;

use super::holder::Holder;
use super::{Error, Selection};
use crate::netlink::{Socket, attribute, message, text};

const SUBSYSTEM: u16 = libc::NFNL_SUBSYS_NFTABLES as u16;
/// The table and all in it end with the socket that has made it.
const TABLE_OWNER: u32 = 2;
const NESTED: u16 = 0x8000;
/// NF_INET_POST_ROUTING: forwarded packets and our own come by.
const POST_ROUTING: u32 = 4;
/// NF_IP_PRI_MANGLE: where others change packets, too; before their sources are translated.
const PRIORITY: i32 = -150;
const ACCEPT: u32 = 1;
const REGISTER: u32 = 1;
const META_OUT_NAME: u32 = 7;
const META_PROTOCOL: u32 = 16;
const TRANSPORT_HEADER: u32 = 2;
/// Octets of an interface name, with its zeroes.
const NAME_OCTETS: usize = 16;
/// Flag of both ways into a queue: packets go on when nobody listens.
const BYPASS: u16 = 1;

/// How packets get into the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// The expression of nf_tables.
    Native,
    /// The target of xtables.
    Compatible,
}

/// The rules, for as long as this lives.
#[derive(Debug)]
pub(super) struct Rules(Holder);

impl Rules {
    /// Makes them in the first of these ways that the kernel has, and gives them to a process that holds them for as long as it is
    /// told to. Tells which way it was.
    pub fn make(selection: &Selection, queue: u16, ways: &[Way]) -> Result<(Rules, Way), Error> {
        let what = "make the rules that bring packets here";
        let mut socket = Socket::open(Some(netlink::NETFILTER)).map_err(|e| match e.raw_os_error() {
            Some(libc::EPROTONOSUPPORT) => Error::NoKernel {
                what,
                needs: "it takes one with CONFIG_NETFILTER_NETLINK",
            },
            _ => Error::of(what)(e),
        })?;
        let given = socket.as_fd().try_clone_to_owned();
        let mut holder = given.and_then(Holder::start).map_err(|source| Error::Kernel {
            what: "start the process that holds the rules",
            source,
        })?;
        let mut failed = None;
        for &way in ways {
            match socket.transact(SUBSYSTEM, steps(selection, queue, way)) {
                Ok(()) => {
                    // From here on the socket is the holder's alone. If that has gone, so have the rules, as will show.
                    drop(socket);
                    holder.say();
                    return Ok((Rules(holder), way));
                }
                Err(e) if e.raw_os_error() == Some(libc::ENOENT) => failed = Some(e),
                Err(e) => return Err(explained(what, e, selection)),
            }
        }
        let source = failed.unwrap_or_else(|| io::ErrorKind::NotFound.into());
        Err(explained(what, source, selection))
    }

    /// To be called ten times a second at least, or they go. False if they have gone.
    pub fn keep(&mut self, now: Instant) -> bool {
        self.0.tell(now)
    }
}

fn explained(what: &'static str, source: io::Error, selection: &Selection) -> Error {
    match source.raw_os_error() {
        Some(libc::EEXIST) => Error::InUse(selection.interface.clone()),
        Some(libc::ENOENT) => Error::NoKernel {
            what,
            needs: "load the module nft_queue, or nft_compat and xt_NFQUEUE",
        },
        Some(libc::EOPNOTSUPP | libc::EINVAL) => Error::NoKernel {
            what,
            needs: "it takes Linux 5.12 or newer with nf_tables (CONFIG_NF_TABLES)",
        },
        // A table of another socket may be seen and not be touched.
        Some(libc::EPERM) if super::queue::may_administer() => Error::InUse(selection.interface.clone()),
        _ => Error::of(what)(source),
    }
}

/// All of it, to be done at once.
fn steps(selection: &Selection, queue: u16, way: Way) -> Vec<Vec<u8>> {
    let table = format!("sdmac-hop-{}", selection.interface);
    let mut steps = Vec::new();
    for family in [libc::NFPROTO_IPV4, libc::NFPROTO_IPV6] {
        let step = |kind: i32, flags: i32, body: &dyn Fn(&mut Vec<u8>)| {
            let kind = SUBSYSTEM << 8 | kind as u16;
            message(kind, flags | libc::NLM_F_CREATE, |m| {
                m.extend([family as u8, 0, 0, 0]); // `struct nfgenmsg`.
                body(m);
            })
        };
        steps.push(step(libc::NFT_MSG_NEWTABLE, libc::NLM_F_EXCL, &|m| {
            text(m, 1, &table);
            be32(m, 2, TABLE_OWNER);
        }));
        steps.push(step(libc::NFT_MSG_NEWCHAIN, libc::NLM_F_EXCL, &|m| {
            text(m, 1, &table);
            text(m, 3, "out");
            attribute(m, 4 | NESTED, |m| {
                be32(m, 1, POST_ROUTING);
                be32(m, 2, PRIORITY as u32);
            });
            be32(m, 5, ACCEPT);
            text(m, 7, "filter");
        }));
        for port in &selection.ports {
            // Offsets of the source and of the destination port.
            for offset in [0, 2] {
                steps.push(step(libc::NFT_MSG_NEWRULE, libc::NLM_F_APPEND, &|m| {
                    text(m, 1, &table);
                    text(m, 2, "out");
                    attribute(m, 4 | NESTED, |m| {
                        meta_is(m, META_OUT_NAME, &padded(&selection.interface));
                        meta_is(m, META_PROTOCOL, &[libc::IPPROTO_UDP as u8]);
                        payload_is(m, offset, port.to_be_bytes());
                        payload_is(m, super::udp::HEADER_OCTETS as u32, selection.begins);
                        enqueue(m, queue, way);
                    });
                }));
            }
        }
    }
    steps
}

fn padded(name: &str) -> [u8; NAME_OCTETS] {
    let mut octets = [0; NAME_OCTETS];
    for (to, from) in octets.iter_mut().zip(name.bytes().take(NAME_OCTETS - 1)) {
        *to = from;
    }
    octets
}

fn be32(m: &mut Vec<u8>, kind: u16, value: u32) {
    attribute(m, kind, |m| m.extend(value.to_be_bytes()));
}

fn be16(m: &mut Vec<u8>, kind: u16, value: u16) {
    attribute(m, kind, |m| m.extend(value.to_be_bytes()));
}

/// One expression of a rule.
fn expression(m: &mut Vec<u8>, name: &str, data: impl FnOnce(&mut Vec<u8>)) {
    attribute(m, 1 | NESTED, |m| {
        text(m, 1, name);
        attribute(m, 2 | NESTED, data);
    });
}

fn is(m: &mut Vec<u8>, value: &[u8]) {
    expression(m, "cmp", |m| {
        be32(m, 1, REGISTER);
        be32(m, 2, 0); // Equal.
        attribute(m, 3 | NESTED, |m| attribute(m, 1, |m| m.extend(value)));
    });
}

fn meta_is(m: &mut Vec<u8>, key: u32, value: &[u8]) {
    expression(m, "meta", |m| {
        be32(m, 1, REGISTER);
        be32(m, 2, key);
    });
    is(m, value);
}

fn payload_is(m: &mut Vec<u8>, offset: u32, value: [u8; 2]) {
    expression(m, "payload", |m| {
        be32(m, 1, REGISTER);
        be32(m, 2, TRANSPORT_HEADER);
        be32(m, 3, offset);
        be32(m, 4, value.len() as u32);
    });
    is(m, &value);
}

fn enqueue(m: &mut Vec<u8>, queue: u16, way: Way) {
    match way {
        Way::Native => expression(m, "queue", |m| {
            be16(m, 1, queue);
            be16(m, 2, 1);
            be16(m, 3, BYPASS);
        }),
        Way::Compatible => expression(m, "target", |m| {
            text(m, 1, "NFQUEUE");
            be32(m, 2, 3); // Revision: `struct xt_NFQ_info_v3`.
            attribute(m, 3, |m| {
                for number in [queue, 1, BYPASS] {
                    m.extend(number.to_ne_bytes());
                }
            });
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{attributes, find, messages};

    fn selection() -> Selection {
        Selection {
            interface: "wlan0".into(),
            ports: vec![7800, 7801],
            begins: [2, 1],
        }
    }

    #[test]
    fn tables_chains_and_rules_of_both_families() {
        let steps = steps(&selection(), 7, Way::Native).concat();
        let kinds: Vec<u16> = messages(&steps).map(|(kind, ..)| kind & 0xff).collect();
        assert_eq!(kinds, [0, 3, 6, 6, 6, 6].repeat(2));
        let families: Vec<u8> = messages(&steps).map(|(_, _, body)| body[0]).collect();
        assert_eq!(families, [[2; 6], [10; 6]].concat());
        let (_, _, rule) = messages(&steps).nth(3).unwrap();
        let list = find(&rule[4..], 4).unwrap();
        let names: Vec<_> = attributes(list)
            .map(|(_, e)| String::from_utf8_lossy(find(e, 1).unwrap()).into_owned())
            .collect();
        let tests = [
            "meta\0",
            "cmp\0",
            "meta\0",
            "cmp\0",
            "payload\0",
            "cmp\0",
            "payload\0",
            "cmp\0",
        ];
        assert_eq!(names[..8], tests);
        assert_eq!(names[8], "queue\0");
    }

    #[test]
    fn a_name_that_is_too_long_is_cut_and_not_written_beyond() {
        assert_eq!(padded("a-name-of-more-octets-than-16")[15], 0);
    }
}
