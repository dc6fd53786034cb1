//! How long the application takes to read one packet's worth: the delay that the reader adds to the path
//! (flow control of ATP: the slower of network and reader is fed back).

use super::super::micros;
use radio::Instant;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Reader {
    /// Since when there is something to read that was not.
    since: Option<Instant>,
    average_us: f64,
}

impl Reader {
    /// Something can be read.
    pub fn ready(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// `octets` were read, and `left` can still be. `old` is the weight of the average so far.
    pub fn read(&mut self, now: Instant, octets: usize, left: usize, packet: usize, old: f64) {
        if let Some(since) = self.since.filter(|_| octets > 0) {
            let us = micros(now.since(since)) * packet as f64 / octets as f64;
            self.average_us = old * self.average_us + (1.0 - old) * us;
            self.since = (left > 0).then_some(now);
        }
    }

    /// The mean time for one packet. When the buffer is more than half full the reader is taken for stalled, and the
    /// time since its last read counts if it is longer.
    pub fn delay_us(&self, now: Instant, unread: usize, capacity: usize) -> f64 {
        match self.since {
            Some(since) if unread * 2 > capacity => self.average_us.max(micros(now.since(since))),
            _ => self.average_us,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_per_packet() {
        let mut r = Reader::default();
        let ms = |n: u64| Instant::from_us(n * 1_000);
        r.ready(ms(0));
        r.ready(ms(3));
        // 2 packets in 10 ms, then one at once
        r.read(ms(10), 2_000, 1_000, 1_000, 0.5);
        assert_eq!(r.delay_us(ms(10), 1_000, 10_000), 2_500.0);
        assert_eq!(r.delay_us(ms(60), 5_001, 10_000), 50_000.0, "stalled");
        r.read(ms(10), 1_000, 0, 1_000, 0.5);
        assert_eq!(
            r.delay_us(ms(90), 0, 10_000),
            1_250.0,
            "waiting for data is not slowness"
        );
    }
}
