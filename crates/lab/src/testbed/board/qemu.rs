//! One board: QEMU with the firmware, and the pipe to it.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use ar9170::driver::{Bus, BusEvent};
use ar9170::emulated::Far;
use ar9170::pipe::{Act, Decoder, STICK_OCTETS, Tell};
use node::Setup;
use radio::Instant;
use thiserror::Error;

use super::QEMU;
use crate::testbed::group::Group;
use crate::testbed::tools;

/// A board that says nothing for so long, of this computer's time, will never say anything.
const SILENCE: Duration = Duration::from_secs(60);

/// Why there is no board, or no more.
#[derive(Debug, Error)]
pub enum BoardError {
    /// QEMU is not installed.
    #[error("there is no {}; on Debian: sudo apt-get install {}", QEMU.0, QEMU.1)]
    NoQemu,
    /// The firmware was not built.
    #[error("{}: no firmware; build it: (cd firmware/cortex-m3 && cargo build --release)", .0.display())]
    NoFirmware(PathBuf),
    /// This computer cannot run it.
    #[error("cannot start {}: {}", QEMU.0, .0)]
    Start(io::Error),
    /// The pipe is broken: QEMU has ended.
    #[error("board {0}: its QEMU has ended ({1})")]
    Gone(u32, io::Error),
    /// It does not answer.
    #[error("board {0}: no answer within a minute")]
    Silent(u32),
    /// It has stopped, and says why.
    #[error("board {0}: {1}")]
    Halted(u32, String),
    /// It says something that means nothing.
    #[error("board {0}: a message that is none (kind {1:#04x})")]
    Strange(u32, u8),
}

impl BoardError {
    /// What an error of the pipe to a board says.
    pub(super) fn of(board: u32, error: io::Error) -> BoardError {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => BoardError::Silent(board),
            _ => BoardError::Gone(board, error),
        }
    }
}

/// Starts a board with a firmware, its UART as our end of a pipe. It runs until the group is dropped.
pub(super) fn switch_on(elf: &Path, more: &[&str]) -> Result<(Group, UnixStream), BoardError> {
    let qemu = tools::find(QEMU.0).ok_or(BoardError::NoQemu)?;
    if !elf.is_file() {
        return Err(BoardError::NoFirmware(elf.to_owned()));
    }
    let started = || {
        let (ours, its) = UnixStream::pair()?;
        ours.set_read_timeout(Some(SILENCE))?;
        ours.set_write_timeout(Some(SILENCE))?;
        let mut command = Command::new(qemu);
        command
            .args(["-machine", "mps2-an385", "-nodefaults", "-display", "none"])
            .args(["-monitor", "none", "-chardev", "stdio,id=pipe,signal=off"])
            .args(["-serial", "chardev:pipe"])
            .args(more)
            .arg("-kernel")
            .arg(elf)
            .stdin(Stdio::from(OwnedFd::from(its.try_clone()?)))
            .stdout(Stdio::from(OwnedFd::from(its)));
        Ok((Group::spawn(&mut command)?, ours))
    };
    started().map_err(BoardError::Start)
}

/// A microcontroller that runs the firmware.
#[derive(Debug)]
pub struct Board {
    number: u32,
    // ends with the board
    _qemu: Group,
    pipe: UnixStream,
    decoder: Box<Decoder<STICK_OCTETS>>,
    failure: Option<BoardError>,
    messages: u64,
    octets: u64,
}

impl Board {
    /// Starts the firmware `elf` as board `number`, and tells it who it is.
    ///
    /// # Errors
    /// See [`BoardError`].
    pub fn start(number: u32, elf: &Path, setup: &Setup) -> Result<Board, BoardError> {
        let (group, pipe) = switch_on(elf, &[])?;
        let mut board = Board {
            number,
            _qemu: group,
            pipe,
            decoder: Box::default(),
            failure: None,
            messages: 0,
            octets: 0,
        };
        board.listen(&mut Nothing)?;
        board.ask(Instant::ZERO, &Tell::Begin(&setup.to_octets()), &mut Nothing)?;
        Ok(board)
    }

    /// Why it works no more, if so.
    pub fn failure(&mut self) -> Option<BoardError> {
        self.failure.take()
    }

    /// Messages to it, and octets both ways.
    pub fn traffic(&self) -> (u64, u64) {
        (self.messages, self.octets)
    }

    fn broken(&self, error: io::Error) -> BoardError {
        BoardError::of(self.number, error)
    }

    /// Tells it something, and lets it act until it rests.
    fn ask(
        &mut self,
        now: Instant,
        tell: &Tell<'_>,
        bus: &mut dyn Bus,
    ) -> Result<Option<Instant>, BoardError> {
        let mut message = Vec::new();
        let fits = tell.write(now, &mut |part| message.extend_from_slice(part));
        debug_assert!(fits, "transfers are cut to what fits, and a setup is short");
        self.pipe.write_all(&message).map_err(|e| self.broken(e))?;
        self.messages += 1;
        self.octets += message.len() as u64;
        self.listen(bus)
    }

    /// Lets it act until it rests.
    fn listen(&mut self, bus: &mut dyn Bus) -> Result<Option<Instant>, BoardError> {
        loop {
            while let Some(packet) = self.decoder.packet() {
                let strange = BoardError::Strange(self.number, packet.kind);
                match Act::parse(packet).ok_or(strange)? {
                    Act::Reset => bus.reset(),
                    Act::Control { request, value, data } => bus.control(request, value, data),
                    Act::Command(id, octets) => bus.command(id, octets),
                    Act::Frame(id, octets) => bus.frame(id, octets),
                    Act::Read => bus.read(),
                    Act::Rest(until) => return Ok(until),
                    Act::Halt(why) => {
                        let why = String::from_utf8_lossy(why).into_owned();
                        return Err(BoardError::Halted(self.number, why));
                    }
                }
            }
            let mut piece = [0; 1_024];
            let octets = self.pipe.read(&mut piece).map_err(|e| self.broken(e))?;
            if octets == 0 {
                return Err(self.broken(ErrorKind::UnexpectedEof.into()));
            }
            self.octets += octets as u64;
            let mut rest = &piece[..octets];
            while !rest.is_empty() {
                // a packet of any length that a board may write fits
                let taken = self.decoder.feed(rest);
                if taken == 0 {
                    return Err(BoardError::Strange(self.number, 0));
                }
                rest = &rest[taken..];
            }
        }
    }
}

/// Who is told who it is has nothing to do on the USB yet.
struct Nothing;

impl Bus for Nothing {
    fn reset(&mut self) {}
    fn control(&mut self, _: u8, _: u16, _: &[u8]) {}
    fn command(&mut self, _: u32, _: &[u8]) {}
    fn frame(&mut self, _: u32, _: &[u8]) {}
    fn read(&mut self) {}
}

impl Far for Board {
    /// A board that has failed once does nothing any more.
    fn tell(&mut self, now: Instant, event: Option<BusEvent<'_>>, bus: &mut dyn Bus) -> Option<Instant> {
        if self.failure.is_some() {
            return None;
        }
        let tell = event.map_or(Tell::Timer, Tell::Usb);
        self.ask(now, &tell, bus).unwrap_or_else(|failure| {
            self.failure = Some(failure);
            None
        })
    }
}
