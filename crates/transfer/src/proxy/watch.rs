//! Whether the computer at the other end of a TCP connection is still there.
//!
//! Of an idle connection the kernel asks (keepalive). While data are on the way it does not, and repeats them for a quarter
//! of an hour; so the watch looks whether anything comes back. `TCP_USER_TIMEOUT` is not for this: it also ends connections whose
//! reader is alive, acknowledges every probe and has no room.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;

use linux::tcp::info;
use radio::{Duration, Instant};
use rustix::net::sockopt::{set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl};

/// Between two looks at one connection.
const LOOK: Duration = Duration::from_ms(500);
/// The kernel counts in whole seconds: one until it asks, and two questions.
const LEAST: Duration = Duration::from_ms(3_000);
/// The longest times and the most questions that the kernel takes (`MAX_TCP_KEEPIDLE` and so on).
const MOST_S: u64 = 32_767;
const MOST_QUESTIONS: u64 = 127;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Watch {
    looked: Option<Instant>,
    /// Since when there is a question at each look.
    asking: Option<Instant>,
}

impl Watch {
    /// Looks, if the last look is a while ago.
    ///
    /// # Errors
    /// The connection has ended by an error; `ETIMEDOUT` where nothing comes back for as long as `patience` says, 3 s at least.
    pub fn look(&mut self, now: Instant, stream: &TcpStream, patience: Duration) -> io::Result<()> {
        if self.looked.is_some_and(|t| now.since(t) < LOOK) {
            return Ok(());
        }
        self.looked = Some(now);
        let info = info(stream.as_fd())?;
        if info.is_closed {
            return stream.take_error()?.map_or(Ok(()), Err);
        }
        if !info.is_asking {
            self.asking = None;
            return Ok(());
        }
        // with a closed window the questions become seldom: only from this one on an answer is awaited
        let asking = now.since(*self.asking.get_or_insert(now));
        if asking.min(info.heard_ago) >= patience.max(LEAST) {
            return Err(rustix::io::Errno::TIMEDOUT.into());
        }
        Ok(())
    }
}

/// Seconds until the kernel asks for the first time, and from question to question, and how many there are: together `patience`, and not
/// less than 3 s.
fn questions(patience: Duration) -> (u64, u64, u64) {
    let all = patience.max(LEAST).as_ns() / 1_000_000_000;
    let idle = (all / 2).min(MOST_S);
    let each = (all / 8).clamp(1, MOST_S);
    (idle, each, ((all - idle) / each).min(MOST_QUESTIONS))
}

/// Has the kernel ask whether the other end is there while nothing goes.
///
/// # Errors
/// As setsockopt(2).
pub(super) fn ask(stream: &TcpStream, patience: Duration) -> io::Result<()> {
    let (idle, each, most) = questions(patience);
    set_tcp_keepidle(stream, std::time::Duration::from_secs(idle))?;
    set_tcp_keepintvl(stream, std::time::Duration::from_secs(each))?;
    set_tcp_keepcnt(stream, most as u32)?;
    set_socket_keepalive(stream, true)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[test]
    fn asks_within_patience() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let cases = [
            (0, (1, 1, 2)),
            (999, (1, 1, 2)),
            (3_000, (1, 1, 2)),
            (5_900, (2, 1, 3)),
            (10_000, (5, 1, 5)),
            (60_000, (30, 7, 4)),
            (3_600_000, (1_800, 450, 4)),
            (1_000_000_000, (32_767, 32_767, 29)),
            (u64::MAX / 1_000_000, (32_767, 32_767, 127)),
        ];
        for (ms, expected) in cases {
            let patience = Duration::from_ms(ms);
            assert_eq!(questions(patience), expected, "{ms} ms");
            ask(&stream, patience).unwrap();
        }
    }
}
