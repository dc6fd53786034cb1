//! Which rates a PHY has, in the words of the command line.

use super::{Phy, Rate};

/// The rate of data frames if nothing else is said: the highest of a and g, 11 Mb/s of b, MCS 7 of n.
pub fn default_rate(phy: &Phy) -> Rate {
    let text = match phy.name {
        "b" => "11M",
        "n2.4" | "n5" => "mcs7/20",
        _ => "54M",
    };
    Rate::parse(text).expect("a rate")
}

pub(super) fn phy_letter(phy: &Phy) -> &'static str {
    match phy.name {
        "n5" | "n2.4" => "n",
        name => name,
    }
}

pub(super) type Fits = fn(Rate) -> bool;

pub(super) fn rates_of(phy: &Phy) -> (Fits, &'static str) {
    match phy.name {
        "b" => (
            |r| matches!(r, Rate::Dsss(..)),
            "1M, 2M, 5.5M, 11M, and 2Ms, 5.5Ms, 11Ms with short preamble",
        ),
        "n5" | "n2.4" => (
            |r| matches!(r, Rate::Ht(..) | Rate::Ofdm(_)),
            "mcs0/20 to mcs31/40s, and 6M to 54M",
        ),
        _ => (
            |r| matches!(r, Rate::Ofdm(_)),
            "6M, 9M, 12M, 18M, 24M, 36M, 48M, 54M",
        ),
    }
}
