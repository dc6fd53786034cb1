//! Which function of the kernel is which plane, for each driver.
//!
//! Found in the sources of Linux 6.1, and tried on mac80211_hwsim. Those of ath9k take a probe in Debian's kernels, standard and
//! PREEMPT_RT; no such adapter was at hand.

use radio::Plane;

/// How it is known which frame a hit is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// The thread that sends is in it, and the socket buffer is this argument: here a frame gets its address.
    Entry(usize),
    /// The socket buffer is this argument.
    Buffer(usize),
    /// It returns on the thread on which t3 was hit, in the call that followed.
    Return,
    /// It comes before t7 on the same CPU, and is the last one that does.
    Last,
}

impl Key {
    /// Which argument of the function is the socket buffer.
    pub fn argument(self) -> Option<usize> {
        match self {
            Key::Entry(n) | Key::Buffer(n) => Some(n),
            Key::Return | Key::Last => None,
        }
    }
}

/// A place to probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub plane: Plane,
    pub key: Key,
    /// Names of the function, from newer kernels to older ones.
    pub functions: &'static [&'static str],
}

const fn place(plane: Plane, key: Key, functions: &'static [&'static str]) -> Place {
    Place {
        plane,
        key,
        functions,
    }
}

/// What mac80211 itself does, whatever the driver.
const MAC80211: &[Place] = &[
    place(Plane::T2, Key::Entry(0), &["ieee80211_monitor_start_xmit"]),
    place(
        Plane::T7,
        Key::Buffer(1),
        &["ieee80211_tx_status_skb", "ieee80211_tx_status"],
    ),
    place(Plane::T8, Key::Buffer(1), &["ieee80211_tx_monitor"]),
];

/// With a program as the medium, its answer takes the place of the interrupt.
const HWSIM: &[Place] = &[
    place(Plane::T3, Key::Buffer(2), &["mac80211_hwsim_tx"]),
    place(Plane::T4, Key::Return, &["mac80211_hwsim_tx"]),
    place(Plane::T5, Key::Buffer(1), &["ieee80211_tx_status_irqsafe"]),
    place(Plane::T6, Key::Last, &["ieee80211_tasklet_handler"]),
];

const ATH9K: &[Place] = &[
    place(Plane::T3, Key::Buffer(2), &["ath9k_tx"]),
    place(Plane::T4, Key::Return, &["ath_tx_txqaddbuf"]),
    place(Plane::T5, Key::Last, &["ath_isr"]),
    place(Plane::T6, Key::Last, &["ath9k_tasklet"]),
];

/// The places of these drivers, each once. Of a driver that is not known they are those of mac80211.
pub(super) fn places<'a>(drivers: impl Iterator<Item = &'a str>) -> Vec<Place> {
    let mut all = MAC80211.to_vec();
    for driver in drivers {
        let own = match driver {
            "mac80211_hwsim" => HWSIM,
            "ath9k" => ATH9K,
            _ => &[],
        };
        for place in own {
            if !all.contains(place) {
                all.push(*place);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_drivers_have_all_planes_between_and_others_three() {
        for driver in ["mac80211_hwsim", "ath9k"] {
            let mut planes: Vec<Plane> = places([driver, driver].into_iter())
                .iter()
                .map(|p| p.plane)
                .collect();
            planes.sort();
            assert_eq!(planes, Plane::ALL[1..8]);
        }
        assert_eq!(places(["iwlwifi"].into_iter()).len(), 3);
        assert_eq!(places(["ath9k", "mac80211_hwsim"].into_iter()).len(), 11);
    }
}
