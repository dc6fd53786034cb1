//! The calls of one end: when they are due, and how a handshake that came to nothing is begun anew.

use protocols::transport::Failure;
use radio::{Duration, Instant};
use snow::HandshakeState;

use super::key::Key;
use super::{CALL, builder, handshake};

/// From one call to the next at most; the first is repeated after 1 s.
const MOST_WAIT: Duration = Duration::from_ms(8_000);

/// The calls until a packet of the other end has come: one that was answered is not repeated, a new one is made.
pub(super) struct Calling {
    key: Key,
    patience: Duration,
    /// What the answer to the call is read with; `None` once there was one.
    noise: Option<Box<HandshakeState>>,
    call: Vec<u8>,
    calls: u32,
    at: Instant,
    /// When it gives up; known from the first call on.
    until: Option<Instant>,
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
        if now >= until {
            return Err(Failure::NoAnswer);
        }
        let wait = Duration::from_ms(1_000 << self.calls).min(MOST_WAIT);
        self.at = now.after(wait).min(until);
        self.calls = (self.calls + 1).min(8);
        if self.noise.is_none() {
            // as long as the system has no random numbers there is no new one
            let Ok((noise, call)) = first(&self.key) else {
                return Ok(None);
            };
            (self.noise, self.call) = (Some(noise), call);
        }
        Ok(Some(&self.call))
    }

    /// Whether it has taken too long.
    pub fn is_over(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now >= until)
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
        self.noise.take()
    }
}
