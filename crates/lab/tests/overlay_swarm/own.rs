//! Laws that one kind of overlay has to keep, besides those of all.

use std::collections::{BTreeMap, HashMap, HashSet};

use frame::mac::{FrameType, Header, Kind};
use frame::rate::{GuardInterval, Width};
use frame::{MacAddr, Phy, Rate};
use lab::scenario::Program;
use protocols::mac::rate::Rates;
use radio::{Checked, Confirm, Duration, Instant, Msdu, Outcome, Refusal, Token};
use sim::World;
use sim::trace::{OnAir, Transmission};
use sim::traffic::parse_header;

/// Tries of each frame in the worlds.
pub const TRIES: u16 = 7;
/// `cost` of an attempt of EDF in the worlds.
pub const COST: Duration = Duration::from_us(200);
/// `deadline` of EDF there: of messages that have none.
pub const DEADLINE: Duration = Duration::from_ms(4);
/// Requests that EDF holds: what comes when there are so many is refused.
pub const HELD: usize = 16;
/// How far what a clock has shown is off when it is reckoned back over a millisecond.
const BLUR: Duration = Duration::from_us(1);

/// So long others wait for the confirm of an attempt.
pub const PATIENCE: Duration = COST.times(protocols::mac::edf::PATIENCE as u64);

/// Node, flow and number of a message.
pub type Key = (u32, u32, u32);

/// What a scheme has to keep.
pub enum Own {
    /// What all have to.
    Nothing,
    /// One at a time is below that has been there for no longer than others wait for it; the one whose deadline is first goes, none that
    /// cannot be finished in time, and none while it is below.
    Edf(Edf),
    /// No frame has more tries than its sender asked for, and none goes at a rate that is not like the one that it asked for.
    Rates(Tries),
    /// No frame goes to an access point that has not let the station in, or on a channel other than its.
    Roam(LetIn),
}

/// [`Own::Edf`].
#[derive(Default)]
pub struct Edf {
    /// A node that goes by another order: with a pool of retries.
    pooled: Option<u32>,
    /// True time, node, and what happened there, since the last look.
    events: Vec<(u64, u32, Step)>,
    open: BTreeMap<Key, Open>,
    /// What is below, by node, and since when.
    below: HashMap<u32, Vec<(Token, Key, Instant)>>,
    /// Launches at which another message waited.
    pub choices: u64,
}

enum Step {
    Submitted(Key, Option<Instant>),
    Launched(Token, Key),
    Ended(Token, Outcome),
}

/// A message that may still go.
struct Open {
    deadline: Instant,
    launches: u16,
    /// Whether there was room for it for sure.
    held: bool,
}

/// [`Own::Rates`].
pub struct Tries {
    /// How often a message was on the air, by adapter.
    sent: HashMap<(u32, Key), u16>,
    /// Rates that may be chosen.
    rates: Rates,
}

impl Tries {
    /// Of senders that ask for this rate.
    pub fn of(phy: &Phy, rate: Rate) -> Tries {
        Tries {
            sent: HashMap::new(),
            rates: Rates::like(phy, rate),
        }
    }
}

/// [`Own::Roam`]: channels of access points, MHz, and which stations each has answered.
#[derive(Default)]
pub struct LetIn {
    pub channels: HashMap<MacAddr, u16>,
    stations: HashSet<(MacAddr, MacAddr)>,
    /// Frames to access points.
    pub frames: u64,
}

/// The fastest rate of one spatial stream in this width, with the long guard interval.
pub fn mcs7(width: Width) -> Rate {
    Rate::ht(7, width, GuardInterval::Long).expect("is one")
}

/// The message in a data frame, behind so many octets of its protocol, and the flow that it belongs to.
pub fn message(node: u32, mpdu: &[u8], before: usize) -> Option<Key> {
    let header = Header::parse(mpdu).ok()?;
    // behind LLC and SNAP
    let payload = header.body().get(8 + before..).filter(|_| is_data(&header))?;
    parse_header(payload).map(|(flow, number, _)| (node, flow, number))
}

fn is_data(header: &Header<'_>) -> bool {
    header.frame_type() == FrameType::Data
}

impl Own {
    /// A transmission starts; what is wrong with it.
    pub fn transmission(&mut self, t: &Transmission<'_>) -> Option<String> {
        let header = Header::parse(t.frame).ok().filter(|_| t.what == OnAir::Frame)?;
        match self {
            Own::Rates(tries) => {
                let key = (t.adapter, message(t.node, t.frame, 0)?);
                let known = tries.rates.as_slice().contains(&t.rate);
                let tries = tries.sent.entry(key).or_default();
                *tries += 1;
                (*tries > TRIES || !known).then(|| format!("try {tries} of {key:?} at {:?}", t.rate))
            }
            Own::Roam(let_in) => {
                let (to, from) = (header.receiver(), header.transmitter()?);
                if header.kind() == Kind::ASSOCIATION_RESPONSE {
                    let_in.stations.insert((to, from));
                }
                let mhz = *let_in.channels.get(&to).filter(|_| from != to)?;
                let_in.frames += 1;
                let known = !is_data(&header) || let_in.stations.contains(&(from, to));
                let what = format!(
                    "{from} sends {:?} to {to} on {} MHz, let in: {known}, at {} ns",
                    header.kind(),
                    t.mhz,
                    t.start_ns
                );
                (mhz != t.mhz || !known).then_some(what)
            }
            Own::Nothing | Own::Edf(_) => None,
        }
    }

