//! Centralised EDF: the controller owns the channel and schedules all exchanges of all nodes by deadline; the
//! nodes ([`Responder`](super::responder)) send only when polled.
//!
//! Every MSDU that is submitted for a node opens an exchange with it: the MSDU goes down in a confirmed one-shot
//! that is also a poll, and the node answers at once with an MSDU of its own. An empty MSDU is a poll and nothing
//! else. What fails is repeated until the deadline, earliest deadline first: data and poll if neither ACK nor answer
//! came, the poll alone if only the answer is missing. An answer that repeats the number of the exchange
//! proves that the data arrived, whatever became of the ACK; so the controller waits for the answer also when there
//! was no ACK, since whoever sends meanwhile meets it. So it does if no confirm comes at all: the host may have lost it.
//!
//! A new MSDU for a node ends the exchange that is still open with it: this is for cyclic data, where the newer
//! value counts.

mod config;

pub use config::{CoordinatorConfig, CoordinatorCounters};

use super::poll::{POLL_OCTETS, PollHeader};
use crate::mac::data::{ETHERTYPE_PROTOCOL, Framer, MAX_DATA_OCTETS, MAX_PAYLOAD_OCTETS, Received};
use crate::mac::overlay::AccessSetting;
use frame::{AccessCategory, MacAddr};
use radio::{Confirm, Duration, Event, Instant, Msdu, Outcome, Protocol, Radio, Token};

/// One node and the exchange with it.
#[derive(Clone, Debug)]
struct Node<const L: usize> {
    peer: MacAddr,
    exchange: u16,
    /// Order of opening, over all nodes.
    order: u64,
    /// The data are still to be delivered.
    down: bool,
    /// The answer is still to come.
    up: bool,
    deadline: Instant,
    not_before: Instant,
    attempts: u16,
    category: AccessCategory,
    octets: usize,
    payload: [u8; L],
    heard: Option<u16>,
}

impl<const L: usize> Node<L> {
    fn is_open(&self) -> bool {
        self.down || self.up
    }
}

/// A frame that is below, or whose answer is awaited.
#[derive(Clone, Copy, Debug)]
struct Sent {
    node: usize,
    exchange: u16,
    poll: bool,
}

#[derive(Clone, Copy, Debug)]
enum Channel {
    Free,
    /// Until its confirm comes, or the patience ends.
    Sending(Token, Sent, Instant),
    Awaiting(Sent, Instant),
}

/// See the [module](self). Knows up to `N` nodes (by their first MSDU) and MSDUs of up to `L` octets.
#[derive(Clone, Debug)]
pub struct Coordinator<const N: usize = 32, const L: usize = 1500> {
    config: CoordinatorConfig,
    framer: Framer,
    access: AccessSetting,
    /// The first `known` of them are there.
    nodes: [Option<Node<L>>; N],
    known: usize,
    channel: Channel,
    counters: CoordinatorCounters,
}

impl<const N: usize, const L: usize> Coordinator<N, L> {
    /// A coordinator that knows no node yet.
    pub fn new(config: CoordinatorConfig) -> Self {
        Coordinator {
            framer: Framer::new(config.identity, config.qos, ETHERTYPE_PROTOCOL),
            access: AccessSetting::new(config.access),
            config,
            nodes: [const { None }; N],
            known: 0,
            channel: Channel::Free,
            counters: CoordinatorCounters::default(),
        }
    }

    /// What it has counted.
    pub fn counters(&self) -> &CoordinatorCounters {
        &self.counters
    }

    /// Whether the host took the channel access parameters; `None` if it has not answered or none were asked for.
    pub fn access_taken(&self) -> Option<bool> {
        self.access.taken()
    }

