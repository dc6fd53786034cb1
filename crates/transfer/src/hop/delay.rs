//! Where a node's delay comes from.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};

use linux::netfilter::udp;
use linux::wifi::Reports;
use protocols::transport::hop::Hop;
use protocols::transport::wire::{HEADER_OCTETS, Header};
use radio::{Duration, Instant};

/// Tells a [`Hop`] how long packets take through this node.
pub trait DelaySource {
    /// Gives the hop what has been learned since the last call.
    fn turn(&mut self, now: Instant, hop: &mut Hop);

    /// A packet of ATP, as it will be sent, is about to go on to the interface.
    fn released(&mut self, now: Instant, packet: &[u8]);

    /// Polls as readable when there is something to learn.
    fn fd(&self) -> Option<BorrowedFd<'_>>;

    /// Samples so far.
    fn samples(&self) -> u64;
}

/// How long a packet takes, measured by somebody in another way. How long packets wait for each other follows from that.
#[derive(Debug)]
pub struct Fixed {
    takes: Duration,
    /// When what has gone on until now is through.
    free_at: Instant,
    /// What packets have waited that the hop does not know of yet.
    waits: Vec<Duration>,
    samples: u64,
}

impl Fixed {
    /// Packets that wait at most: a queue that is full takes no more.
    const MOST_WAITING: u64 = 64;

    /// Each packet of data takes this long.
    pub fn new(takes: Duration) -> Fixed {
        Fixed {
            takes,
            free_at: Instant::ZERO,
            waits: vec![Duration::ZERO], // so that the first packet finds a delay
            samples: 0,
        }
    }
}

impl DelaySource for Fixed {
    fn turn(&mut self, now: Instant, hop: &mut Hop) {
        for wait in self.waits.drain(..) {
            hop.sample(now, wait, self.takes);
            self.samples += 1;
        }
    }

    fn released(&mut self, now: Instant, packet: &[u8]) {
        let is_data = Header::parse(packet).is_ok_and(|(h, _)| !h.is_feedback());
        let wait = self.free_at.since(now);
        if is_data && wait + self.takes <= self.takes.times(Self::MOST_WAITING) {
            self.free_at = now + wait + self.takes;
        }
        self.waits.push(wait);
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn samples(&self) -> u64 {
        self.samples
    }
}

/// What is known of a packet, and when it went on. Its header tells it from others.
type Gone = (Instant, [u8; HEADER_OCTETS]);

/// Packets that have gone on, and of which nothing has been heard yet; the oldest first.
#[derive(Debug, Default)]
struct Waiting {
    gone: VecDeque<Gone>,
    /// Reports since the last one of the oldest packet that speak against it.
    overtaken: usize,
}

impl Waiting {
    /// More than any queue below holds.
    const MOST: usize = 8_192;
    /// After so many reports of packets behind it none will come of the oldest. The queues below keep their order, so who
    /// overtakes was thrown away where a queue was full, and that it took no time says nothing. It was among the youngest then, and that
    /// it was reported says nothing of the oldest, either: while one frame takes long, more than so many find the queue full.
    const OVERTAKERS: usize = 8;

    fn push(&mut self, now: Instant, packet: &[u8]) {
        if let Some(head) = packet.first_chunk() {
            if self.gone.len() >= Self::MOST {
                self.gone.pop_front();
            }
            self.gone.push_back((now, *head));
        }
    }

    /// When this packet went on, if it was sent in its turn.
    fn take(&mut self, packet: &[u8]) -> Option<Instant> {
        let head: &[u8; HEADER_OCTETS] = packet.first_chunk()?;
        let at = self.gone.iter().position(|(_, h)| h == head)?;
        // few wait where no queue is full
        let speaks_against = at < self.gone.len() / 2 || self.gone.len() <= Self::OVERTAKERS;
        self.overtaken += usize::from(speaks_against);
        if at > 0 && self.overtaken < Self::OVERTAKERS {
            self.gone.remove(at);
            return None;
        }
        self.overtaken = 0;
        self.gone.drain(..=at).next_back().map(|(at, _)| at)
    }
}

/// From one question to the radio to the next.
const ASK: Duration = Duration::from_ms(100);

/// When the radio is asked how busy the medium is: only while nothing is sent, since only then it matters to the hop.
#[derive(Debug)]
struct Questions {
    /// When something was sent, or the radio was asked.
    last: Instant,
    /// The radio does not know.
    vain: bool,
}

impl Questions {
    fn sent(&mut self, now: Instant) {
        self.last = now;
    }

