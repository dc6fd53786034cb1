//! Archives that the kernel unpacks into its first file system: cpio in the `newc` format (buffer-format.rst in the kernel's
//! documentation, under early-userspace).

use std::io::{self, Write};

/// Writes one archive.
pub struct Archive<W> {
    out: W,
    number: u32,
}

/// What an entry is, with its permissions, as in `st_mode`.
const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const DEVICE: u32 = 0o020_600;

impl<W: Write> Archive<W> {
    /// An archive without entries.
    pub fn new(out: W) -> Archive<W> {
        Archive { out, number: 0 }
    }

    /// A folder. Those above it come first.
    ///
    /// # Errors
    /// Those of the writer, as of all others here.
    pub fn folder(&mut self, name: &str) -> io::Result<()> {
        self.entry(name, FOLDER, (0, 0), &[])
    }

    /// A file that may be executed.
    ///
    /// # Errors
    /// Also for contents beyond 4 GiB.
    pub fn file(&mut self, name: &str, octets: &[u8]) -> io::Result<()> {
        self.entry(name, PROGRAM, (0, 0), octets)
    }

    /// A character device.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn device(&mut self, name: &str, major: u32, minor: u32) -> io::Result<()> {
        self.entry(name, DEVICE, (major, minor), &[])
    }

    /// Ends the archive.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.entry("TRAILER!!!", 0, (0, 0), &[])?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn entry(&mut self, name: &str, mode: u32, device: (u32, u32), octets: &[u8]) -> io::Result<()> {
        let size = u32::try_from(octets.len())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a file of more than 4 GiB"))?;
        self.number += 1;
        let length = name.len() as u32 + 1;
        let fields = [
            self.number,
            mode,
            0,
            0,
            1,
            0,
            size,
            0,
            0,
            device.0,
            device.1,
            length,
            0,
        ];
        let mut header = String::from("070701");
        for field in fields {
            header += &format!("{field:08x}");
        }
        self.out.write_all(header.as_bytes())?;
        self.out.write_all(name.as_bytes())?;
        self.out.write_all(&[0])?;
        self.pad(header.len() + name.len() + 1)?;
        self.out.write_all(octets)?;
        self.pad(octets.len())
    }

    /// Fills up to a multiple of four.
    fn pad(&mut self, written: usize) -> io::Result<()> {
        let missing = written.next_multiple_of(4) - written;
        self.out.write_all(&[0; 3][..missing])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_thirteen_fields_and_is_padded() {
        let mut archive = Archive::new(Vec::new());
        archive.folder("dev").unwrap();
        archive.device("dev/console", 5, 1).unwrap();
        archive.file("init", b"hello").unwrap();
        let octets = archive.finish().unwrap();
        assert_eq!(octets.len() % 4, 0);
        let text = String::from_utf8_lossy(&octets);
        assert_eq!(text.matches("070701").count(), 4);
        // header of 110 octets, "dev\0", padding of two
        assert_eq!(&octets[110..116], b"dev\0\0\0");
        let device = 116;
        let field = |entry: usize, n: usize| {
            let at = entry + 6 + 8 * n;
            u32::from_str_radix(&text[at..at + 8], 16).unwrap()
        };
        assert_eq!((field(0, 1), field(0, 6), field(0, 11)), (FOLDER, 0, 4));
        assert_eq!(
            (field(device, 1), field(device, 9), field(device, 10)),
            (DEVICE, 5, 1)
        );
        let file = text.find("init\0").unwrap() - 110;
        assert_eq!((field(file, 1), field(file, 6)), (PROGRAM, 5));
        assert!(text[file + 110..].starts_with("init\0\0hello\0\0\0"));
        assert!(text.contains("TRAILER!!!\0"));
    }
}
