//! The end that receives: offer, answer, content, verdict.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use protocols::transport::{State, Transport};
use radio::{Duration, Instant};

use crate::claims::{Claims, Ruling, Taken, Wish};
use crate::flow::Flow;
use crate::message::{Answer, Inbox, MAX_BLOCK_OCTETS, MessageError, Verdict};
use crate::plain::plain;
use crate::sink::{News, Place, Sink};
use crate::{Progress, TransferError};

/// Octets of the stream that are taken in ahead of the disk.
const MAX_INBOX: usize = 4 * MAX_BLOCK_OCTETS;
/// A silence that others are told of.
const NOTICED: Duration = Duration::from_ms(2_000);
const SECOND_NS: u64 = 1_000_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Offer,
    /// The place is asked for.
    Place,
    /// What is there is read.
    Opening,
    From,
    Block,
    Digest,
    Keeping,
    Done,
}

/// See the [module](self).
pub struct Receiving {
    place: Place,
    peer: SocketAddr,
    wish: Option<Wish>,
    sink: Option<Sink>,
    /// Octets that were there before.
    there: u64,
    step: Step,
    inbox: Inbox,
    out: Vec<u8>,
    total: Option<u64>,
    /// Octets that went to the sink.
    given: u64,
    /// Octets of these that the sink has written.
    written: Arc<AtomicU64>,
    resumed: u64,
    failed: Option<TransferError>,
    declined: bool,
    /// Name of the content, once it is known, as it can be shown.
    pub name: String,
}

impl Receiving {
    /// From `peer`; will go to `place`.
    pub fn new(place: &Place, peer: SocketAddr) -> Receiving {
        Receiving {
            place: place.clone(),
            peer,
            wish: None,
            sink: None,
            there: 0,
            step: Step::Offer,
            inbox: Inbox::default(),
            out: Vec::new(),
            total: None,
            given: 0,
            written: Arc::default(),
            resumed: 0,
            failed: None,
            declined: false,
            name: String::new(),
        }
    }

    /// How far it is; what is written counts.
    pub fn progress(&self, flow: &Flow) -> Progress {
        Progress {
            done: self.resumed + self.written.load(Ordering::Relaxed),
            resumed: self.resumed,
            total: self.total,
            ..flow.arriving()
        }
    }

    /// Whether the sender has said what it sends.
    pub fn is_offered(&self) -> bool {
        self.step != Step::Offer
    }

    /// Whether all has come, so that what is left is to tell the sender.
    pub fn is_done(&self) -> bool {
        matches!(self.step, Step::Keeping | Step::Done)
    }

    /// Whether all has come, and it is not known yet whether that is whole and kept.
    pub fn is_verified(&self) -> bool {
        self.step == Step::Keeping
    }

    /// Whether it was not taken.
    pub fn was_declined(&self) -> bool {
        self.declined
    }

    /// Whether anything of the content may have gone where it goes to.
    pub fn has_given(&self) -> bool {
        self.given > 0
    }

    /// True if it waits for a disk, which does not wake the loop.
    pub fn waits_for_sink(&self) -> bool {
        matches!(self.step, Step::Opening | Step::Keeping) || self.inbox.len() >= MAX_INBOX
    }

    /// Goes on as far as it can. True when all is done and the sender was told. `heard`: when the last datagram came.
    ///
    /// # Errors
    /// Why it cannot go on, or what the sender was told.
    pub fn turn(
        &mut self,
        now: Instant,
        flow: &mut Flow,
        heard: Instant,
        claims: &mut Claims,
    ) -> Result<bool, TransferError> {
        let result = self.go_on(now, flow, heard, claims);
        if self.step == Step::Done || !matches!(result, Ok(false)) {
            self.close();
            claims.release(self.peer);
        }
        result
    }

    /// What the sender is told of all that it has sent, as soon as that is known.
    pub fn verdict(&mut self) -> Option<Result<(), TransferError>> {
        (self.step == Step::Done).then(|| self.failed.take().map_or(Ok(()), Err))
    }

    /// Takes nothing more. What was taken is written.
    pub fn close(&mut self) {
        self.sink = None;
    }

    fn go_on(
        &mut self,
        now: Instant,
        flow: &mut Flow,
        heard: Instant,
        claims: &mut Claims,
    ) -> Result<bool, TransferError> {
        // who has sent everything is silent by right
        let heard = if self.step == Step::Keeping { now } else { heard };
        if let Some(by) = claims.lost(self.peer, heard) {
            return Err(TransferError::Replaced(by));
        }
        let mut octets = [0; 1 << 14];
        while self.inbox.len() < MAX_INBOX {
            let n = flow.read(now, &mut octets);
            if n == 0 {
                break;
            }
            self.inbox.push(&octets[..n]);
        }
        if self.step == Step::Place {
            self.ask(now, claims);
        }
        self.hear_sink();
        while self.step != Step::Done && self.advance(now)? {}
        let n = flow.write(now, &self.out);
        self.out.drain(..n);
        let over = flow.state().is_over();
        if self.step == Step::Done && (self.out.is_empty() || over) {
            flow.finish(now);
            let told = over || flow.state() == State::Lingering || flow.is_exhausted();
            return match self.failed.take() {
                Some(why) if told => Err(why),
                why => {
                    self.failed = why;
                    Ok(told)
                }
            };
        }
        match (flow.state(), self.step) {
            // everything is here
            (_, Step::Keeping | Step::Done) => Ok(false),
            (State::Failed(why), _) => Err(why.into()),
            _ if flow.is_exhausted() && self.inbox.len() < MAX_INBOX => Err(MessageError::Short.into()),
            _ => Ok(false),
        }
    }

