//! The end that sends: offer, answer, content, verdict.

use std::fs::File;

use protocols::transport::{State, Transport};
use radio::Instant;

use crate::flow::Flow;
use crate::ledger::Ledger;
use crate::message::{Answer, Inbox, MAX_NAME_OCTETS, Offer, Verdict};
use crate::plain::plain;
use crate::source::{Next, Source};
use crate::{Progress, TransferError};

/// What is to be sent.
#[derive(Debug)]
pub enum Content {
    /// A file; what the other end has of it is left out.
    File(File),
    /// A pipe or terminal, whose length nobody knows.
    Stream(Source),
}

enum Step {
    Answer,
    Content,
    Verdict,
    Done,
}

/// See the [module](self).
pub struct Sending {
    content: Option<Content>,
    source: Option<Source>,
    size: Option<u64>,
    step: Step,
    /// Octets to write, and how many of them are written.
    out: (Vec<u8>, usize),
    inbox: Inbox,
    ledger: Ledger,
    read: u64,
    resumed: u64,
    /// Octets of the rest that the other end has.
    arrived: u64,
}

impl Sending {
    /// Content with this name.
    ///
    /// # Errors
    /// The file does not tell its length, or the name is longer than [`MAX_NAME_OCTETS`].
    pub fn new(name: &str, content: Content) -> Result<Sending, TransferError> {
        if name.len() > MAX_NAME_OCTETS {
            return Err(TransferError::LongName(name.len()));
        }
        let size = match &content {
            Content::File(file) => Some(file.metadata().map_err(|e| TransferError::io(name, e))?.len()),
            Content::Stream(_) => None,
        };
        let offer = Offer {
            name: name.to_owned(),
            size,
        };
        let mut ledger = Ledger::default();
        ledger.add(offer.octets().len() as u64, 0);
        Ok(Sending {
            content: Some(content),
            source: None,
            size,
            step: Step::Answer,
            out: (offer.octets(), 0),
            inbox: Inbox::default(),
            ledger,
            read: 0,
            resumed: 0,
            arrived: 0,
        })
    }

    /// How far it is.
    pub fn progress(&self, flow: &Flow) -> Progress {
        Progress {
            done: self.resumed + self.arrived,
            resumed: self.resumed,
            total: self.size,
            ..flow.progress()
        }
    }

    /// Whether anything has gone into a flow: from then on it cannot go into another one.
    pub fn has_begun(&self) -> bool {
        !matches!(self.step, Step::Answer) || self.out.1 > 0
    }

    /// True if it waits for a source, which does not wake the loop.
    pub fn waits_for_source(&self) -> bool {
        matches!(self.step, Step::Content)
    }

    /// Goes on as far as it can. True when all is done, and the verdict was good.
    ///
    /// # Errors
    /// Why it cannot go on.
    pub fn turn(&mut self, now: Instant, flow: &mut Flow) -> Result<bool, TransferError> {
        self.arrived = self.ledger.arrived(flow.acknowledged_octets());
        self.listen(now, flow)?;
        loop {
            if matches!(self.step, Step::Done) {
                return Ok(true);
            }
            // a connection that is over takes nothing, so what is to be written would wait for ever
            self.state(flow)?;
            if !self.drain(now, flow) {
                return Ok(false);
            }
            match self.step {
                Step::Answer | Step::Verdict | Step::Done => return Ok(false),
                Step::Content => match self.next()? {
                    Next::From(octets) => {
                        (self.read, self.resumed) = (octets, octets);
                        self.give(&octets.to_be_bytes(), &[]);
                    }
                    Next::Block(block) => {
                        self.give(&(block.len() as u32).to_be_bytes(), &block);
                        self.read += block.len() as u64;
                    }
                    Next::Wait => return Ok(false),
                    Next::End(digest) => {
                        if let Some(said) = self.size.filter(|said| *said != self.read) {
                            let sent = self.read;
                            return Err(TransferError::Changed { said, sent });
                        }
                        // no block any more
                        self.give(&[&0_u32.to_be_bytes()[..], &digest].concat(), &[]);
                        self.step = Step::Verdict;
                    }
                },
            }
        }
    }

    /// Whether the connection still is one.
    fn state(&self, flow: &Flow) -> Result<(), TransferError> {
        match flow.state() {
            State::Failed(why) => Err(why.into()),
            _ if flow.is_exhausted() => Err(crate::message::MessageError::Short.into()),
            _ => Ok(()),
        }
    }

    fn next(&mut self) -> Result<Next, TransferError> {
        let Some(source) = &mut self.source else {
            return Ok(Next::Wait);
        };
        source
            .take()
            .map_err(|e| TransferError::io("it cannot be read", e))
    }

    /// This is to be written next.
    fn give(&mut self, framing: &[u8], content: &[u8]) {
        self.ledger.add(framing.len() as u64, content.len() as u64);
        self.out = ([framing, content].concat(), 0);
    }

    /// Writes what is to be written; true when all of it is.
    fn drain(&mut self, now: Instant, flow: &mut Flow) -> bool {
        let (octets, written) = &mut self.out;
        *written += flow.write(now, &octets[*written..]);
        *written == octets.len()
    }

