//! What overlays that hold requests share: the protocol above with its held requests ([`Above`]), and channel
//! access parameters to be set at the start ([`AccessSetting`]).
//!
//! An overlay handles an event in three steps: it takes what is its own (confirms of its launches, its timer) or
//! tells the protocol above; it launches what may go; it pays the confirms that it owes, which may bring new
//! requests, so the last two steps repeat until nothing is owed or [`Above::pay`] says that it is enough.

use frame::EdcaParams;
use radio::checked::MAX_ACTIONS;
use radio::{
    AdapterId, Attribute, AttributeName, Event, Instant, Msdu, Pending, Protocol, Queue, Radio, SetAnswer,
    Token, TxHow,
};

/// Calls that the protocol above may have made before it gets another confirm in answer to the same event. What
/// is left is paid at a timer, at once. So an overlay keeps law 6 itself if the protocol above makes no more calls
/// than the other half of [`MAX_ACTIONS`] in answer to one confirm.
const ENOUGH: usize = MAX_ACTIONS / 2;

/// Requests that an overlay holds if nothing else is said.
pub const DEFAULT_HELD: usize = 16;

/// Octets of the longest frame that an overlay holds if nothing else is said: a QoS data frame with 1,500 octets
/// of payload fits.
pub const DEFAULT_HELD_OCTETS: usize = 1_600;

/// The protocol above an overlay, and the requests that it has made: up to `N` with frames of up to `L` octets;
/// others are refused.
#[derive(Clone, Debug)]
pub struct Above<P, const N: usize, const L: usize> {
    protocol: P,
    /// Its requests.
    pub held: Pending<N, L>,
    /// Its calls and the confirms paid, since it was last enough.
    calls: usize,
}

impl<P: Protocol, const N: usize, const L: usize> Above<P, N, L> {
    /// Nothing held yet.
    pub fn new(protocol: P) -> Self {
        Above {
            protocol,
            held: Pending::default(),
            calls: 0,
        }
    }

    /// The protocol.
    pub fn protocol(&self) -> &P {
        &self.protocol
    }

    /// Tells it an event. Its requests are held; everything else that it does goes to `radio`.
    pub fn tell(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        let mut desk = Desk {
            now,
            held: &mut self.held,
            radio,
            calls: 0,
        };
        self.protocol.handle(now, event, &mut desk);
        self.calls += desk.calls;
    }

    /// Tells it the timer if its deadline has passed.
    pub fn timer(&mut self, now: Instant, radio: &mut dyn Radio) {
        if self.protocol.deadline().is_some_and(|t| t <= now) {
            self.tell(now, Event::Timer, radio);
        }
    }

    /// Tells it one confirm that is owed; false if there is none, or if it has been enough for this event.
    pub fn pay(&mut self, now: Instant, radio: &mut dyn Radio) -> bool {
        if self.calls < ENOUGH
            && let Some(confirm) = self.held.next_owed()
        {
            self.calls += 1;
            self.tell(now, Event::Confirm(confirm), radio);
            return true;
        }
        self.calls = 0;
        false
    }

    /// Its deadline; at once if confirms are still owed.
    pub fn deadline(&self) -> Option<Instant> {
        if self.held.owes() {
            return Some(Instant::ZERO);
        }
        self.protocol.deadline()
    }
}

/// The radio of the protocol above.
struct Desk<'a, const N: usize, const L: usize> {
    now: Instant,
    held: &'a mut Pending<N, L>,
    radio: &'a mut dyn Radio,
    calls: usize,
}

impl<const N: usize, const L: usize> Radio for Desk<'_, N, L> {
    fn token(&mut self) -> Token {
        self.radio.token()
    }

    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow) {
        self.calls += 1;
        self.held.hold(self.now, token, frame, how, self.radio);
    }

    fn set(&mut self, token: Token, adapter: AdapterId, attribute: Attribute) {
        self.calls += 1;
        self.radio.set(token, adapter, attribute);
    }

    fn get(&self, adapter: AdapterId, name: AttributeName) -> Option<Attribute> {
        self.radio.get(adapter, name)
    }

    fn abort(&mut self, token: Token) {
        self.calls += 1;
        self.held.abort(token, self.radio);
    }

    fn deliver(&mut self, msdu: Msdu<'_>) {
        self.calls += 1;
        self.radio.deliver(msdu);
    }
}

/// Channel access parameters of one queue of one adapter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Which adapter.
    pub adapter: AdapterId,
    /// Which queue.
    pub queue: Queue,
    /// AIFSN and contention window.
    pub params: EdcaParams,
}

