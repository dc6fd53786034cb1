//! What the two ends say to each other on the stream, version 1. Numbers are big-endian.
//!
//! ```text
//! sender      "sdmacft1", octets of the name (u16), name, 1 if the size is known (u8), size (u64)
//! receiver    0                                             : from the beginning
//!             1, octets already there (u64), their BLAKE3   : go on from here
//!             2, octets of the reason (u16), reason         : no
//! sender      octets left out (u64): what the receiver said, or 0 if its beginning is another one
//!             the rest of the content as blocks: octets (u32, 1 to 65536), content; the last one has 0
//!             BLAKE3 of the whole content
//! receiver    0: it is the same; 1: it is not; 2, octets of the reason (u16), reason: it could not be kept
//! ```

/// Octets of a BLAKE3 digest.
pub const DIGEST_OCTETS: usize = 32;
/// Octets of a block at most.
pub const MAX_BLOCK_OCTETS: usize = 1 << 16;
/// Octets of a name at most: what file systems allow.
pub const MAX_NAME_OCTETS: usize = 255;
const MAX_REASON_OCTETS: usize = 1_000;
const MAGIC: &[u8; 8] = b"sdmacft1";

/// A digest.
pub type Digest = [u8; DIGEST_OCTETS];

/// The first message of the sender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Name without folders.
    pub name: String,
    /// Octets of the content; `None`: not known before its end.
    pub size: Option<u64>,
}

/// The answer of the receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// From the beginning.
    Begin,
    /// It has the first octets already.
    Have {
        /// How many.
        octets: u64,
        /// Their digest.
        digest: Digest,
    },
    /// No.
    No(String),
}

/// The last message of the receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The content has the sender's digest, and is where it should be.
    Same,
    /// It has another one.
    Differs,
    /// It could not be kept.
    NotKept(String),
}

/// What is wrong with a message.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MessageError {
    /// It does not begin as ours do.
    #[error("its first octets are not those of a file transfer of this version")]
    Magic,
    /// Something has a value that it cannot have.
    #[error("{0}")]
    Value(&'static str),
    /// The stream ended in the middle.
    #[error("it ended in the middle of a message")]
    Short,
}

/// Reads messages from octets that come bit by bit: `None` means that more are needed.
#[derive(Debug, Default)]
pub struct Inbox {
    octets: Vec<u8>,
    taken: usize,
}

impl Inbox {
    /// More octets.
    pub fn push(&mut self, octets: &[u8]) {
        if self.taken > 0 && self.taken * 2 >= self.octets.len() {
            self.octets.drain(..self.taken);
            self.taken = 0;
        }
        self.octets.extend_from_slice(octets);
    }

    /// Octets that wait.
    pub fn len(&self) -> usize {
        self.octets.len() - self.taken
    }

    /// True if none do.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next `n` octets.
    pub fn take(&mut self, n: usize) -> Option<&[u8]> {
        let from = self.taken;
        (self.len() >= n).then(|| {
            self.taken += n;
            &self.octets[from..from + n]
        })
    }

    /// Puts the last `n` octets that were taken back.
    pub fn untake(&mut self, n: usize) {
        self.taken = self.taken.saturating_sub(n);
    }

    /// Reads a message; what is not complete stays.
    fn message<T>(
        &mut self,
        read: impl FnOnce(&mut Cursor<'_>) -> Option<Result<T, MessageError>>,
    ) -> Result<Option<T>, MessageError> {
        let mut cursor = Cursor(&self.octets[self.taken..]);
        let before = cursor.0.len();
        match read(&mut cursor) {
            None => Ok(None),
            Some(Err(e)) => Err(e),
            Some(Ok(value)) => {
                self.taken += before - cursor.0.len();
                Ok(Some(value))
            }
        }
    }

    /// The next message, an offer.
    ///
    /// # Errors
    /// It is none.
    pub fn offer(&mut self) -> Result<Option<Offer>, MessageError> {
        let begun = &self.octets[self.taken..];
        let n = begun.len().min(MAGIC.len());
        if begun[..n] != MAGIC[..n] {
            return Err(MessageError::Magic);
        }
        self.message(|c| {
            c.take(MAGIC.len())?;
            let name = match c.text(MAX_NAME_OCTETS, "its name is longer than 255 octets")? {
                Ok(name) => name,
                Err(e) => return Some(Err(e)),
            };
            let known = c.u8()?;
            let size = c.u64()?;
            Some(match known {
                0 => Ok(Offer { name, size: None }),
                1 => Ok(Offer {
                    name,
                    size: Some(size),
                }),
                _ => Err(MessageError::Value("its size is neither known nor unknown")),
            })
        })
    }

    /// The next message, an answer.
    ///
    /// # Errors
    /// It is none.
    pub fn answer(&mut self) -> Result<Option<Answer>, MessageError> {
        self.message(|c| {
            Some(Ok(match c.u8()? {
                0 => Answer::Begin,
                1 => Answer::Have {
                    octets: c.u64()?,
                    digest: c.digest()?,
                },
                2 => match c.text(MAX_REASON_OCTETS, "its reason is too long")? {
                    Ok(reason) => Answer::No(reason),
                    Err(e) => return Some(Err(e)),
                },
                _ => return Some(Err(MessageError::Value("its answer is none that is known"))),
            }))
        })
    }

    /// The next message, a verdict.
    ///
    /// # Errors
    /// It is none.
    pub fn verdict(&mut self) -> Result<Option<Verdict>, MessageError> {
        self.message(|c| {
            Some(Ok(match c.u8()? {
                0 => Verdict::Same,
                1 => Verdict::Differs,
                2 => match c.text(MAX_REASON_OCTETS, "its reason is too long")? {
                    Ok(reason) => Verdict::NotKept(reason),
                    Err(e) => return Some(Err(e)),
                },
                _ => return Some(Err(MessageError::Value("its verdict is none that is known"))),
            }))
        })
    }

    /// The next number of 64 bits.
    pub fn u64(&mut self) -> Option<u64> {
        let octets = self.take(8)?;
        Some(u64::from_be_bytes(octets.try_into().ok()?))
    }

    /// The next number of 32 bits.
    pub fn u32(&mut self) -> Option<u32> {
        let octets = self.take(4)?;
        Some(u32::from_be_bytes(octets.try_into().ok()?))
    }

    /// The next digest.
    pub fn digest(&mut self) -> Option<Digest> {
        self.take(DIGEST_OCTETS)?.try_into().ok()
    }
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n)?;
        self.0 = tail;
        Some(head)
    }
    fn u8(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }
    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }
    fn digest(&mut self) -> Option<Digest> {
        self.take(DIGEST_OCTETS)?.try_into().ok()
    }
    fn text(&mut self, most: usize, too_long: &'static str) -> Option<Result<String, MessageError>> {
        let n = usize::from(u16::from_be_bytes(self.take(2)?.try_into().ok()?));
        if n > most {
            return Some(Err(MessageError::Value(too_long)));
        }
        let octets = self.take(n)?;
        Some(match std::str::from_utf8(octets) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(MessageError::Value("its text is not UTF-8")),
        })
    }
}

