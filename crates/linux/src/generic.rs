//! Generic netlink: families that go by name, and messages with a command.
//!
//! Numbers are those of linux/genetlink.h.

use crate::netlink::{Part, attributes, find, message, text, text_of, u32_of};

/// Octets of `struct genlmsghdr`: command, version, two of padding.
pub(crate) const GENERIC_HEADER: usize = 4;

/// Numbers of the controller, the family that knows the others.
mod controller {
    pub const FAMILY: u16 = 0x10;
    pub const GET_FAMILY: u8 = 3;
    pub const FAMILY_ID: u16 = 1;
    pub const FAMILY_NAME: u16 = 2;
    pub const GROUPS: u16 = 7;
    pub const GROUP_NAME: u16 = 1;
    pub const GROUP_ID: u16 = 2;
}

/// A family as the controller tells it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Family {
    /// Type of its messages.
    pub id: u16,
    /// Names and numbers of its multicast groups.
    pub groups: Vec<(String, u32)>,
}

/// A message to a family: a command, version 1, with its attributes.
pub(crate) fn generic(family: u16, command: u8, flags: i32, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    message(family, flags, |m| {
        m.extend([command, 1, 0, 0]);
        body(m);
    })
}

/// Asks for a family. The answer to an unknown name is `ENOENT`.
pub(crate) fn family_request(name: &str) -> Vec<u8> {
    generic(controller::FAMILY, controller::GET_FAMILY, libc::NLM_F_ACK, |m| {
        text(m, controller::FAMILY_NAME, name);
    })
}

/// The family in a part of the answer.
pub(crate) fn family(part: &Part) -> Option<Family> {
    let body = part.body.get(GENERIC_HEADER..)?;
    let id = find(body, controller::FAMILY_ID)?.first_chunk()?;
    let groups = attributes(find(body, controller::GROUPS).unwrap_or(&[]));
    let groups = groups.filter_map(|(_, g)| {
        let name = find(g, controller::GROUP_NAME).and_then(text_of)?;
        Some((name.to_owned(), u32_of(find(g, controller::GROUP_ID)?)?))
    });
    Some(Family {
        id: u16::from_ne_bytes(*id),
        groups: groups.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{attribute, number};

    #[test]
    fn a_family_with_its_groups() {
        let mut body = vec![1, 2, 0, 0];
        text(&mut body, controller::FAMILY_NAME, "nl80211");
        attribute(&mut body, controller::FAMILY_ID, |m| {
            m.extend(28_u16.to_ne_bytes())
        });
        attribute(&mut body, controller::GROUPS, |m| {
            for (i, name) in ["config", "scan"].into_iter().enumerate() {
                attribute(m, i as u16 + 1, |m| {
                    number(m, controller::GROUP_ID, 5 + i as u32);
                    text(m, controller::GROUP_NAME, name);
                });
            }
        });
        let part = Part {
            kind: controller::FAMILY,
            body,
        };
        let groups = vec![("config".into(), 5), ("scan".into(), 6)];
        assert_eq!(family(&part), Some(Family { id: 28, groups }));
        assert_eq!(
            family(&Part {
                kind: 0,
                body: vec![1]
            }),
            None
        );
    }
}
