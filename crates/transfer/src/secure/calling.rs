//! The calls of one end: when they are due, and how a handshake that came to nothing is begun anew.

use protocols::transport::Failure;
use radio::{Duration, Instant};
use snow::HandshakeState;

use super::key::Key;
use super::{CALL, builder, handshake};

/// From one call to the next on average, as the transport calls: that one is lost says nothing about congestion.
const WAIT_MS: u64 = 1_000;

/// The calls until a packet of the other end has come: one that was answered is not repeated, a new one is made.
pub(super) struct Calling {
    key: Key,
    patience: Duration,
    /// What the answer to the call is read with; `None` once there was one.
    noise: Option<Box<HandshakeState>>,
    call: Vec<u8>,
    calls: usize,
    at: Instant,
    /// When it gives up, if none was answered; known from the first call on.
    until: Option<Instant>,
    was_answered: bool,
}

/// A handshake of this end, and its first message.
fn first(key: &Key) -> Result<(Box<HandshakeState>, Vec<u8>), snow::Error> {
    let mut noise = builder(key)?.build_initiator()?;
    let mut message = [0; 256];
    let n = noise.write_message(&[], &mut message)?;
    Ok((Box::new(noise), handshake(CALL, &message[..n])))
}

impl Calling {
    /// Calls for as long as `patience` says.
    pub fn new(key: &Key, patience: Duration) -> Result<Calling, snow::Error> {
        let (noise, call) = first(key)?;
        Ok(Calling {
            key: *key,
            patience,
            noise: Some(noise),
            call,
            calls: 0,
            at: Instant::ZERO,
            until: None,
            was_answered: false,
        })
    }

    /// The call, when it is due.
    ///
    /// # Errors
    /// It has taken too long.
    pub fn call(&mut self, now: Instant) -> Result<Option<&[u8]>, Failure> {
        if now < self.at {
            return Ok(None);
        }
        let until = *self.until.get_or_insert(now.after(self.patience));
        if self.was_answered {
            // whoever has answered once is there, and how long its silence is borne is the transport's affair
            self.at = now.after(self.wait());
        } else if now < until {
            self.at = now.after(self.wait()).min(until);
        } else {
            return Err(Failure::NoAnswer);
        }
        self.calls += 1;
        if self.noise.is_none() {
            // as long as the system has no random numbers there is no new one
            let Ok((noise, call)) = first(&self.key) else {
                return Ok(None);
            };
            (self.noise, self.call) = (Some(noise), call);
        }
        Ok(Some(&self.call))
    }

    /// 3/4 to 5/4 of the mean, drawn by an octet of the call, which has random ones: callers that began together part.
    fn wait(&self) -> Duration {
        let octet = self.call.iter().rev().nth(self.calls % 16).copied().unwrap_or(0);
        Duration::from_us(WAIT_MS * 750 + WAIT_MS * 500 * u64::from(octet) / 255)
    }

    /// When the next one is due.
    pub fn deadline(&self) -> Instant {
        self.at
    }

    /// The handshake that this answer brings to its end, if it is one to the latest call.
    pub fn answered(&mut self, message: &[u8], out: &mut [u8]) -> Option<Box<HandshakeState>> {
        // a forged answer must not end the handshake: a failed read leaves it as it is
        let noise = self.noise.as_mut()?;
        noise.read_message(message, out).ok()?;
        self.was_answered = true;
        self.noise.take()
    }
}
