//! The ways through the host, as the paper states them, and who else is on the channel. Everything that is put in stands here.

use std::rc::Rc;

use frame::{Phy, Rate};
use sim::host::{Basis, Component, HostModel, Knots, Profile, Source};

/// Octets of an MPDU with FCS: 74 of payload and the 28 that eq. 1 adds.
pub const OCTETS: usize = 102;
/// The rate of everything.
pub const RATE: Rate = Rate::DSSS_2;
/// From the call to the driver's queue, us (3.2).
pub const SOFTWARE_US: f64 = 384.0;
/// 0.4 % lie more than 30 us off: 2.878 standard deviations of a normal law.
const SOFTWARE_SD_US: f64 = 30.0 / 2.878;
/// From the driver's queue into the card, us (3.2).
pub const FIRMWARE_US: f64 = 120.0;
/// From the end of a frame on the air to the application that has received it: what is left of the round trip of 2493 us after
/// the two ways out of 1108 us, for each of the two hosts.
const RECEIVE_US: f64 = (2_493.0 - 2.0 * 1_108.0) / 2.0;
/// Packets are "delayed" from here on, us: the largest backoff of a first attempt (3.1.3).
pub const BOUND_US: f64 = 1_158.0;
/// Frames of others on the channel: 1500 octets and their headers at 11 Mb/s. The paper says that they are there, not what they
/// are.
pub const FOREIGN_OCTETS: usize = 1_536;
/// Their rate.
pub const FOREIGN_RATE: Rate = Rate::DSSS_11;

/// How the firmware spreads: the paper says that less than 0.2 % are more than 50 us later than the mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Firmware {
    /// The same for all packets but one in a thousand, which is 60 us later.
    Steady,
    /// Normal, as wide as that allows: 2.878 standard deviations are 50 us.
    Wide,
}

/// A host with this mean software latency.
pub fn host(software_us: f64, firmware: Firmware) -> Rc<HostModel> {
    let measured = |source| Component {
        basis: Basis::Measured,
        source,
    };
    let mut profile = Profile::built_in("ideal").expect("it is part of the program");
    "rtwlan".clone_into(&mut profile.name);
    let software = normal(software_us, SOFTWARE_SD_US);
    profile.request.api = measured(Source::Knots(software));
    profile.request.driver_dependent = measured(Source::Knots(in_the_card(firmware)));
    profile.confirm.acked.isr = measured(Source::Constant(RECEIVE_US));
    Rc::new(HostModel::new(&profile).expect("a profile of parts has a model"))
}

fn in_the_card(firmware: Firmware) -> Knots {
    match firmware {
        Firmware::Wide => normal(FIRMWARE_US, 50.0 / 2.878),
        Firmware::Steady => {
            let usual = (FIRMWARE_US - 0.06) * 1e3;
            let late = usual + 60e3;
            Knots {
                points: vec![(0.0, usual), (0.999, usual), (0.999, late), (1.0, late)],
                mean_ns: None,
            }
        }
    }
}

/// How far from the mean normal laws are drawn, in standard deviations.
const REACH: f64 = 4.0;

/// A normal law, cut off at four standard deviations.
fn normal(mean_us: f64, sd_us: f64) -> Knots {
    const STEPS: i32 = 80;
    let z = |i: i32| REACH * f64::from(i - STEPS / 2) / f64::from(STEPS / 2);
    let density = |z: f64| (-z * z / 2.0).exp();
    // trapezoids: what they miss goes out again when the whole is made 1
    let mut below = vec![0.0];
    for i in 1..=STEPS {
        below.push(below[i as usize - 1] + density(z(i - 1)) + density(z(i)));
    }
    let whole = below[STEPS as usize];
    let points = (0..=STEPS).map(|i| (below[i as usize] / whole, (mean_us + z(i) * sd_us) * 1e3));
    Knots {
        points: points.collect(),
        mean_ns: None,
    }
}

/// The shortest and the longest way from a call to the air on an idle medium, us; for a guard that holds always.
pub fn release_us(firmware: Firmware) -> [f64; 2] {
    let ends = |knots: &Knots| {
        [
            knots.points[0].1 / 1e3,
            knots.points[knots.points.len() - 1].1 / 1e3,
        ]
    };
    let (software, card) = (
        ends(&normal(SOFTWARE_US, SOFTWARE_SD_US)),
        ends(&in_the_card(firmware)),
    );
    [software[0] + card[0], software[1] + card[1]]
}

/// The receive path, us.
pub fn receive_us() -> f64 {
    RECEIVE_US
}

/// Mean pause between frames of others, ns, with which the share `delayed` of packets take longer than the
/// [bound](BOUND_US): a packet that comes while such a frame is on the air waits for the rest of it, for DIFS and for a
/// backoff.
pub fn foreign_pause_ns(delayed: f64) -> f64 {
    let phy = Phy::B;
    let airtime = f64::from(frame::ppdu_us(FOREIGN_RATE, FOREIGN_OCTETS as u32, phy.band));
    let own = f64::from(frame::ppdu_us(RATE, OCTETS as u32, phy.band));
    let (difs, slot) = (f64::from(phy.difs_us()), f64::from(phy.slot_us));
    let backoffs = 32;
    let beyond = (0..backoffs).map(|k| {
        let rest = BOUND_US - own - difs - slot * f64::from(k);
        (airtime - rest.max(0.0)).max(0.0) / airtime
    });
    let if_busy = beyond.sum::<f64>() / f64::from(backoffs);
    let busy = delayed / if_busy;
    airtime * 1e3 * (1.0 - busy) / busy
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::rng::{Cause, Stream};

    #[test]
    fn the_model_returns_what_was_put_in() {
        let mut random = Stream::new(1, 1, Cause::Host);
        let model = host(SOFTWARE_US, Firmware::Steady);
        let n = 100_000;
        let (mut software, mut off, mut card, mut late) = (0.0, 0, 0.0, 0);
        for _ in 0..n {
            let r = model.sample_request(&mut random, 74);
            let (a, b) = (r.t1_t2_ns as f64 / 1e3, r.t3_t4_ns as f64 / 1e3);
            (software, card) = (software + a, card + b);
            off += u32::from((a - SOFTWARE_US).abs() > 30.0);
            late += u32::from(b > FIRMWARE_US + 50.0);
        }
        let mean = |sum: f64| sum / f64::from(n);
        assert!((mean(software) - 384.0).abs() < 0.2 && (mean(card) - 120.0).abs() < 0.1);
        let share = |k: u32| f64::from(k) / f64::from(n);
        assert!((share(off) - 0.004).abs() < 0.001, "{}", share(off));
        assert!(share(late) < 0.002 && late > 0, "{}", share(late));
    }

    #[test]
    fn the_guard_covers_the_whole_way() {
        let [least, most] = release_us(Firmware::Steady);
        assert!(
            (least - 462.24).abs() < 0.1 && (most - 605.6).abs() < 0.2,
            "{least} {most}"
        );
    }
}
