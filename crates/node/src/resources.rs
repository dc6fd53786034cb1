//! What the CoAP server of a node has, and what it is made from.

use crate::routes::Routes;
use core::fmt::Write;

/// What a board says of its memory, in octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// The link layer with its driver.
    pub link: usize,
    /// Everything that is not the stack.
    pub fixed: usize,
    /// Stack that was used at most, of the stack that there is.
    pub stack_used: usize,
    /// See `stack_used`.
    pub stack: usize,
}

/// What the driver of a board's stick has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stick {
    /// Transfers that were longer than there was room for.
    pub cut_transfers: u64,
    /// Received frames for which there was no buffer.
    pub overflows: u64,
    /// Completions of transfers that did not come in time.
    pub lost_completions: u64,
    /// How often the stick was restarted.
    pub restarts: u64,
}

impl Stick {
    /// Nothing.
    pub const NONE: Stick = Stick {
        cut_transfers: 0,
        overflows: 0,
        lost_completions: 0,
        restarts: 0,
    };
}

/// What a board says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Board {
    /// Its memory.
    pub memory: Memory,
    /// Its radio.
    pub stick: Stick,
}

/// What the link layer says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Status {
    /// Stations that were heard of late.
    pub neighbours: usize,
    /// Beacon intervals, and those that were dozed through.
    pub intervals: u64,
    /// See `intervals`.
    pub dozed: u64,
}

/// What has become of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Packets of others that were passed on.
    pub forwarded: u64,
    /// Packets that nobody could be found for, or that have come too far.
    pub no_way: u64,
    /// Packets for which there was no room.
    pub no_room: u64,
}

/// Writes text into a slice; what is beyond its end is an error.
struct Text<'o>(&'o mut [u8], usize);

impl Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let end = self.1 + text.len();
        self.0
            .get_mut(self.1..end)
            .ok_or(core::fmt::Error)?
            .copy_from_slice(text.as_bytes());
        self.1 = end;
        Ok(())
    }
}

/// What the server has.
pub(crate) fn say(
    path: &str,
    status: &Status,
    routes: &Routes,
    counts: &Counts,
    board: fn() -> Board,
    out: &mut [u8],
) -> Option<usize> {
    let mut text = Text(out, 0);
    match path {
        "/.well-known/core" => text.write_str("</link>,</routes>,</memory>,</stick>").ok()?,
        "/link" => {
            let Status {
                neighbours,
                intervals,
                dozed,
            } = status;
            write!(
                text,
                "neighbours {neighbours} intervals {intervals} dozed {dozed}"
            )
            .ok()?;
        }
        "/routes" => {
            let Counts {
                forwarded,
                no_way,
                no_room,
            } = counts;
            write!(text, "forwarded {forwarded} no way {no_way} no room {no_room}").ok()?;
            for route in routes.iter() {
                // as many as there is room for
                let _ = write!(text, "; {} over {} hops {}", route.to, route.next, route.hops);
            }
        }
        "/memory" => {
            let Memory {
                link,
                fixed,
                stack_used,
                stack,
            } = board().memory;
            write!(
                text,
                "link {link} fixed {fixed} stack used {stack_used} of {stack}"
            )
            .ok()?;
        }
        "/stick" => {
            let Stick {
                cut_transfers,
                overflows,
                lost_completions,
                restarts,
            } = board().stick;
            write!(
                text,
                "cut {cut_transfers} overflows {overflows} completions lost {lost_completions} restarts {restarts}"
            )
            .ok()?;
        }
        _ => return None,
    }
    Some(text.1)
}
