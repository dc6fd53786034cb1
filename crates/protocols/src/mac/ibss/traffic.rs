//! ATIMs and data: what is announced, to whom, and what may go.

use super::super::data::MAX_DATA_OCTETS;
use super::multihop::{Announced, Ended};
use super::network::{self, Network};
use super::protection::MORE_OCTETS;
use super::queue::Waiting;
use super::{Ibss, Phase, Routing, Sent};
use frame::llc::Snap;
use frame::mac::header::set_retry;
use frame::mac::{Data, Header, SequenceControl};
use frame::phy::ACK_OCTETS;
use frame::{Band, MacAddr, Wire, ppdu_us};
use radio::{Confirm, Duration, Instant, Outcome, Radio, Refusal, TxHow};

/// Octets of the header of plain data.
const HEADER_OCTETS: usize = 24;
/// Octets of an ATIM, with FCS.
const ATIM_OCTETS: u32 = 28;
/// SIFS, and what clocks may differ by, us.
const SPARE_US: u64 = 50;

impl<const Q: usize, const L: usize, W: Routing> Ibss<Q, L, W> {
    /// Sends what is next, if anything may be sent: one ATIM and one data frame at a time.
    pub(super) fn pump(&mut self, now: Instant, radio: &mut dyn Radio) {
        let Phase::Member(network) = self.phase else {
            return;
        };
        match self.window_end {
            Some(end) if now + self.atim_takes() < end => {
                self.announce(end - self.atim_takes(), &network, radio);
            }
            Some(_) => {}
            None if !self.dozes && !self.soft => self.send_data(now, &network, radio),
            None => {}
        }
    }

    /// An ATIM and its ACK, with SIFS and what clocks differ by: it begins so long before the end of the window at the latest, since
    /// whom it is for may doze from then on.
    fn atim_takes(&self) -> Duration {
        let rate = self.config.group_rate;
        let us = |octets| u64::from(ppdu_us(rate, octets, Band::Ghz2_4));
        Duration::from_us(us(ATIM_OCTETS) + us(ACK_OCTETS) + SPARE_US)
    }

    /// The next ATIM: one that others wait for, or for the first that waits whose receiver was not asked yet.
    fn announce(&mut self, end: Instant, network: &Network, radio: &mut dyn Radio) {
        if self.atim.is_some() {
            return;
        }
        let Some(next) = self.next_asked_on().or_else(|| self.next_own()) else {
            return;
        };
        let group = next.to.is_group();
        let (to, address3) = match self.config.multi_hop {
            _ if group => (MacAddr::BROADCAST, network.bssid),
            true => (next.to, next.destination),
            false => (next.to, network.bssid),
        };
        let how = self.management(self.config.tries).expires(end);
        self.stays = true;
        self.atim_for = next.destination;
        self.atim = Some(self.send_management(network::Kind::Atim(to, address3), network, &how, radio));
    }

    /// The ATIM for the first that waits whose receiver was not asked yet; all that wait for the same count as asked.
    fn next_own(&mut self) -> Option<Announced> {
        let (group, multi_hop, routing) = (self.group_announced, self.config.multi_hop, &self.routing);
        let announced = |w: &Waiting<L>| Announced {
            to: w.to,
            destination: match multi_hop && !w.to.is_group() {
                true => routing.destination(w.to, w.payload()),
                false => w.to,
            },
        };
        let is_due = |w: &Waiting<L>| match announced(w) {
            a if a.to.is_group() => !group,
            a => self.is_due(a.to, a.destination),
        };
        let first = self.queue.iter().filter(|w| !w.asked && w.sent.is_none());
        let first = announced(first.filter(|w| is_due(w)).min_by_key(|w| w.order)?);
        let same = |w: &Waiting<L>| announced(w) == first || w.to.is_group() && first.to.is_group();
        self.queue
            .iter_mut()
            .filter(|w| same(w))
            .for_each(|w| w.asked = true);
        Some(first)
    }

    pub(super) fn atim_confirmed(&mut self, sent: &Sent, confirm: &Confirm) {
        let told = match sent.to.is_group() {
            true => confirm.attempts > 0,
            false => confirm.outcome.is_acked(),
        };
        match told {
            true if sent.to.is_group() => self.group_announced = true,
            true => {
                self.neighbours.is_awake_now(sent.to);
                self.neighbours.is_told_now(self.atim_for);
            }
            false => {
                self.counters.atims_failed += 1;
                return;
            }
        }
        self.counters.atims += 1;
    }