    fn listen(&mut self, now: Instant, flow: &mut Flow) -> Result<(), TransferError> {
        let mut octets = [0; 1_024];
        loop {
            let n = flow.read(now, &mut octets);
            if n == 0 {
                break;
            }
            self.inbox.push(&octets[..n]);
        }
        match self.step {
            Step::Answer => {
                if let Some(answer) = self.inbox.answer()? {
                    self.begin(answer)?;
                }
            }
            // a receiver that cannot keep it says so early
            Step::Content | Step::Verdict => match self.inbox.verdict()? {
                None => {}
                Some(Verdict::NotKept(reason)) => return Err(TransferError::Refused(plain(&reason))),
                Some(Verdict::Differs) => return Err(TransferError::Damaged),
                Some(Verdict::Same) => {
                    self.arrived = self.read - self.resumed;
                    self.step = Step::Done;
                    flow.finish(now);
                }
            },
            Step::Done => {}
        }
        Ok(())
    }

    /// The receiver has answered: goes to where it is, if it has the same beginning.
    fn begin(&mut self, answer: Answer) -> Result<(), TransferError> {
        let theirs = match answer {
            Answer::No(reason) => return Err(TransferError::Refused(plain(&reason))),
            Answer::Have { octets, digest } => Some((octets, digest)),
            Answer::Begin => None,
        };
        self.source = match self.content.take() {
            Some(Content::File(file)) => Some(Source::file(file, theirs)),
            Some(Content::Stream(source)) => Some(source),
            None => return Err(crate::message::MessageError::Value("it answered twice").into()),
        };
        self.step = Step::Content;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::FlowConfig;

    /// A stranger's reason may give orders to the terminal of who sends.
    #[test]
    fn a_reason_is_shown_harmless() {
        let reason = || "\x1b[2J\x1b]0;owned\x07 \u{202e}disk full\n".to_owned();
        let octets = [
            (Step::Answer, Answer::No(reason()).octets()),
            (Step::Verdict, Verdict::NotKept(reason()).octets()),
        ];
        for (step, octets) in octets {
            let file = tempfile::tempfile().unwrap();
            let mut sending = Sending::new("x", Content::File(file)).unwrap();
            sending.step = step;
            sending.inbox.push(&octets);
            let mut flow = Flow::caller(&FlowConfig::default(), ([127, 0, 0, 1], 7_800).into());
            let why = sending.turn(Instant::ZERO, &mut flow).unwrap_err().to_string();
            assert!(why.contains("disk full"), "{why}");
            assert!(why.chars().all(crate::plain::is_plain), "{why:?}");
        }
    }

    /// Why it does not go on when the other end has said that it may begin.
    fn what_goes_wrong(sending: &mut Sending) -> TransferError {
        let mut flow = Flow::caller(&FlowConfig::default(), ([127, 0, 0, 1], 7_800).into());
        sending.inbox.push(&Answer::Begin.octets());
        for _ in 0..6_000 {
            if let Err(why) = sending.turn(Instant::ZERO, &mut flow) {
                return why;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("nothing does")
    }

    /// Who shows it has named it.
    #[test]
    fn a_file_that_cannot_be_read_is_not_named_twice() {
        // a folder is none that can be read
        let folder = File::open("/").unwrap();
        let mut sending = Sending::new("f3m", Content::File(folder)).unwrap();
        let why = what_goes_wrong(&mut sending).to_string();
        assert!(
            why.starts_with("it cannot be read: ") && !why.contains("f3m"),
            "{why}"
        );
    }

    #[test]
    fn a_file_that_changes_while_it_is_sent_is_told() {
        for octets in [5, 20] {
            let file = tempfile::tempfile().unwrap();
            file.set_len(10).unwrap();
            let mut sending = Sending::new("x", Content::File(file.try_clone().unwrap())).unwrap();
            file.set_len(octets).unwrap();
            let why = what_goes_wrong(&mut sending);
            assert!(
                matches!(why, TransferError::Changed { said: 10, sent } if sent == octets),
                "{why}"
            );
        }
    }

    /// It would be another one at the other end.
    #[test]
    fn a_name_that_no_file_can_have_is_refused() {
        let made = |name: &str| Sending::new(name, Content::File(tempfile::tempfile().unwrap()));
        assert!(made(&"a".repeat(MAX_NAME_OCTETS)).is_ok());
        let why = made(&"ü".repeat(128)).err().unwrap().to_string();
        assert!(why.contains("256 octets") && why.contains("--name"), "{why}");
    }

    /// The digest of what the other end has takes hours; the connection goes on.
    #[test]
    fn what_the_other_end_has_is_read_apart() {
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let file = tempfile::tempfile().unwrap();
            file.set_len(1 << 42).unwrap();
            let mut sending = Sending::new("long", Content::File(file)).unwrap();
            let mut flow = Flow::caller(&FlowConfig::default(), ([127, 0, 0, 1], 7_800).into());
            let has = Answer::Have {
                octets: 1 << 41,
                digest: [0; 32],
            };
            sending.inbox.push(&has.octets());
            let _ = tell.send(sending.turn(Instant::ZERO, &mut flow));
        });
        let turn = told.recv_timeout(std::time::Duration::from_secs(60));
        assert!(matches!(turn, Ok(Ok(false))), "{turn:?}");
    }
}