    /// Tells the hop how busy the medium was, if that is due.
    fn turn(&mut self, now: Instant, hop: &mut Hop, ask: impl FnOnce() -> Option<u64>) {
        if self.vain || now.since(self.last) < ASK {
            return;
        }
        self.last = now;
        match ask() {
            Some(us) => hop.busy(now, us),
            None => self.vain = true,
        }
    }
}

/// Measured: from the moment a packet goes on until the radio reports that it was sent, or given up. Queueing and
/// transmission are one time. Whether the channel is idle is asked of the radio, too, if it counts that.
#[derive(Debug)]
pub struct Reported {
    reports: Reports,
    waiting: Waiting,
    questions: Questions,
    samples: u64,
}

impl Reported {
    /// By these reports.
    pub fn new(reports: Reports) -> Reported {
        Reported {
            reports,
            waiting: Waiting::default(),
            questions: Questions {
                last: Instant::ZERO,
                vain: false,
            },
            samples: 0,
        }
    }
}

impl DelaySource for Reported {
    fn turn(&mut self, now: Instant, hop: &mut Hop) {
        while let Some((at, packet)) = self.reports.take() {
            let gone = udp::payload(packet).and_then(|p| self.waiting.take(p));
            if let Some(gone) = gone {
                hop.sample(now, Duration::ZERO, at.since(gone));
                self.questions.sent(now);
                self.samples += 1;
            }
        }
        self.questions.turn(now, hop, || self.reports.busy_time_us());
    }

    fn released(&mut self, now: Instant, packet: &[u8]) {
        self.waiting.push(now, packet);
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.reports.as_fd())
    }

    fn samples(&self) -> u64 {
        self.samples
    }
}