    /// Asks for the place; what comes of that is said when it is known.
    fn ask(&mut self, now: Instant, claims: &mut Claims) {
        let Some(wish) = &self.wish else { return };
        let reason = match claims.ask(now, self.peer, wish) {
            Ruling::Wait => return,
            Ruling::Yes => match Sink::open(&self.place, &self.name) {
                Ok(sink) => {
                    self.written = sink.written();
                    self.sink = Some(sink);
                    self.step = Step::Opening;
                    return;
                }
                Err(reason) => reason,
            },
            Ruling::No(taken) => self.occupied(&taken),
        };
        self.out = Answer::No(reason.clone()).octets();
        self.failed = Some(TransferError::Declined(reason));
        self.declined = true;
        self.step = Step::Done;
    }

    /// Why the place cannot be had, and when it can.
    fn occupied(&self, taken: &Taken) -> String {
        let by = taken.by;
        let (who, or) = match self.place {
            Place::Stdout => (format!("standard output carries what {by} sends"), String::new()),
            Place::Folder { .. } => (
                format!("{by} sends '{}'", self.name),
                "give another name with --name, or ".into(),
            ),
        };
        let seconds = |time: Duration| time.as_ns().div_ceil(SECOND_NS);
        if taken.silent < NOTICED {
            format!("{who} just now; {or}send it again when that has ended")
        } else {
            format!(
                "{who}, and has been silent for {} s; {or}send it again in {} s, when it is given up if it stays silent",
                seconds(taken.silent),
                seconds(taken.left)
            )
        }
    }

    /// What the thread that writes has to tell.
    fn hear_sink(&mut self) {
        let Some(sink) = &mut self.sink else { return };
        match sink.news() {
            Ok(None) => {}
            Ok(Some(News::Begun(octets, digest))) => {
                self.there = octets;
                self.out = match octets {
                    0 => Answer::Begin.octets(),
                    octets => Answer::Have { octets, digest }.octets(),
                };
                self.step = Step::From;
            }
            Ok(Some(News::Kept(true))) => self.tell(Verdict::Same, None),
            Ok(Some(News::Kept(false))) => {
                // it was thrown away
                (self.resumed, self.written) = (0, Arc::default());
                self.tell(Verdict::Differs, Some(TransferError::Damaged));
            }
            Err(e) => {
                let what = match self.step {
                    Step::Opening => "what is there of it cannot be read",
                    _ => "it cannot be kept",
                };
                let why = TransferError::io(what, e);
                let reason = why.to_string();
                match self.step {
                    Step::Opening => self.out = Answer::No(reason).octets(),
                    _ => self.out.extend_from_slice(&Verdict::NotKept(reason).octets()),
                }
                self.failed = Some(why);
                self.step = Step::Done;
            }
        }
    }

    /// Takes one thing from the inbox; false if there is not enough in it, or no room where it goes.
    fn advance(&mut self, now: Instant) -> Result<bool, TransferError> {
        match self.step {
            Step::Offer => {
                let Some(offer) = self.inbox.offer()? else {
                    return Ok(false);
                };
                // a name that changes by that is none for a file, so it is refused as it would have been
                self.name = plain(&offer.name);
                self.total = offer.size;
                let (name, size) = match &self.place {
                    Place::Folder { .. } => (offer.name, offer.size),
                    // one for all, and what is half written there cannot be gone on with
                    Place::Stdout => (String::new(), None),
                };
                let since = now;
                self.wish = Some(Wish { name, size, since });
                self.step = Step::Place;
            }
            Step::From => {
                let Some(from) = self.inbox.u64() else {
                    return Ok(false);
                };
                let Some(sink) = &mut self.sink else {
                    return Ok(false);
                };
                if from == 0 {
                    sink.restart();
                } else if from != self.there {
                    return Err(MessageError::Value("it goes on from where nobody is").into());
                }
                self.resumed = from;
                self.step = Step::Block;
            }
            Step::Block => return self.block(),
            Step::Digest => {
                let Some(sink) = &mut self.sink else {
                    return Ok(false);
                };
                if !sink.has_room() {
                    return Ok(false);
                }
                let Some(theirs) = self.inbox.digest() else {
                    return Ok(false);
                };
                sink.keep(theirs);
                self.step = Step::Keeping;
            }
            Step::Place | Step::Opening | Step::Keeping | Step::Done => return Ok(false),
        }
        Ok(true)
    }