impl Access {
    /// No backoff: AIFSN `aifsn` and a contention window of 0, on the first adapter.
    ///
    /// This is for protocols that make sure themselves that one node sends at a time. With the usual window a
    /// frame that finds the medium busy, or that follows another frame of its node closely, waits for up to 15
    /// slots, which is as long as a whole slot of a TDMA schedule. With a window of 0 it goes as soon as the
    /// medium has been idle for AIFS. AIFSN 2 makes that DIFS and is what stations may use; 1 (PIFS) is for
    /// access points (IEEE 802.11-2016, 9.4.2.29).
    pub const fn without_backoff(queue: Queue, aifsn: u8) -> Access {
        Access {
            adapter: AdapterId::FIRST,
            queue,
            params: EdcaParams {
                aifsn,
                cw_min: 0,
                cw_max: 0,
                txop_us: 0,
            },
        }
    }
}

/// Sets [`Access`] parameters at the start and remembers whether the host took them.
#[derive(Clone, Debug, Default)]
pub struct AccessSetting {
    wanted: Option<Access>,
    token: Option<Token>,
    taken: Option<bool>,
}

impl AccessSetting {
    /// To be set at the start; `None`: nothing.
    pub const fn new(wanted: Option<Access>) -> AccessSetting {
        AccessSetting {
            wanted,
            token: None,
            taken: None,
        }
    }

    /// Asks the host. To be called at the start.
    pub fn start(&mut self, radio: &mut dyn Radio) {
        if let Some(access) = self.wanted {
            let token = radio.token();
            self.token = Some(token);
            radio.set(
                token,
                access.adapter,
                Attribute::Edca(access.queue, access.params),
            );
        }
    }

    /// True if this answer is to what [`AccessSetting::start`] asked.
    pub fn is_answered_by(&mut self, answer: &SetAnswer) -> bool {
        let mine = self.token == Some(answer.token);
        if mine {
            self.token = None;
            self.taken = Some(answer.result.is_ok());
        }
        mine
    }

    /// Whether the host took the parameters; `None` if it has not answered, or nothing was to be set.
    pub fn taken(&self) -> Option<bool> {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::MAX_ACTIONS;
    use crate::mac::edf::cost::CostEstimate;
    use crate::mac::edf::{AtOnce, Edf, EdfConfig};
    use crate::testing::Room;
    use frame::mac::Data;
    use frame::{MacAddr, Rate, Wire};
    use radio::{Duration, Event, Instant, Outcome, Protocol, Radio, TxHow};

    const A: MacAddr = MacAddr::local(1);

    /// Makes [`Flood::BURST`] requests at the start and for every confirm, until it has made all, each of a burst for another receiver.
    #[derive(Default)]
    struct Flood {
        made: u32,
        confirmed: u32,
        acked: u32,
    }

    impl Flood {
        const BURST: u32 = 30;
        const ALL: u32 = 210;
    }

    impl Protocol for Flood {
        fn handle(&mut self, _: Instant, event: Event<'_>, radio: &mut dyn Radio) {
            match event {
                Event::Start => {}
                Event::Confirm(c) => {
                    self.confirmed += 1;
                    self.acked += u32::from(c.outcome == Outcome::Acked);
                }
                _ => return,
            }
            let mut mpdu = [0; 64];
            for k in 0..Self::BURST.min(Self::ALL - self.made) {
                let n = Data::direct(MacAddr::local(2 + k), A, A, b"flood").emit(&mut mpdu);
                self.made += 1;
                let token = radio.token();
                radio.request(token, &mpdu[..n.unwrap()], &TxHow::one_shot(Rate::OFDM_54));
            }
        }
        fn deadline(&self) -> Option<Instant> {
            None
        }
    }

    /// Each confirm brings more requests than the overlay pays for: what it owes outgrows its table.
    #[test]
    fn a_flood_gets_all_its_confirms() {
        const { assert!(Flood::ALL as usize > 3 * MAX_ACTIONS) };
        flood::<2>(AtOnce::One);
    }

    /// So many may go down at once that an event is not enough for all.
    #[test]
    fn a_flood_goes_down_in_parts() {
        flood::<64>(AtOnce::EachReceiver);
    }

    fn flood<const N: usize>(at_once: AtOnce) {
        let cost = CostEstimate::fixed(Duration::from_us(150));
        let config = EdfConfig {
            at_once,
            ..EdfConfig::new(cost, Duration::from_ms(100))
        };
        let mut room = Room::new(1);
        let node = room.add(A, move || -> Edf<Flood, N> {
            Edf::new(config.clone(), Flood::default())
        });
        room.run_until(1_000_000_000);
        let flood = room.protocol::<Edf<Flood, N>>(node).protocol();
        assert_eq!((flood.made, flood.confirmed), (Flood::ALL, Flood::ALL));
        assert_eq!(flood.acked as usize, room.flights.len());
        assert!((2..=Flood::ALL).contains(&flood.acked));
        room.close();
    }
}
