//! What ends a guest, or a build, whose user was killed.
//!
//! A User-Mode-Linux kernel traces its processes, and outlives the program that has started it. SIGKILL leaves that
//! program no time to clean up, so a second small process waits at the end of a pipe: when the pipe closes and
//! nothing was said before, it kills the process group that it was told of last, and removes its folder.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use super::group;

/// Name of the hidden command that runs [`keep`].
pub const COMMAND: &str = "lab-guard";
/// What is written when all is over and there is nothing to do.
const DISMISSED: u8 = b'.';

/// The near end: as long as it lives, the group may.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Guard {
    /// Starts `sdmac lab-guard FOLDER` before there is anything to look after.
    pub fn start(sdmac: &Path, folder: &Path) -> io::Result<Guard> {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(sdmac);
        command
            .arg(COMMAND)
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0);
        let mut child = command.spawn()?;
        let pipe = child.stdin.take();
        Ok(Guard { child, pipe })
    }

    /// Names the process group to look after from now on.
    pub fn watch(&mut self, group: u32) -> io::Result<()> {
        match &mut self.pipe {
            Some(pipe) => pipe.write_all(&group.to_le_bytes()),
            None => Ok(()),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            // a guard that was killed has nothing to be told
            let _ = pipe.write_all(&[DISMISSED]);
        }
        let _ = self.child.wait();
    }
}

/// Runs in the guard's process: reads from the pipe until it closes, then does what is left to do.
pub fn keep(mut pipe: impl Read, folder: PathBuf) -> io::Result<()> {
    let mut told = Vec::new();
    pipe.read_to_end(&mut told)?;
    let (groups, rest) = told.as_chunks::<4>();
    if rest == [DISMISSED] {
        return Ok(());
    }
    if let Some(group) = groups.last() {
        group::kill(u32::from_le_bytes(*group));
    }
    match std::fs::remove_dir_all(folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_kills_and_removes() {
        let folder = tempfile::tempdir().unwrap();
        let job = folder.path().join("job");
        std::fs::create_dir(&job).unwrap();
        let mut guest = group::Group::spawn(Command::new("sleep").arg("1000")).unwrap();
        let id = guest.child().id();
        let told = [u32::MAX.to_le_bytes(), id.to_le_bytes()].concat();
        keep(&told[..], job.clone()).unwrap();
        assert!(!job.exists());
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&guest.wait().unwrap()),
            Some(9)
        );
    }

    #[test]
    fn a_dismissed_guard_touches_nothing() {
        let folder = tempfile::tempdir().unwrap();
        for told in [&[DISMISSED][..], &[1, 0, 0, 0, DISMISSED]] {
            keep(told, folder.path().to_owned()).unwrap();
            assert!(folder.path().exists());
        }
        // a number that ends like the dismissal is a number
        keep(&[0xff, 0xff, 0xff, DISMISSED][..], folder.path().join("none")).unwrap();
    }
}
