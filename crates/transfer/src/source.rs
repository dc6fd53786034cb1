//! Octets to send: a thread reads them ahead and adds up their digest, so that a slow disk, a quiet terminal or a long file never
//! stops the connection.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;

use crate::message::{Digest, MAX_BLOCK_OCTETS};
use crate::sink::{digest, digest_of};

/// Messages that are read ahead.
const AHEAD: usize = 16;

/// What a source has.
#[derive(Debug)]
pub enum Next {
    /// The first message: so many octets are left out, because the other end has them.
    From(u64),
    /// The next block; not empty.
    Block(Vec<u8>),
    /// Nothing yet.
    Wait,
    /// Nothing any more: the digest of everything, of what was left out, too.
    End(Digest),
}

/// See the [module](self).
#[derive(Debug)]
pub struct Source {
    messages: Receiver<io::Result<Next>>,
}

impl Source {
    /// Reads from `from` in a thread of its own. The thread ends with the source, or, if it waits for input then, with
    /// the program.
    pub fn new(from: impl Read + Send + 'static) -> Source {
        Source::begin(from, |_| Ok((0, blake3::Hasher::new())))
    }

    /// Reads a file. The other end has `theirs`: so many octets with this digest; they are left out if the file begins with them.
    pub fn file(file: File, theirs: Option<(u64, Digest)>) -> Source {
        Source::begin(file, move |file| {
            let mut hasher = blake3::Hasher::new();
            if let Some((octets, theirs)) = theirs {
                let n = digest_of(file, octets, &mut hasher, || false)?;
                if n == octets && digest(&hasher) == theirs {
                    return Ok((octets, hasher));
                }
                file.seek(SeekFrom::Start(0))?;
            }
            Ok((0, blake3::Hasher::new()))
        })
    }

    fn begin<R: Read + Send + 'static>(
        mut from: R,
        start: impl FnOnce(&mut R) -> io::Result<(u64, blake3::Hasher)> + Send + 'static,
    ) -> Source {
        let (give, messages) = sync_channel(AHEAD);
        thread::spawn(move || {
            let all = start(&mut from).and_then(|(left_out, hasher)| {
                // who does not take it has gone
                if give.send(Ok(Next::From(left_out))).is_ok() {
                    pump(from, hasher, &give)?;
                }
                Ok(())
            });
            if let Err(e) = all {
                let _ = give.send(Err(e));
            }
        });
        Source { messages }
    }

    /// The next message, if there is one.
    ///
    /// # Errors
    /// What reading failed with.
    pub fn take(&mut self) -> io::Result<Next> {
        match self.messages.try_recv() {
            Ok(message) => message,
            Err(TryRecvError::Empty) => Ok(Next::Wait),
            Err(TryRecvError::Disconnected) => Err(io::Error::other("the reading thread has ended")),
        }
    }
}

/// Gives blocks and the end, as long as somebody takes them.
fn pump(
    mut from: impl Read,
    mut hasher: blake3::Hasher,
    give: &SyncSender<io::Result<Next>>,
) -> io::Result<()> {
    loop {
        let mut block = vec![0; MAX_BLOCK_OCTETS];
        let next = match from.read(&mut block) {
            Ok(0) => Next::End(digest(&hasher)),
            Ok(n) => {
                block.truncate(n);
                hasher.update(&block);
                Next::Block(block)
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        let ends = matches!(next, Next::End(_));
        if give.send(Ok(next)).is_err() || ends {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages of a source, until its end.
    fn all(mut source: Source) -> (u64, Vec<u8>, Digest) {
        let (mut from, mut octets) = (u64::MAX, Vec::new());
        loop {
            match source.take().unwrap() {
                Next::From(n) => from = n,
                Next::Block(block) => octets.extend(block),
                Next::Wait => thread::yield_now(),
                Next::End(digest) => return (from, octets, digest),
            }
        }
    }

    #[test]
    fn only_what_the_other_end_has_is_left_out() {
        let content = vec![7; 200_000];
        let whole = *blake3::hash(&content).as_bytes();
        let part = |octets: usize| *blake3::hash(&vec![7; octets]).as_bytes();
        for (theirs, left_out) in [
            (None, 0),
            (Some((150_000, part(150_000))), 150_000),
            (Some((150_000, part(150_001))), 0),
            (Some((200_000, whole)), 200_000),
            // longer than ours
            (Some((200_001, whole)), 0),
        ] {
            let mut file = tempfile::tempfile().unwrap();
            io::Write::write_all(&mut file, &content).unwrap();
            file.seek(SeekFrom::Start(0)).unwrap();
            let (from, octets, digest) = all(Source::file(file, theirs));
            assert_eq!(from, left_out as u64, "{theirs:?}");
            assert!(octets == content[left_out..] && digest == whole, "{theirs:?}");
        }
    }
}