fn text(out: &mut Vec<u8>, text: &str, most: usize) {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    out.extend_from_slice(&(end as u16).to_be_bytes());
    out.extend_from_slice(&text.as_bytes()[..end]);
}

impl Offer {
    /// As it is sent. A name that is too long is cut off; [`Sending`](crate::send::Sending) takes none.
    pub fn octets(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        text(&mut out, &self.name, MAX_NAME_OCTETS);
        out.push(u8::from(self.size.is_some()));
        out.extend_from_slice(&self.size.unwrap_or(0).to_be_bytes());
        out
    }
}

impl Answer {
    /// As it is sent.
    pub fn octets(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Answer::Begin => out.push(0),
            Answer::Have { octets, digest } => {
                out.push(1);
                out.extend_from_slice(&octets.to_be_bytes());
                out.extend_from_slice(digest);
            }
            Answer::No(reason) => {
                out.push(2);
                text(&mut out, reason, MAX_REASON_OCTETS);
            }
        }
        out
    }
}

impl Verdict {
    /// As it is sent.
    pub fn octets(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Verdict::Same => out.push(0),
            Verdict::Differs => out.push(1),
            Verdict::NotKept(reason) => {
                out.push(2);
                text(&mut out, reason, MAX_REASON_OCTETS);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Pushes octet by octet; reads after each.
    fn slowly<T>(octets: &[u8], read: impl Fn(&mut Inbox) -> Result<Option<T>, MessageError>) -> T {
        let mut inbox = Inbox::default();
        for (i, octet) in octets.iter().enumerate() {
            inbox.push(&[*octet]);
            if let Some(value) = read(&mut inbox).unwrap() {
                assert_eq!((i + 1, inbox.len()), (octets.len(), 0));
                return value;
            }
        }
        panic!("never complete");
    }

    proptest! {
        #[test]
        fn there_and_back(name in "\\PC{0,60}", size: Option<u64>, octets: u64, digest: Digest) {
            let offer = Offer { name: name.clone(), size };
            prop_assert_eq!(slowly(&offer.octets(), Inbox::offer), offer);
            for answer in [Answer::Begin, Answer::Have { octets, digest }, Answer::No(name.clone())] {
                prop_assert_eq!(slowly(&answer.octets(), Inbox::answer), answer);
            }
            for verdict in [Verdict::Same, Verdict::Differs, Verdict::NotKept(name.clone())] {
                prop_assert_eq!(slowly(&verdict.octets(), Inbox::verdict), verdict);
            }
        }

        #[test]
        fn anything(octets: Vec<u8>) {
            for read in [|i: &mut Inbox| i.offer().is_ok(), |i: &mut Inbox| i.answer().is_ok(), |i: &mut Inbox| i.verdict().is_ok()] {
                let mut inbox = Inbox::default();
                inbox.push(&octets);
                read(&mut inbox);
            }
        }
    }

    #[test]
    fn strangers_are_known_at_once() {
        let mut inbox = Inbox::default();
        inbox.push(b"GET");
        assert_eq!(inbox.offer(), Err(MessageError::Magic));
        let mut inbox = Inbox::default();
        inbox.push(b"sdmac");
        assert_eq!(inbox.offer(), Ok(None));
    }

    #[test]
    fn long_texts_are_cut_between_letters() {
        let long = "ü".repeat(200);
        let mut inbox = Inbox::default();
        inbox.push(
            &Offer {
                name: long,
                size: None,
            }
            .octets(),
        );
        assert_eq!(inbox.offer().unwrap().unwrap().name.len(), 254);
    }
}
