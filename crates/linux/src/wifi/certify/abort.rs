//! Whether a request can be taken back, tried through the host itself: while it holds it back, and after the kernel
//! has it.

use std::sync::atomic::AtomicBool;

use radio::{AdapterId, Attribute, Duration, Event, Instant, Outcome, Protocol, Radio, Token, TxHow};

use super::super::adapter::Adapter;
use super::super::desk::now;
use super::super::error::Error;
use super::super::host::{Host, HostConfig};

/// Requests of each kind.
pub(super) const REQUESTS: usize = 16;
/// Until when the first kind is held back; by then it is long taken back.
const HOLD: Duration = Duration::from_ms(50);
/// When all must have ended.
const END: Duration = Duration::from_ms(200);

/// What became of requests that were taken back at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Aborts {
    /// Those that ended as aborted.
    pub aborted: usize,
    /// Frames that the second radio heard.
    pub heard: usize,
}

struct Script {
    frames: Vec<Vec<u8>>,
    hold: bool,
    open: Vec<Token>,
    seen: Aborts,
    listens: bool,
}

impl Protocol for Script {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Start => {
                if self.listens {
                    let token = radio.token();
                    radio.set(token, AdapterId(1), Attribute::Promiscuous(true));
                }
                let mut how = TxHow::one_shot(frame::Rate::OFDM_6);
                if self.hold {
                    how = how.not_before(now + HOLD);
                }
                for frame in &self.frames {
                    let token = radio.token();
                    radio.request(token, frame, &how);
                    self.open.push(token);
                }
                for token in &self.open {
                    radio.abort(*token);
                }
            }
            Event::Confirm(c) => self.seen.aborted += usize::from(c.outcome == Outcome::Aborted),
            Event::Indication(i) if i.adapter == AdapterId(1) => {
                self.seen.heard += usize::from(self.frames.iter().any(|f| f[24..] == i.frame[24..]));
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// Makes requests and takes them back at once; with `hold` while the host has them. Gives the radios back by dropping
/// them: open them anew.
pub(super) fn aborts(
    radios: Vec<Adapter>,
    frames: Vec<Vec<u8>>,
    hold: bool,
    stop: &AtomicBool,
) -> Result<Aborts, Error> {
    let mut script = Script {
        frames,
        hold,
        open: Vec::new(),
        seen: Aborts::default(),
        listens: radios.len() > 1,
    };
    let mut host = Host::new(radios, HostConfig::default())?;
    host.run(&mut script, &mut (), Some(now() + END), stop)?;
    host.finish(&mut script, &mut ())?;
    Ok(script.seen)
}
