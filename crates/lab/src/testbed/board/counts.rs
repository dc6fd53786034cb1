//! Instructions of the driver on a board: its program `counts`, in QEMU with a clock that counts instructions.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::qemu::{BoardError, switch_on};

/// The program that counts, from the root of the repository.
pub const FIRMWARE: &str = "firmware/cortex-m3/target/thumbv7m-none-eabi/release/counts";
/// 2^6 ns for each instruction, as the program has it; time that is slept through passes at once.
const INSTRUCTIONS: [&str; 2] = ["-icount", "shift=6,sleep=off"];

/// Instructions by what was counted (a parser, an interrupt, a turn, a copy) and over which transfer.
pub type Counts = BTreeMap<String, BTreeMap<String, u32>>;

/// Counts. The same program gives the same numbers, however fast this computer is.
///
/// # Errors
/// See [`BoardError`].
pub fn count(elf: &Path) -> Result<Counts, BoardError> {
    let (_qemu, pipe) = switch_on(elf, &INSTRUCTIONS)?;
    let mut counts = Counts::new();
    for line in BufReader::new(pipe).lines() {
        let line = line.map_err(|e| BoardError::of(0, e))?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let halted = || BoardError::Halted(0, line.clone());
        match words[..] {
            ["end", _, "true"] => return Ok(counts),
            ["heard", _, "true"] => {}
            [what, which, number] => {
                let number = number.parse().map_err(|_| halted())?;
                counts
                    .entry(what.into())
                    .or_default()
                    .insert(which.into(), number);
            }
            _ => return Err(halted()),
        }
    }
    Err(BoardError::of(0, std::io::ErrorKind::UnexpectedEof.into()))
}