    /// Somebody has something for us, or for all; or for somebody else over us, if the ATIM is not `plain`: address 3 is not
    /// our BSSID.
    pub(super) fn atim_heard(
        &mut self,
        now: Instant,
        header: &Header<'_>,
        plain: bool,
        radio: &mut dyn Radio,
    ) {
        if header.receiver() != self.config.me && !(plain && header.is_group()) {
            return;
        }
        self.counters.atims_heard += 1;
        let in_window = self.window_end.is_some_and(|end| now <= end);
        let early = now + self.wake_ahead() >= self.tbtt;
        self.counters.atims_late += u64::from(!in_window && !early);
        self.hears_group |= header.is_group();
        self.stay_awake(now, radio);
        if let Some(from) = header.transmitter() {
            self.neighbours.is_awake_now(from);
        }
        if let Some(to) = header.address3().filter(|to| !plain && *to != self.config.me) {
            self.ask_on(to);
        }
    }

    /// The next data frame whose receiver is awake.
    fn send_data(&mut self, now: Instant, network: &Network, radio: &mut dyn Radio) {
        if self.data.is_some() {
            return;
        }
        let saves = network.atim_window_tu > 0;
        let ahead = self.wake_ahead();
        let (awake, group) = (&self.neighbours, self.group_announced);
        let listens = |to: MacAddr| if to.is_group() { group } else { awake.is_awake(to) };
        let sequence = (self.sequence + 1) & 0xfff;
        let may_go = |to: MacAddr| !saves || listens(to);
        let Some(next) = self.queue.first(|w| w.sent.is_none() && may_go(w.to)) else {
            return;
        };
        let until = if saves { self.tbtt - ahead } else { Instant::MAX };
        if saves && until <= now {
            return;
        }
        let number = *next.sequence.get_or_insert(sequence);
        if number == sequence {
            self.sequence = sequence;
        }
        let mut out = [0; MAX_DATA_OCTETS + MORE_OCTETS];
        let octets = write(
            Data {
                sequence: SequenceControl::new(number, 0),
                ..Data::direct(next.to, self.config.me, network.bssid, &[])
            },
            Snap::ethernet(self.config.ethertype, next.payload()),
            &mut out,
        );
        let _ = set_retry(&mut out, next.tried);
        let Some(octets) = self.protection.seal(&mut out, octets) else {
            self.counters.unprotected += 1;
            let refused = Outcome::Refused(Refusal::NotSupported);
            self.give_up(refused, |w| w.sequence == Some(number) && w.sent.is_none());
            return;
        };
        let expires = next.deadline.map_or(until, |t| t.min(until));
        let mut how = match next.to.is_group() {
            true => TxHow::one_shot(self.config.group_rate),
            false => TxHow::multi_shot(self.config.rate, self.config.tries),
        };
        how = how.queue(next.category.into());
        if expires < Instant::MAX {
            how = how.expires(expires);
        }
        let token = radio.token();
        next.sent = Some(token);
        let to = next.to;
        self.data = Some(Sent { token, to, octets });
        radio.request(token, &out[..octets], &how);
    }

    pub(super) fn data_confirmed(&mut self, now: Instant, confirm: &Confirm) {
        self.counters.confirms.note(confirm);
        let mine = Some(confirm.token);
        let member = matches!(self.phase, Phase::Member(_));
        if confirm.outcome == Outcome::Expired && member {
            // the interval was too short for it: it waits for the next one
            let waits = |w: &Waiting<L>| w.sent == mine && w.deadline.is_none_or(|t| t > now);
            if let Some(waiting) = self.queue.first(waits) {
                waiting.sent = None;
                waiting.tried |= confirm.attempts > 0;
                return;
            }
            self.counters.expired += 1;
        }
        self.end(confirm.outcome, confirm.attempts, |w| w.sent == mine);
    }

    /// Those that were never on the air are over; how many these are.
    pub(super) fn give_up(&mut self, outcome: Outcome, which: impl Fn(&Waiting<L>) -> bool) -> u64 {
        self.end(outcome, 0, which)
    }

    /// The same of any.
    fn end(&mut self, outcome: Outcome, attempts: u16, which: impl Fn(&Waiting<L>) -> bool) -> u64 {
        let routing = &mut self.routing;
        self.queue.remove(which, |number, to| {
            routing.ended(Ended {
                number,
                to,
                outcome,
                attempts,
            });
        })
    }
}

/// Writes a data frame and tells its octets. The payload is one that fits.
fn write(data: Data<'_>, snap: Snap<'_>, out: &mut [u8; MAX_DATA_OCTETS + MORE_OCTETS]) -> usize {
    const FITS: &str = "what is queued fits a frame";
    data.emit(out).expect(FITS);
    HEADER_OCTETS + snap.emit(&mut out[HEADER_OCTETS..]).expect(FITS)
}
