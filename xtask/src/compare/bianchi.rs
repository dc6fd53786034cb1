//! Bianchi's model of saturated DCF stations, with a finite number of attempts per frame: the reference that needs no simulator.
//!
//! G. Bianchi, "Performance analysis of the IEEE 802.11 distributed coordination function", IEEE JSAC 18(3), 2000; the finite
//! retry limit as in H. Wu et al., "Performance of reliable transport protocol over IEEE 802.11 wireless LAN", INFOCOM 2002.

/// Contention and timing of one kind of station.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dcf {
    /// Smallest contention window: the first backoff is uniform in 0..=cw_min.
    pub cw_min: u32,
    /// Largest contention window.
    pub cw_max: u32,
    /// Transmissions of one frame before it is dropped, at least 1.
    pub attempts: u32,
    /// An idle slot, microseconds.
    pub slot_us: f64,
    /// The channel is taken this long by a frame that arrives: DATA, SIFS, ACK, DIFS. Microseconds.
    pub success_us: f64,
    /// The channel is taken this long by a collision: DATA, DIFS. Microseconds.
    pub collision_us: f64,
    /// Bits that count as throughput in one frame.
    pub payload_bits: f64,
}

/// IEEE 802.11a, 54 Mb/s data, 24 Mb/s ACK, MSDUs of 1500 octets, seven attempts: the `saturation` scenario.
pub(super) const SATURATION: Dcf = Dcf {
    cw_min: 15,
    cw_max: 1023,
    attempts: 7,
    slot_us: 9.0,
    success_us: 248.0 + 16.0 + 28.0 + 34.0,
    collision_us: 248.0 + 34.0,
    payload_bits: 1500.0 * 8.0,
};

/// What the model says about a number of stations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saturated {
    /// Probability that a transmission collides.
    pub collision_probability: f64,
    /// Payload delivered by all stations together, Mb/s.
    pub throughput_mbps: f64,
}

impl Dcf {
    /// The operating point of `stations` saturated stations, at least 1.
    pub(super) fn saturated(&self, stations: u32) -> Saturated {
        let tau = self.tau(stations);
        let n = f64::from(stations);
        let idle = (1.0 - tau).powf(n);
        let success = n * tau * (1.0 - tau).powf(n - 1.0);
        let mean_slot_us =
            idle * self.slot_us + success * self.success_us + (1.0 - idle - success) * self.collision_us;
        Saturated {
            collision_probability: collision(tau, stations),
            throughput_mbps: success * self.payload_bits / mean_slot_us,
        }
    }

    /// Probability that a station transmits in a slot: where what the others do and what it does about it agree.
    fn tau(&self, stations: u32) -> f64 {
        assert!(stations > 0 && self.attempts > 0);
        // tau_given falls as tau grows, so there is one crossing
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..100 {
            let tau = (low + high) / 2.0;
            if self.tau_given(collision(tau, stations)) > tau {
                low = tau;
            } else {
                high = tau;
            }
        }
        (low + high) / 2.0
    }

    /// Probability of transmitting in a slot when each transmission collides with probability `p`: attempts per frame over slots
    /// per frame.
    fn tau_given(&self, p: f64) -> f64 {
        let (mut attempts, mut slots) = (0.0, 0.0);
        let (mut reached, mut window) = (1.0, self.cw_min + 1);
        for _ in 0..self.attempts {
            attempts += reached;
            slots += reached * (1.0 + f64::from(window - 1) / 2.0);
            reached *= p;
            window = (2 * window).min(self.cw_max + 1);
        }
        attempts / slots
    }
}

/// Probability that one of the other stations transmits in the same slot.
fn collision(tau: f64, stations: u32) -> f64 {
    1.0 - (1.0 - tau).powf(f64::from(stations) - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, want: f64, within: f64) {
        assert!(
            (got - want).abs() <= within,
            "{got} is not {want} within {within}"
        );
    }

    #[test]
    fn seven_attempts() {
        for (n, tau, p, mbps) in [
            (10, 0.05331, 0.3892, 28.215),
            (20, 0.03541, 0.4959, 25.971),
            (50, 0.02032, 0.6343, 22.233),
        ] {
            let point = SATURATION.saturated(n);
            close(SATURATION.tau(n), tau, 5e-6);
            close(point.collision_probability, p, 1e-4);
            close(point.throughput_mbps, mbps, 1e-3);
        }
    }

    #[test]
    fn retries_without_end_at_three_rates() {
        let endless = Dcf {
            attempts: 2000,
            ..SATURATION
        };
        let at = |data_us: f64, ack_us: f64| Dcf {
            success_us: data_us + 16.0 + ack_us + 34.0,
            collision_us: data_us + 34.0,
            ..endless
        };
        for (n, tau, p, mbps54, mbps24, mbps6) in [
            (1, 0.11765, 0.0, 30.496, 17.608, 5.373),
            (2, 0.10462, 0.1046, 31.497, 17.498, 5.156),
            (5, 0.07615, 0.2715, 30.127, 16.263, 4.679),
            (10, 0.05248, 0.3844, 28.302, 15.085, 4.297),
            (20, 0.03392, 0.4809, 26.316, 13.894, 3.929),
            (50, 0.01829, 0.5953, 23.400, 12.223, 3.430),
        ] {
            let point = at(248.0, 28.0).saturated(n);
            close(at(248.0, 28.0).tau(n), tau, 5e-6);
            close(point.collision_probability, p, 1e-4);
            close(point.throughput_mbps, mbps54, 1e-3);
            close(at(536.0, 28.0).saturated(n).throughput_mbps, mbps24, 1e-3);
            close(at(2072.0, 44.0).saturated(n).throughput_mbps, mbps6, 1e-3);
        }
    }

    /// The example of the paper: FHSS, W = 32, three doublings, 8184 bits at 1 Mb/s. Its rule for collisions waits DIFS only.
    #[test]
    fn frequency_hopping_of_the_paper() {
        let data_us = 8184.0 + 272.0 + 128.0;
        let fhss = Dcf {
            cw_min: 31,
            cw_max: 255,
            attempts: 5000,
            slot_us: 50.0,
            success_us: data_us + 28.0 + 1.0 + 240.0 + 128.0 + 1.0,
            collision_us: data_us + 128.0 + 1.0,
            payload_bits: 8184.0,
        };
        for (n, share) in [(5, 0.8097), (10, 0.7532), (20, 0.6788), (50, 0.5529)] {
            close(fhss.saturated(n).throughput_mbps, share, 1e-4);
        }
    }

    #[test]
    fn one_station_never_collides() {
        close(SATURATION.tau(1), 2.0 / 17.0, 1e-12);
        assert_eq!(SATURATION.saturated(1).collision_probability, 0.0);
    }
}