    fn block(&mut self) -> Result<bool, TransferError> {
        let Some(sink) = &mut self.sink else {
            return Ok(false);
        };
        if !sink.has_room() || self.inbox.len() < 4 {
            return Ok(false);
        }
        let Some(n) = self.inbox.u32().map(|n| n as usize) else {
            return Ok(false);
        };
        if n > MAX_BLOCK_OCTETS {
            return Err(MessageError::Value("one of its blocks is too long").into());
        }
        if n == 0 {
            self.step = Step::Digest;
            return Ok(true);
        }
        let Some(block) = self.inbox.take(n) else {
            self.inbox.untake(4);
            return Ok(false);
        };
        sink.write(block);
        self.given += n as u64;
        Ok(true)
    }

    fn tell(&mut self, verdict: Verdict, failed: Option<TransferError>) {
        self.out.extend_from_slice(&verdict.octets());
        self.failed = failed;
        self.step = Step::Done;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::FlowConfig;
    use crate::message::Offer;

    /// A receiver for `folder`, its flow, and who else writes there.
    fn receiving(folder: &std::path::Path) -> (Receiving, Flow, Claims) {
        let place = Place::Folder {
            path: folder.to_owned(),
            replace: false,
        };
        let peer = ([127, 0, 0, 1], 1).into();
        let claims = Claims::new(Duration::from_ms(1_000));
        (
            Receiving::new(&place, peer),
            Flow::listener(&FlowConfig::default(), ([127, 0, 0, 1], 7_800).into()),
            claims,
        )
    }

    impl Receiving {
        /// All has come, and goes through this sink.
        pub fn verifying(peer: SocketAddr, mut sink: Sink) -> Receiving {
            while !matches!(sink.news(), Ok(Some(News::Begun(..)))) {
                std::thread::yield_now();
            }
            sink.keep([0; 32]);
            Receiving {
                sink: Some(sink),
                step: Step::Keeping,
                ..Receiving::new(&Place::Stdout, peer)
            }
        }
    }

    /// What a disk has taken before it was full, not what waited for it.
    #[test]
    fn what_is_told_is_what_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (mut r, mut flow, mut claims) = receiving(folder.path());
        let sink = Sink::full_after(1_500);
        r.name = "f3m".into();
        r.written = sink.written();
        (r.sink, r.step) = (Some(sink), Step::Opening);
        r.inbox.push(&0_u64.to_be_bytes());
        for _ in 0..4 {
            r.inbox.push(&1_000_u32.to_be_bytes());
            r.inbox.push(&[7; 1_000]);
        }
        while r.failed.is_none() {
            let _ = r.turn(Instant::ZERO, &mut flow, Instant::ZERO, &mut claims);
        }
        assert_eq!(r.progress(&flow).done, 1_500);
        // who shows it has named it
        let why = r.failed.unwrap().to_string();
        assert!(why.starts_with("it cannot be kept: "), "{why}");
        assert!(!why.contains("f3m"), "{why}");
    }

    /// Lets a sender that was told of five octets say this; what comes of it.
    fn heard(said: &[u8]) -> Result<bool, TransferError> {
        let folder = tempfile::tempdir().unwrap();
        let (mut r, mut flow, mut claims) = receiving(folder.path());
        (r.sink, r.step, r.there) = (Some(Sink::full_after(1 << 20)), Step::From, 5);
        r.inbox.push(said);
        r.turn(Instant::ZERO, &mut flow, Instant::ZERO, &mut claims)
    }

    #[test]
    fn only_what_is_kept_is_gone_on_from() {
        for (from, taken) in [(0_u64, true), (5, true), (4, false), (6, false)] {
            let result = heard(&from.to_be_bytes());
            assert_eq!(result.is_ok(), taken, "{from}: {result:?}");
        }
    }

    #[test]
    fn a_block_has_its_longest() {
        for (octets, taken) in [(MAX_BLOCK_OCTETS, true), (MAX_BLOCK_OCTETS + 1, false)] {
            let length = (octets as u32).to_be_bytes();
            let result = heard(&[&[0; 8][..], &length, &[7; 10]].concat());
            assert_eq!(result.is_ok(), taken, "{octets}: {result:?}");
        }
    }

    /// Nobody types such names; a stranger's may give orders to the terminal of who receives.
    #[test]
    fn a_name_that_is_not_plain_is_refused_and_shown_harmless() {
        for name in ["\x1b]0;owned\x07x", "a\u{202e}gpj.exe", "a\nb"] {
            let folder = tempfile::tempdir().unwrap();
            let (mut r, mut flow, mut claims) = receiving(folder.path());
            let name = name.to_owned();
            r.inbox.push(&Offer { name, size: None }.octets());
            for _ in 0..2 {
                let _ = r.turn(Instant::ZERO, &mut flow, Instant::ZERO, &mut claims);
            }
            let Some(Err(why)) = r.verdict() else {
                panic!("it was taken")
            };
            let shown = format!("{} {why}", r.name);
            assert!(shown.chars().all(crate::plain::is_plain), "{shown:?}");
            assert!(shown.contains("--name"), "{shown}");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }
}
