//! The world of the slotted ALOHA example: many stations, one receiver, and slots in which carrier sense has nothing to
//! wait for.

use crate::slotted_aloha::Aloha;
use frame::{AccessCategory, Band, MacAddr, Phy, Rate, ppdu_us};
use radio::{Checked, Duration};
use sim::adapter::AdapterConfig;
use sim::{LossModel, MediumConfig, NodeConfig, Pattern, Position, Traffic, World};

/// Stations: many, so that a station seldom has two frames for one slot.
const STATIONS: u32 = 60;
const PAYLOAD_OCTETS: usize = 100;

/// Runs `slots` slots with `offered` new frames per slot (G) and tells how many frames per slot arrived (S).
///
/// All pairs hear each other equally well, so frames that overlap are lost. Carrier sense stays on: a slot is as long
/// as a frame and two DIFS, so at a boundary the channel has been idle for longer than a DIFS and nobody waits for
/// anybody.
///
/// # Panics
/// If the protocol or the simulator breaks a law of the contract.
pub fn throughput(offered: f64, slots: u64, seed: u64) -> f64 {
    let rate = Rate::OFDM_6;
    let frame_us = ppdu_us(rate, PAYLOAD_OCTETS as u32 + 28, Band::Ghz5);
    let slot = Duration::from_us(u64::from(frame_us + 2 * Phy::A.difs_us()));
    let medium = MediumConfig {
        loss: LossModel::FixedPower(-50.0),
        ..MediumConfig::default()
    };
    let mut world: World<Checked<Aloha>> = World::new(&medium, seed);
    for i in 0..=STATIONS {
        let me = MacAddr::local(i);
        let protocol = || Aloha::new(me, slot, rate);
        let mut adapter = AdapterConfig::station(me, Phy::A, 5180, false);
        // a slot boundary is a slot boundary: no backoff after the last frame
        for queue in &mut adapter.edca {
            (queue.cw_min, queue.cw_max) = (0, 0);
        }
        let node = NodeConfig::ideal(Position::default(), adapter);
        world.add_node(node, Checked::strict(protocol()).with_twin(protocol()));
    }
    let mean_ns = (slot.as_ns() as f64 * f64::from(STATIONS) / offered) as u64;
    for i in 1..=STATIONS {
        let traffic = Traffic {
            to: MacAddr::local(0),
            category: AccessCategory::BestEffort,
            octets: PAYLOAD_OCTETS,
            pattern: Pattern::Poisson { mean_ns },
            lifetime_ns: None,
            count: None,
        };
        world.add_traffic(i, traffic);
    }
    world.run_until(slots * slot.as_ns());
    let delivered: u64 = (0..world.flows()).map(|f| world.flow(f).delivered).sum();
    delivered as f64 / slots as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The textbook's curve, S = G exp(-G) (Roberts 1975), to three standard deviations of 20,000 slots.
    #[test]
    fn the_textbook_curve() {
        let slots = 20_000;
        for offered in [0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0] {
            let found = throughput(offered, slots, 1);
            let expected = offered * f64::exp(-offered);
            let sd = (expected * (1.0 - expected) / slots as f64).sqrt();
            println!("G {offered:.2}: S {found:.4}, textbook {expected:.4}");
            assert!(
                (found - expected).abs() < 3.0 * sd + 0.004,
                "G {offered}: {found} against {expected}"
            );
        }
    }

    #[test]
    fn the_protocol_fits_on_a_page() {
        let lines = include_str!("slotted_aloha.rs").lines().count();
        assert!(lines <= 100, "{lines} lines");
    }
}