    /// A message is handed down.
    pub fn submitted(&mut self, now_ns: u64, node: u32, msdu: &Msdu<'_>) {
        if let (Own::Edf(edf), Some((flow, number, _))) = (self, parse_header(msdu.payload)) {
            let key = (node, flow, number);
            edf.events
                .push((now_ns, node, Step::Submitted(key, msdu.deadline)));
        }
    }

    /// A frame is sent down.
    pub fn requested(&mut self, now_ns: u64, node: u32, token: Token, mpdu: &[u8]) {
        if let (Own::Edf(edf), Some(key)) = (self, message(node, mpdu, 0)) {
            edf.events.push((now_ns, node, Step::Launched(token, key)));
        }
    }

    /// A request ends; what is wrong with that.
    pub fn confirmed(&mut self, now_ns: u64, node: u32, confirm: &Confirm) -> Option<String> {
        match self {
            Own::Edf(edf) => {
                let ended = Step::Ended(confirm.token, confirm.outcome);
                edf.events.push((now_ns, node, ended));
                None
            }
            Own::Rates(_) => (confirm.outcome == Outcome::Refused(Refusal::RateNotSupported))
                .then(|| format!("{confirm:?}")),
            _ => None,
        }
    }

    /// A look at the world after a millisecond: what has gone wrong in it.
    pub fn look<const N: usize>(&mut self, world: &World<Checked<Program, N>>) -> Option<String> {
        let Own::Edf(edf) = self else { return None };
        let mut wrong = None;
        for (at_ns, node, step) in std::mem::take(&mut edf.events) {
            if edf.pooled == Some(node) {
                continue;
            }
            let shown = world.host_clock(node) - Duration::from_ns(world.now_ns() - at_ns);
            wrong = wrong.or(edf.step(node, shown, step));
        }
        wrong
    }
}

impl Edf {
    /// Of all nodes but this one, which has a pool of retries.
    pub fn but(pooled: Option<u32>) -> Edf {
        Edf {
            pooled,
            ..Edf::default()
        }
    }

    fn step(&mut self, node: u32, now: Instant, step: Step) -> Option<String> {
        // what came too late for a timer may take up room until now
        let own = self.open.keys().filter(|(n, ..)| *n == node).count();
        let below = self.below.entry(node).or_default();
        let others = below.iter().filter(|(_, key, _)| !self.open.contains_key(key));
        let room = HELD > own + others.count();
        // what cannot be finished any more is dropped
        self.open
            .retain(|(n, ..), m| *n != node || now + COST <= m.deadline + BLUR);
        match step {
            Step::Submitted(key, deadline) => {
                let new = Open {
                    deadline: deadline.unwrap_or(now + DEADLINE),
                    launches: 0,
                    held: room,
                };
                self.open.insert(key, new);
                None
            }
            Step::Launched(token, key) => {
                let in_the_way = |b: &&(Token, Key, Instant)| b.1 == key || now + BLUR < b.2 + PATIENCE;
                let met = below.iter().find(in_the_way).map(|b| b.1);
                let is_below: Vec<Key> = below.iter().map(|b| b.1).collect();
                below.push((token, key, now));
                if let Some(other) = met {
                    return Some(format!("{key:?} goes while {other:?} is below"));
                }
                let Some(own) = self.open.get_mut(&key) else {
                    return Some(format!("{key:?} goes too late, or too often"));
                };
                (own.launches, own.held) = (own.launches + 1, true);
                let deadline = own.deadline;
                let of_node =
                    |(k, m): &(&Key, &Open)| k.0 == node && **k != key && !is_below.contains(k) && m.held;
                let mut others = self.open.iter().filter(of_node);
                self.choices += u64::from(others.clone().next().is_some());
                let first =
                    others.find(|(_, m)| m.deadline + BLUR < deadline && now + COST + BLUR <= m.deadline);
                first.map(|(k, m)| {
                    let by = deadline - m.deadline;
                    format!("{key:?} goes before {k:?}, whose deadline is {by:?} earlier")
                })
            }
            Step::Ended(token, outcome) => {
                let at = below.iter().position(|(t, ..)| *t == token)?;
                let (_, key, _) = below.swap_remove(at);
                let again = matches!(outcome, Outcome::NotAcked | Outcome::Unknown | Outcome::Aborted);
                let over = |m: &Open| !again || m.launches >= TRIES;
                if self.open.get(&key).is_some_and(over) {
                    self.open.remove(&key);
                }
                None
            }
        }
    }
}

