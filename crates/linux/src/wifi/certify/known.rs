//! The same questions about requests from the address of an interface that is up, to a station that Linux knows; and
//! what that interface sends of its own: beacons, with adapter time in them.

use radio::Duration;

use super::super::error::Error;
use super::bench::Ask;
use super::certificate::Verdict;
use super::inspector::Inspector;
use super::judge::{proof, verdict};
use super::requests::ABSENT;
use super::station::{AccessPoint, AdHoc, INTERVAL_TU};
use super::time;

/// Time of listening for beacons.
const LISTEN: Duration = Duration::from_ms(1_050);
/// How far two beacons may be apart from their interval before that counts as another interval, us.
const NEAR_US: i64 = 200;

const WHAT: [&str; 3] = [
    "one-shot to a known station",
    "no-ack to a known station",
    "beacons of the adapter",
];

impl Inspector<'_> {
    /// All of them; leaves nothing behind.
    pub(super) fn known_station(&mut self) -> Result<(), Error> {
        let (wiphy, mhz) = (self.wiphy.clone(), self.channel_mhz);
        let point = AccessPoint::start(&wiphy, mhz).and_then(|mut point| {
            point.know(ABSENT)?;
            Ok(point)
        });
        let point = match point {
            Ok(point) => point,
            Err(why) => {
                for what in WHAT {
                    let seen = format!("no access point can be put beside the monitor: {why}");
                    self.add(what, "an access point of our own", seen, Verdict::CannotBeSeen);
                }
                return Ok(());
            }
        };
        let ask = Ask {
            from: point.address,
            ..self.ask()
        };
        let one = self.tries(ask)?;
        let verdict = self.one_try(WHAT[0], "1 try, as an interface that is up", &one);
        self.proven.one_shot_to_stations = proof(verdict);
        let none = self.tries(Ask { ack: false, ..ask })?;
        self.proven.no_ack_to_stations = proof(none.verdict());
        self.add(
            WHAT[1],
            "no ACK, as an interface that is up",
            none.text(),
            none.verdict(),
        );
        self.beacons_of(&point)?;
        Ok(())
    }

    /// Adapter time as the kernel shows it of ad hoc interfaces.
    pub(super) fn tsf_by_file(&mut self) -> Result<(), Error> {
        let network = AdHoc::join(&self.wiphy, self.channel_mhz);
        let [read, set] = match &network {
            Ok(network) => time::through_file(&network.tsf),
            Err(why) => {
                let why = format!("no ad hoc network can be put beside the monitor: {why}");
                [0, 1].map(|_| (why.clone(), Verdict::CannotBeSeen))
            }
        };
        self.add(
            "adapter time can be read",
            "the file of debugfs, twice",
            read.0,
            read.1,
        );
        self.add(
            "adapter time can be set",
            "another time, then reading it",
            set.0,
            set.1,
        );
        Ok(())
    }

    fn beacons_of(&mut self, point: &AccessPoint) -> Result<(), Error> {
        let stop = self.stop;
        let asked = format!("one each {INTERVAL_TU} TU for {} ms", LISTEN.as_us() / 1_000);
        let bench = self.bench()?;
        if !bench.listens() {
            let why = "there is no second radio to hear them: name one with --peer";
            self.add(WHAT[2], asked, why, Verdict::CannotBeSeen);
            return Ok(());
        }
        bench.listen(LISTEN, stop)?;
        let heard = bench
            .beacons
            .iter()
            .filter(|b| b.0 == super::bench::EAR && b.1 == point.address);
        let stamps: Vec<u64> = heard.map(|b| b.2).collect();
        let interval = i64::from(INTERVAL_TU) * 1_024;
        let near =
            |pair: &&[u64]| ((pair[1] as i64).wrapping_sub(pair[0] as i64) - interval).abs() <= NEAR_US;
        let on_time = stamps.windows(2).filter(near).count();
        let pairs = stamps.len().saturating_sub(1);
        let text = format!(
            "{} heard, {on_time} of {pairs} timestamps {NEAR_US} us or less from the interval",
            stamps.len()
        );
        self.add(
            WHAT[2],
            asked,
            text,
            verdict(pairs > 0 && on_time * 10 >= pairs * 9),
        );
        Ok(())
    }
}