    fn submit(&mut self, now: Instant, msdu: &Msdu<'_>) {
        let octets = msdu.payload.len();
        let fits = octets <= L.min(MAX_PAYLOAD_OCTETS - POLL_OCTETS);
        let known = self.nodes[..self.known]
            .iter()
            .position(|n| n.as_ref().is_some_and(|n| n.peer == msdu.peer));
        let place = known.or((self.known < N).then_some(self.known));
        let Some(place) = place.filter(|_| fits && !msdu.peer.is_group()) else {
            self.counters.rejected += 1;
            return;
        };
        self.known = self.known.max(place + 1);
        self.give_up(place);
        self.counters.exchanges += 1;
        let node = self.nodes[place].get_or_insert(Node {
            peer: msdu.peer,
            exchange: 0,
            order: 0,
            down: false,
            up: false,
            deadline: Instant::ZERO,
            not_before: Instant::ZERO,
            attempts: 0,
            category: msdu.category,
            octets: 0,
            payload: [0; L],
            heard: None,
        });
        node.exchange = node.exchange.wrapping_add(1);
        node.order = self.counters.exchanges;
        (node.down, node.up) = (octets > 0, true);
        node.deadline = msdu.deadline.unwrap_or(now + self.config.default_deadline);
        node.not_before = now;
        node.attempts = 0;
        node.category = msdu.category;
        node.octets = octets;
        node.payload[..octets].copy_from_slice(msdu.payload);
    }

    /// Ends the exchange with a node, whatever is still missing.
    fn give_up(&mut self, place: usize) {
        if let Some(node) = &mut self.nodes[place] {
            self.counters.down_missed += u64::from(node.down);
            self.counters.up_missed += u64::from(node.up);
            (node.down, node.up) = (false, false);
        }
    }

    /// The node of `sent`, if that exchange is still open.
    fn open(&mut self, sent: Sent) -> Option<&mut Node<L>> {
        let node = self.nodes[sent.node].as_mut()?;
        (node.exchange == sent.exchange && node.is_open()).then_some(node)
    }

    fn next(&mut self, now: Instant, radio: &mut dyn Radio) {
        let CoordinatorConfig { attempt, answer, .. } = self.config;
        // what is under way is not given up: another attempt would be too late, but not this one
        let under_way = match self.channel {
            Channel::Sending(_, sent, _) | Channel::Awaiting(sent, _) => Some((sent.node, sent.exchange)),
            Channel::Free => None,
        };
        let all = self.nodes[..self.known].iter_mut().enumerate();
        for node in all.filter_map(|(i, n)| n.as_mut().filter(|n| under_way != Some((i, n.exchange)))) {
            if node.down && now + attempt > node.deadline {
                node.down = false;
                self.counters.down_missed += 1;
            }
            if node.up && now + attempt + answer > node.deadline {
                node.up = false;
                self.counters.up_missed += 1;
            }
        }
        if !matches!(self.channel, Channel::Free) {
            return;
        }
        let ready = |n: &Node<L>| n.is_open() && n.not_before <= now;
        let all = self.nodes[..self.known]
            .iter()
            .enumerate()
            .filter_map(|(i, n)| Some((i, n.as_ref()?)));
        let first = all
            .filter(|(_, n)| ready(n))
            // of those that are due together, who has failed already goes last: a device that is gone takes no time of the others
            .min_by_key(|(_, n)| (n.deadline, n.attempts, n.order));
        if let Some((index, _)) = first {
            self.send(now, index, radio);
        }
    }

    fn send(&mut self, now: Instant, index: usize, radio: &mut dyn Radio) {
        let node = self.nodes[index].as_mut().expect("it was chosen");
        let header = PollHeader {
            data: node.down,
            poll: node.up,
            answer: false,
            exchange: node.exchange,
            number: node.exchange,
        };
        let payload = if node.down {
            &node.payload[..node.octets]
        } else {
            &[]
        };
        let mut out = [0; MAX_DATA_OCTETS];
        let mpdu = self
            .framer
            .frame(node.peer, node.category, false, &header.emit(), payload, &mut out);
        let mpdu = mpdu.expect("what does not fit is not taken in");
        let sent = Sent {
            node: index,
            exchange: node.exchange,
            poll: node.up,
        };
        node.attempts += 1;
        let token = radio.token();
        let patience = self.config.attempt.times(self.config.patience.into());
        self.channel = Channel::Sending(token, sent, now + patience);
        radio.request(token, mpdu, &self.config.how.expires(node.deadline));
    }

    fn confirmed(&mut self, now: Instant, sent: Sent, confirm: &Confirm) {
        self.counters.confirms.note(confirm);
        self.channel = Channel::Free;
        let until = now + self.config.answer;
        let Some(node) = self.open(sent) else {
            return;
        };
        match confirm.outcome {
            Outcome::Acked => {
                let arrived = core::mem::take(&mut node.down);
                if node.up && sent.poll {
                    self.channel = Channel::Awaiting(sent, until);
                }
                self.counters.down_done += u64::from(arrived);
            }
            // it may have been heard: the answer tells
            Outcome::Unknown | Outcome::NotAcked if sent.poll => {
                self.channel = Channel::Awaiting(sent, until)
            }
            Outcome::Refused(_) => self.give_up(sent.node),
            // nothing was on the air: not again in the same instant
            Outcome::Aborted | Outcome::Expired => self.failed(now, sent, self.config.attempt),
            Outcome::NotAcked | Outcome::Unknown => self.failed(now, sent, Duration::ZERO),
        }
    }

