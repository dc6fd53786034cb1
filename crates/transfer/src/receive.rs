//! The end that receives: offer, answer, content, verdict.

use protocols::transport::{State, Transport};
use radio::Instant;

use crate::flow::Flow;
use crate::message::{Answer, Inbox, MAX_BLOCK_OCTETS, MessageError, Verdict};
use crate::sink::{Place, Sink, digest};
use crate::{Progress, TransferError};

/// Octets of the stream that are taken in ahead of the disk.
const MAX_INBOX: usize = 4 * MAX_BLOCK_OCTETS;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Offer,
    From,
    Block,
    Digest,
    Keeping,
    Done,
}

/// See the [module](self).
pub struct Receiving {
    place: Place,
    sink: Option<Sink>,
    hasher: blake3::Hasher,
    step: Step,
    inbox: Inbox,
    out: Vec<u8>,
    total: Option<u64>,
    done: u64,
    resumed: u64,
    failed: Option<TransferError>,
    /// Name of the content, once it is known.
    pub name: String,
}

impl Receiving {
    /// Will go to `place`.
    pub fn new(place: &Place) -> Receiving {
        Receiving {
            place: place.clone(),
            sink: None,
            hasher: blake3::Hasher::new(),
            step: Step::Offer,
            inbox: Inbox::default(),
            out: Vec::new(),
            total: None,
            done: 0,
            resumed: 0,
            failed: None,
            name: String::new(),
        }
    }

    /// How far it is.
    pub fn progress(&self, flow: &Flow) -> Progress {
        let (delay_us, spacing_us, resent) = flow.numbers();
        Progress {
            done: self.done,
            resumed: self.resumed,
            total: self.total,
            delay_us,
            spacing_us,
            resent,
        }
    }

    /// True if it waits for a disk, which does not wake the loop.
    pub fn waits_for_sink(&self) -> bool {
        matches!(self.step, Step::Keeping) || self.inbox.len() >= MAX_INBOX
    }

    /// Goes on as far as it can. True when all is done and the sender was told.
    ///
    /// # Errors
    /// Why it cannot go on, or what the sender was told.
    pub fn turn(&mut self, now: Instant, flow: &mut Flow) -> Result<bool, TransferError> {
        let mut octets = [0; 1 << 14];
        while self.inbox.len() < MAX_INBOX {
            let n = flow.read(now, &mut octets);
            if n == 0 {
                break;
            }
            self.inbox.push(&octets[..n]);
        }
        while self.step != Step::Done && self.advance()? {}
        if let (Some(sink), true) = (&mut self.sink, self.step != Step::Done)
            && let Some(ended) = sink.ended()
        {
            self.end(ended);
        }
        let n = flow.write(now, &self.out);
        self.out.drain(..n);
        if self.step == Step::Done && self.out.is_empty() {
            flow.finish(now);
            let told = matches!(flow.state(), State::Lingering | State::Closed) || flow.is_exhausted();
            return match self.failed.take() {
                Some(why) if told || flow.state().is_over() => Err(why),
                why => {
                    self.failed = why;
                    Ok(told || flow.state().is_over())
                }
            };
        }
        match flow.state() {
            State::Failed(why) => Err(why.into()),
            _ if flow.is_exhausted() && self.inbox.len() < MAX_INBOX && self.step != Step::Done => {
                match self.step {
                    Step::Keeping => Ok(false),
                    _ => Err(MessageError::Short.into()),
                }
            }
            _ => Ok(false),
        }
    }

    /// Takes one thing from the inbox; false if there is not enough in it, or no room where it goes.
    fn advance(&mut self) -> Result<bool, TransferError> {
        match self.step {
            Step::Offer => {
                let Some(offer) = self.inbox.offer()? else {
                    return Ok(false);
                };
                self.name.clone_from(&offer.name);
                self.total = offer.size;
                match Sink::open(&self.place, &offer.name) {
                    Err(reason) => {
                        self.out = Answer::No(reason.clone()).octets();
                        self.failed = Some(TransferError::Refused(format!("not taken: {reason}")));
                        self.step = Step::Done;
                    }
                    Ok(sink) => {
                        let (octets, hasher) = &sink.begun;
                        self.out = match octets {
                            0 => Answer::Begin.octets(),
                            octets => Answer::Have {
                                octets: *octets,
                                digest: digest(hasher),
                            }
                            .octets(),
                        };
                        self.sink = Some(sink);
                        self.step = Step::From;
                    }
                }
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
                } else if from != sink.begun.0 {
                    return Err(MessageError::Value("it goes on from where nobody is").into());
                }
                self.hasher = sink.begun.1.clone();
                (self.done, self.resumed) = (from, from);
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
                if digest(&self.hasher) == theirs {
                    sink.keep();
                    self.step = Step::Keeping;
                } else {
                    // what is wrong must not be gone on from
                    sink.restart();
                    self.tell(Verdict::Differs, Some(TransferError::Damaged));
                }
            }
            Step::Keeping | Step::Done => return Ok(false),
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
        self.hasher.update(block);
        sink.write(block);
        self.done += n as u64;
        Ok(true)
    }

    /// Writing has ended.
    fn end(&mut self, ended: std::io::Result<()>) {
        match ended {
            Ok(()) => self.tell(Verdict::Same, None),
            Err(e) => {
                let why = TransferError::io(&self.name, e);
                self.tell(Verdict::NotKept(why.to_string()), Some(why));
            }
        }
    }

    fn tell(&mut self, verdict: Verdict, failed: Option<TransferError>) {
        self.out.extend_from_slice(&verdict.octets());
        self.failed = failed;
        self.step = Step::Done;
    }
}
