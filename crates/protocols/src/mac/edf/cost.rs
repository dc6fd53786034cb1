//! What one attempt costs: the time from its request to its confirm, as the software sees it.

use frame::{Phy, Rate, RateSet, ppdu_us};
use radio::Duration;

/// Attempts that [`CostEstimate`] looks back on.
pub const WINDOW: usize = 32;

/// Cost of a successful attempt: a given value, or the largest of the last [`WINDOW`] that were seen.
#[derive(Clone, Debug)]
pub struct CostEstimate {
    given: Duration,
    learns: bool,
    seen: [Duration; WINDOW],
    count: usize,
}

impl CostEstimate {
    /// Always `cost`. To be trusted with real deadlines, it should be a high quantile.
    pub const fn fixed(cost: Duration) -> CostEstimate {
        CostEstimate {
            given: cost,
            learns: false,
            seen: [Duration::ZERO; WINDOW],
            count: 0,
        }
    }

    /// At least `cost` until [`WINDOW`] attempts were seen, then the largest of the last [`WINDOW`].
    pub const fn learned(cost: Duration) -> CostEstimate {
        CostEstimate {
            learns: true,
            ..CostEstimate::fixed(cost)
        }
    }

    /// Takes in what a successful attempt took from request to confirm.
    pub fn learn(&mut self, took: Duration) {
        if self.learns {
            self.seen[self.count % WINDOW] = took;
            self.count += 1;
        }
    }

    /// The estimate.
    pub fn get(&self) -> Duration {
        let largest = self.seen.iter().max().copied().unwrap_or_default();
        match self.learns {
            true if self.count >= WINDOW => largest,
            _ => self.given.max(largest),
        }
    }
}

/// Costs of single attempts with a given frame, from the latency of the host and the airtime:
/// `A = T_SDMAC + T_acc + T_DATA + SIFS + T_ACK` for a success and `A* = T_SDMAC* + T_acc + T_DATA + T_timeout`
/// for a failure (SDMAC, Cena et al. 2018, equations 3, 4 and 6; equation 6 has T_ACK besides the timeout, but
/// the values in the paper's section V.C are without it).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttemptCosts {
    /// From request to confirm of an attempt that is acknowledged.
    pub success: Duration,
    /// From request to confirm of one that is not.
    pub failure: Duration,
}

impl AttemptCosts {
    /// `mpdu_octets` count header and FCS. `latency` is T_SDMAC of a success and of a failure, request and confirm
    /// path together, as a quantile. `access_us` is the time until the medium is free: 0 if it has been idle
    /// for long, DIFS or AIFS if requests come back to back. `timeout_us` is the ACK timeout of the adapter.
    pub fn new(
        phy: &Phy,
        rate: Rate,
        basic: RateSet,
        mpdu_octets: u32,
        latency: (Duration, Duration),
        access_us: u32,
        timeout_us: u32,
    ) -> AttemptCosts {
        let data = access_us + ppdu_us(rate, mpdu_octets, phy.band);
        let answered = data + phy.sifs_us + phy.ack_us(rate, basic);
        AttemptCosts {
            success: latency.0 + Duration::from_us(answered.into()),
            failure: latency.1 + Duration::from_us((data + timeout_us).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Duration = Duration::from_us;

    #[test]
    fn fixed_stays() {
        let mut c = CostEstimate::fixed(US(140));
        c.learn(US(900));
        assert_eq!(c.get(), US(140));
    }

    #[test]
    fn learned_is_the_largest_of_a_window() {
        let mut c = CostEstimate::learned(US(140));
        c.learn(US(100));
        assert_eq!(c.get(), US(140), "too little seen to go below what was given");
        c.learn(US(500));
        assert_eq!(c.get(), US(500));
        for _ in 0..WINDOW - 1 {
            c.learn(US(100));
        }
        assert_eq!(c.get(), US(500));
        c.learn(US(90));
        assert_eq!(c.get(), US(100), "the 500 us have left the window");
    }

    /// T_path of Table V: 138.483 us on average for acknowledged frames, 90.628 us for lost ones; back to back
    /// with DIFS before, 172.483 and 124.628 us.
    #[test]
    fn the_paper_s_paths() {
        let latency = (Duration::from_ns(42_483), Duration::from_ns(29_628));
        let of = |access| {
            let c = AttemptCosts::new(
                &Phy::A,
                Rate::OFDM_54,
                RateSet::OFDM_6_ONLY,
                86,
                latency,
                access,
                25,
            );
            (c.success.as_ns(), c.failure.as_ns())
        };
        assert_eq!(of(0), (138_483, 90_628));
        assert_eq!(of(Phy::A.difs_us()), (172_483, 124_628));
    }
}