    /// An attempt has failed: the exchange waits for the gap, or at least for `pause`, if there is time.
    fn failed(&mut self, now: Instant, sent: Sent, pause: Duration) {
        let CoordinatorConfig {
            gap,
            max_attempts,
            attempt,
            answer,
            ..
        } = self.config;
        let Some(node) = self.open(sent) else {
            return;
        };
        if node.attempts >= max_attempts {
            self.give_up(sent.node);
            return;
        }
        let patient = now + gap + attempt + answer <= node.deadline;
        node.not_before = now + if patient { gap.max(pause) } else { pause };
    }

    fn receive(&mut self, now: Instant, mpdu: &[u8], radio: &mut dyn Radio) {
        let me = self.config.identity.me;
        let mine = |r: &Received<'_>| r.ethertype == ETHERTYPE_PROTOCOL && r.destination == me;
        let Some(r) = Received::parse(mpdu).filter(mine) else {
            return;
        };
        let Some((header, payload)) = PollHeader::parse(r.payload).filter(|(h, _)| h.answer) else {
            return;
        };
        let all = self.nodes[..self.known]
            .iter_mut()
            .enumerate()
            .filter_map(|(i, n)| Some((i, n.as_mut()?)));
        let Some((index, node)) = { all }.find(|(_, n)| n.peer == r.source) else {
            return;
        };
        let awaited = |sent: Sent| (sent.node, sent.exchange) == (index, header.exchange);
        if matches!(self.channel, Channel::Awaiting(sent, _) if awaited(sent)) {
            self.channel = Channel::Free;
        }
        let again = header.data && node.heard == Some(header.number);
        if header.data && !again {
            node.heard = Some(header.number);
            radio.deliver(Msdu {
                peer: r.source,
                category: r.category(),
                deadline: None,
                payload,
            });
        }
        let current = header.exchange == node.exchange && node.is_open();
        if !current {
            self.counters.late_or_again += u64::from(header.data);
            return;
        }
        self.counters.late_or_again += u64::from(again);
        self.counters.down_done += u64::from(core::mem::take(&mut node.down));
        match self.config.poll_again {
            _ if !node.up => {}
            Some(pause) if !header.data => node.not_before = now + pause,
            _ => {
                node.up = false;
                self.counters.up_done += u64::from(header.data);
                self.counters.up_empty += u64::from(!header.data);
            }
        }
    }
}

impl<const N: usize, const L: usize> Protocol for Coordinator<N, L> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match (event, self.channel) {
            (Event::Start, _) => self.access.start(radio),
            (Event::Set(answer), _) => {
                self.access.is_answered_by(&answer);
            }
            (Event::Submit(msdu), _) => self.submit(now, &msdu),
            (Event::Confirm(c), Channel::Sending(token, sent, _)) if token == c.token => {
                self.confirmed(now, sent, &c);
            }
            (Event::Indication(i), _) => self.receive(now, i.frame, radio),
            (Event::Timer, Channel::Sending(token, sent, until)) if until <= now => {
                self.counters.silent += 1;
                let rate = self.config.how.series.as_slice()[0].rate;
                self.confirmed(now, sent, &Confirm::without_air(token, Outcome::Unknown, rate));
            }
            (Event::Timer, Channel::Awaiting(sent, until)) if until <= now => {
                self.channel = Channel::Free;
                self.counters.timeouts += 1;
                self.failed(now, sent, Duration::ZERO);
            }
            _ => {}
        }
        self.next(now, radio);
    }

    fn deadline(&self) -> Option<Instant> {
        match self.channel {
            Channel::Sending(.., until) | Channel::Awaiting(_, until) => Some(until),
            // whatever is open and could go now has gone
            Channel::Free => {
                let open = self.nodes[..self.known].iter().flatten().filter(|n| n.is_open());
                open.map(|n| n.not_before).min()
            }
        }
    }
}

#[cfg(test)]
mod tests;