#[cfg(test)]
mod tests {
    use protocols::transport::hop::HopConfig;
    use protocols::transport::wire::{Control, ProtocolId};

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_us(ms * 1_000)
    }

    fn header(control: Control) -> [u8; HEADER_OCTETS] {
        Header::new(ProtocolId::Atp, control).octets()
    }

    #[test]
    fn reports_find_their_packets() {
        let packet = |n: u8| [n; 30];
        let at = |n: u8| Instant::from_us(u64::from(n));
        let mut waiting = Waiting::default();
        waiting.push(at(1), &packet(1));
        waiting.push(at(2), &packet(2));
        waiting.push(at(3), b"too short");
        assert_eq!(waiting.take(&packet(1)), Some(at(1)));
        assert_eq!(waiting.take(&packet(1)), None, "once");
        assert_eq!(waiting.take(&packet(9)), None, "not ours");
        assert_eq!(waiting.take(b"short"), None);
        assert_eq!(waiting.take(&packet(2)), Some(at(2)));
        for _ in 0..2 * Waiting::MOST {
            waiting.push(at(6), &packet(6));
        }
        assert_eq!(waiting.gone.len(), Waiting::MOST);
    }

    /// A queue below is full: what it throws away is reported at once, before what waits in it.
    #[test]
    fn who_overtakes_was_not_sent_and_the_others_are_not_forgotten() {
        let packet = |n: u8| [n; 30];
        let at = |n: u8| Instant::from_us(u64::from(n));
        let mut waiting = Waiting::default();
        (1..=40).for_each(|n| waiting.push(at(n), &packet(n)));
        for n in 1..=10 {
            for late in 0..3 {
                assert_eq!(
                    waiting.take(&packet(40 - 3 * (n - 1) - late)),
                    None,
                    "thrown away"
                );
            }
            assert_eq!(waiting.take(&packet(n)), Some(at(n)), "in its turn");
        }
    }

    /// A frame that takes many tries, while more come than the queue below has room for: each is released, and its report is back before
    /// one or two others are.
    #[test]
    fn many_that_overtake_while_one_takes_long_are_all_thrown_away() {
        let packet = |n: u8| [n; 30];
        let at = |n: u8| Instant::from_us(u64::from(n));
        let mut waiting = Waiting::default();
        (1..=50).for_each(|n| waiting.push(at(n), &packet(n)));
        let mut next = 51;
        for done in 1..=20 {
            for together in [1, 3, 2, 1, 3] {
                (next..next + together).for_each(|n| waiting.push(at(n), &packet(n)));
                for n in next..next + together {
                    assert_eq!(waiting.take(&packet(n)), None, "thrown away");
                }
                next += together;
            }
            assert_eq!(waiting.take(&packet(done)), Some(at(done)), "in its turn");
        }
    }

    /// Others keep the medium busy while this node sends nothing; who sends asks nothing.
    #[test]
    fn a_busy_medium_is_not_idle() {
        let at = |ms: u64| Instant::from_us(ms * 1_000);
        let mut hop = Hop::new(&HopConfig::default());
        let mut questions = Questions {
            last: at(0),
            vain: false,
        };
        let mut asked = 0;
        let mut turn = |ms, hop: &mut Hop, busy_us| {
            questions.turn(at(ms), hop, || {
                asked += 1;
                busy_us
            });
        };
        turn(99, &mut hop, Some(0));
        turn(100, &mut hop, Some(50_000));
        assert!(hop.is_idle(at(100)), "nothing to compare with yet");
        turn(150, &mut hop, Some(90_000));
        turn(200, &mut hop, Some(100_000));
        assert!(!hop.is_idle(at(200)));
        turn(300, &mut hop, Some(104_000));
        assert!(hop.is_idle(at(300)));
        turn(400, &mut hop, None);
        turn(500, &mut hop, Some(0));
        assert_eq!(asked, 4, "not when it was just asked, nor when it does not know");
    }

    #[test]
    fn who_is_never_reported_is_forgotten() {
        let packet = |n: u8| [n; 30];
        let at = |n: u8| Instant::from_us(u64::from(n));
        let mut waiting = Waiting::default();
        (1..=20).for_each(|n| waiting.push(at(n), &packet(n)));
        let found: Vec<bool> = (2..=20).map(|n| waiting.take(&packet(n)).is_some()).collect();
        let missing = found.iter().take_while(|found| !**found).count();
        assert_eq!(missing, Waiting::OVERTAKERS - 1);
        assert!(found[missing..].iter().all(|found| *found));
    }

    #[test]
    fn a_fixed_delay_holds_from_the_start_and_packets_keep_the_channel_busy() {
        let mut hop = Hop::new(&HopConfig::default());
        let mut fixed = Fixed::new(Duration::from_ms(7));
        fixed.turn(Instant::ZERO, &mut hop);
        assert_eq!((hop.delay_us(), hop.is_idle(Instant::ZERO)), (7_000, false));
        let later = Instant::from_us(200_000);
        fixed.turn(later, &mut hop);
        assert!(hop.is_idle(later), "nothing has been sent");
        fixed.released(later, &header(Control::ACK));
        fixed.turn(later, &mut hop);
        assert!(!hop.is_idle(later));
        assert_eq!((hop.delay_us(), fixed.samples()), (7_000, 2));
    }

    /// However fast they come, they take their time one after the other, up to a queue that is full.
    #[test]
    fn packets_wait_for_each_other_where_each_takes_its_time() {
        let config = HopConfig {
            memory: 0.0,
            ..HopConfig::default()
        };
        let mut hop = Hop::new(&config);
        let mut fixed = Fixed::new(Duration::from_ms(7));
        let mut after = |ms, packets: usize, packet: &[u8]| {
            (0..packets).for_each(|_| fixed.released(at(ms), packet));
            fixed.turn(at(ms), &mut hop);
            hop.delay_us()
        };
        let [data, feedback] = [Control::ACK, Control::SACK_OPT].map(header);
        assert_eq!([after(1_000, 1, &data), after(1_000, 1, &data)], [7_000, 14_000]);
        assert_eq!(after(1_005, 3, &feedback), 9_000 + 7_000, "that is short");
        assert_eq!(after(1_005, 1, &data), 9_000 + 7_000);
        assert_eq!(after(1_021, 1, &data), 7_000, "the others are through");
        assert_eq!(after(2_000, 1_000, &data), 64 * 7_000 + 7_000);
        assert_eq!(after(3_000, 1, &data), 7_000);
    }
}
