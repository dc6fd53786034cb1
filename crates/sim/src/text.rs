//! Files that people write: profiles, scenarios, tables.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The text of a file, or `None` if it has more than `limit` octets. No more than that is read, so that pipes can be
/// given and devices without an end do no harm.
///
/// # Errors
/// The file cannot be read, or is not UTF-8.
pub fn read_at_most(path: &Path, limit: u64) -> io::Result<Option<String>> {
    let mut octets = Vec::new();
    File::open(path)?
        .take(limit.saturating_add(1))
        .read_to_end(&mut octets)?;
    if octets.len() as u64 > limit {
        return Ok(None);
    }
    let text =
        String::from_utf8(octets).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e.utf8_error()))?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_more_than_allowed_nor_anything_but_text() {
        let folder = std::env::temp_dir().join(format!("sdmac-text-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("file");
        std::fs::write(&file, "12345").unwrap();
        assert_eq!(read_at_most(&file, 5).unwrap().as_deref(), Some("12345"));
        assert_eq!(read_at_most(&file, 4).unwrap(), None);
        std::fs::write(&file, b"\xff\xfe").unwrap();
        assert_eq!(
            read_at_most(&file, 4).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
        assert!(read_at_most(&folder, 4).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
        #[cfg(unix)]
        assert_eq!(read_at_most(Path::new("/dev/zero"), 1 << 16).unwrap(), None);
    }
}
