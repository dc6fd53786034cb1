//! Octets to send: a thread reads them ahead, so that a slow disk or a quiet terminal never stops the connection.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread;

use crate::message::MAX_BLOCK_OCTETS;

/// Blocks that are read ahead.
const AHEAD: usize = 16;

/// What a source has.
#[derive(Debug)]
pub enum Next {
    /// The next block; not empty.
    Block(Vec<u8>),
    /// Nothing yet.
    Wait,
    /// Nothing any more.
    End,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Source {
    blocks: Receiver<io::Result<Vec<u8>>>,
}

impl Source {
    /// Reads from `from` in a thread of its own. The thread ends with the source, or, if it waits for input then, with
    /// the program.
    pub fn new(mut from: impl Read + Send + 'static) -> Source {
        let (give, blocks) = sync_channel(AHEAD);
        thread::spawn(move || {
            loop {
                let mut block = vec![0; MAX_BLOCK_OCTETS];
                let read = match from.read(&mut block) {
                    Ok(0) => return,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    Ok(n) => {
                        block.truncate(n);
                        Ok(block)
                    }
                    Err(e) => Err(e),
                };
                let failed = read.is_err();
                if give.send(read).is_err() || failed {
                    return;
                }
            }
        });
        Source { blocks }
    }

    /// The next block, if it is there.
    ///
    /// # Errors
    /// What reading failed with.
    pub fn take(&mut self) -> io::Result<Next> {
        match self.blocks.try_recv() {
            Ok(block) => block.map(Next::Block),
            Err(TryRecvError::Empty) => Ok(Next::Wait),
            Err(TryRecvError::Disconnected) => Ok(Next::End),
        }
    }
}
