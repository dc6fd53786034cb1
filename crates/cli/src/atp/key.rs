//! `sdmac atp key`: keys and their files.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use serde_json::json;
use transfer::secure::Key;

use crate::ui::{self, Failure, Ui, warn};

/// A file of a key is no longer than this.
const MAX_KEY_OCTETS: u64 = 4_096;
/// Mode of files that the group or all can read.
const OTHERS_READ: u32 = 0o044;

/// The key in a file.
pub fn read(path: &Path, stop: &AtomicBool) -> Result<Key, Failure> {
    let place = path.display();
    let mut octets = Vec::new();
    let wrong = |e| Failure::input(format!("{place}: {e}"));
    let file =
        ui::open(OpenOptions::new().read(true), path, stop).map_err(|e| Failure::opening(&place, &e))?;
    let about = file.metadata().map_err(wrong)?;
    if about.is_file() && about.mode() & OTHERS_READ != 0 {
        warn(&format!(
            "others than its owner can read {place}, and so use the key: chmod 600 {place}"
        ));
    }
    file.take(MAX_KEY_OCTETS)
        .read_to_end(&mut octets)
        .map_err(wrong)?;
    Key::parse(&String::from_utf8_lossy(&octets)).ok_or_else(|| {
        Failure::input(format!(
            "{place} is no key: it has 64 hexadecimal digits, as `sdmac atp key` makes them"
        ))
    })
}

/// Make a new key, for both ends
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac atp key shared.key
  sdmac atp key | ssh 192.0.2.7 'umask 077; cat > shared.key'

The other end needs the same file: take it there by a way that nobody else can read.")]
pub struct Args {
    /// File to write it into, which is not there yet; nobody but its owner can read it. Without it the key is printed
    file: Option<PathBuf>,
}

/// Runs the command.
pub fn main(args: &Args, ui: &Ui) -> Result<ExitCode, Failure> {
    let key = Key::random().map_err(Failure::on_the_way)?;
    let line = format!("{}\n", key.text());
    let Some(path) = &args.file else {
        if ui.is_json() {
            ui.answer(&json!({ "key": key.text() }))?;
        } else {
            crate::ui::print(&line)?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let place = path.display();
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|e| match e.kind() {
            ErrorKind::AlreadyExists => Failure::input(format!(
                "{place} is there already: take another name, or remove it if nobody uses that key"
            )),
            _ => Failure::input(format!("{place}: {e}")),
        })?;
    let written = file.write_all(line.as_bytes()).and_then(|()| file.sync_all());
    written.map_err(|e| Failure::on_the_way(format!("{place}: {e}")))?;
    ui.answer(&json!({ "file": path.to_string_lossy() }))?;
    ui.tell(&format!(
        "wrote {place}: take it to the other end by a way that nobody else can read"
    ));
    Ok(ExitCode::SUCCESS)
}