mod broken {
    //! Each law notices when it is broken.

    use super::*;

    const KEYS: [Key; 2] = [(1, 0, 0), (1, 0, 1)];

    fn ms(ms: u64) -> Instant {
        Instant::from_ns(0) + Duration::from_ms(ms)
    }

    /// Message `i` goes at `at`; what is said of it.
    fn launch(edf: &mut Edf, i: usize, at: Instant) -> Option<String> {
        edf.step(1, at, Step::Launched(Token(i as u64), KEYS[i]))
    }

    /// Two messages from 0 on, with deadlines in ms.
    fn two(deadlines: [u64; 2]) -> Edf {
        let mut edf = Edf::default();
        for (key, deadline) in KEYS.into_iter().zip(deadlines) {
            let submitted = Step::Submitted(key, Some(ms(deadline)));
            assert_eq!(edf.step(1, ms(0), submitted), None);
        }
        edf
    }

    #[test]
    fn the_order_of_deadlines() {
        let said = launch(&mut two([4, 3]), 0, ms(1)).unwrap();
        assert!(said.contains("whose deadline is"), "{said}");
        assert_eq!(launch(&mut two([4, 3]), 1, ms(1)), None);
    }

    /// An attempt takes 200 us, so at 4 ms less 100 us it is too late.
    #[test]
    fn what_cannot_be_finished() {
        let late = ms(4) - Duration::from_us(100);
        let said = launch(&mut two([4, 9]), 0, late).unwrap();
        assert!(said.contains("too late"), "{said}");
        assert_eq!(launch(&mut two([4, 9]), 0, ms(4) - COST), None);
    }

    #[test]
    fn one_at_a_time() {
        let mut edf = two([3, 4]);
        assert_eq!(launch(&mut edf, 0, ms(1)), None);
        assert!(launch(&mut edf, 1, ms(1)).unwrap().contains("is below"));
        // but for as long as a confirm is waited for, and what is below does not go again itself
        for (i, us, right) in [(1, 799, false), (1, 800, true), (0, 800, false)] {
            let mut edf = two([3, 4]);
            assert_eq!(launch(&mut edf, 0, ms(1)), None);
            let said = launch(&mut edf, i, ms(1) + Duration::from_us(us) - BLUR);
            assert_eq!(
                said.is_none_or(|said| !said.contains("is below")),
                right,
                "{i} {us}"
            );
        }
    }

    /// A data frame of node 1 to an access point that is node 2, on this channel and at this rate.
    fn data(own: &mut Own, mhz: u16, rate: Rate) -> Option<String> {
        let mut frame = [0; 48];
        frame[0] = 0x08;
        frame[4..10].copy_from_slice(&MacAddr::local(2).0);
        frame[10..16].copy_from_slice(&MacAddr::local(1).0);
        own.transmission(&Transmission {
            start_ns: 0,
            end_ns: 0,
            adapter: 0,
            node: 1,
            what: OnAir::Frame,
            rate,
            mhz,
            frame: &frame,
            attempt: 1,
            octets: 52,
        })
    }

    #[test]
    fn tries_and_rates() {
        let mut own = Own::Rates(Tries::of(&Phy::A, Rate::OFDM_24));
        for _ in 0..TRIES {
            assert_eq!(data(&mut own, 5180, Rate::OFDM_24), None);
        }
        assert!(data(&mut own, 5180, Rate::OFDM_24).unwrap().starts_with("try 8"));
        let mut own = Own::Rates(Tries::of(&Phy::A, Rate::OFDM_24));
        assert!(data(&mut own, 5180, Rate::DSSS_2).is_some(), "not of 5 GHz");
        let mut own = Own::Rates(Tries::of(&Phy::N5, mcs7(Width::Mhz20)));
        let slowest = Rate::ht(0, Width::Mhz20, GuardInterval::Long).unwrap();
        assert_eq!(data(&mut own, 5180, slowest), None);
        for other in [mcs7(Width::Mhz40), Rate::OFDM_24] {
            assert!(data(&mut own, 5180, other).is_some(), "not like it: {other:?}");
        }
    }

    #[test]
    fn who_is_let_in_and_where() {
        let (station, ap) = (MacAddr::local(1), MacAddr::local(2));
        let let_in = |stations: &[(MacAddr, MacAddr)]| {
            Own::Roam(LetIn {
                channels: [(ap, 5180)].into(),
                stations: stations.iter().copied().collect(),
                frames: 0,
            })
        };
        let mut knows = let_in(&[(station, ap)]);
        assert_eq!(data(&mut knows, 5180, Rate::OFDM_6), None);
        assert!(data(&mut knows, 5745, Rate::OFDM_6).is_some(), "another channel");
        assert!(data(&mut let_in(&[]), 5180, Rate::OFDM_6).is_some(), "not let in");
    }
}
