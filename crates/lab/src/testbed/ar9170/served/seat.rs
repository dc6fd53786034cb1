//! The socket of a stick.

use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use ::ar9170::usbredir::RedirError;

/// A socket and who is connected to it.
pub(super) struct Seat {
    pub path: PathBuf,
    pub listener: UnixListener,
    pub stream: Option<UnixStream>,
    pub connections: u64,
    pub refused: Option<RedirError>,
}

impl Seat {
    /// Listens at `path`.
    pub fn new(path: &Path) -> io::Result<Seat> {
        make_room(path)?;
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        Ok(Seat {
            path: path.to_owned(),
            listener,
            stream: None,
            connections: 0,
            refused: None,
        })
    }
}

/// Removes a socket that nobody serves any more, and nothing else.
fn make_room(path: &Path) -> io::Result<()> {
    let taken = |what| Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
    match std::fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
        Ok(there) if !there.file_type().is_socket() => {
            taken("there is something that is no socket, name another path")
        }
        Ok(_) if UnixStream::connect(path).is_ok() => {
            taken("a stick is served there already, name another path or end its server")
        }
        Ok(_) => std::fs::remove_file(path),
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // nothing more can be done about it
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a user has there is never lost.
    #[test]
    fn only_a_socket_that_nobody_serves_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("notes.txt"), "mine").unwrap();
        let refused = Seat::new(&at("notes.txt")).map(|_| ()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(at("notes.txt")).unwrap(), b"mine");
        let served = Seat::new(&at("stick")).unwrap();
        let same = folder.path().join(".").join("stick");
        assert!(Seat::new(&same).is_err(), "the server of the stick is alive");
        drop(served);
        assert!(!at("stick").exists());
        // left behind by a server that was killed
        drop(UnixListener::bind(at("stick")).unwrap());
        assert!(Seat::new(&at("stick")).is_ok());
    }
}
