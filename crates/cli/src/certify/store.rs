//! Where certificates are kept between commands: a folder of the user, with one file for each driver and permanent address.

use std::io;
use std::path::{Path, PathBuf};

use linux::wifi::Error;
use linux::wifi::certify::{Certificate, identity};

/// The folder of a user's certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store(PathBuf);

/// What a [`Store`] has for a radio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// A certificate for this driver and this kernel, with its text.
    Certificate(Box<Certificate>, String),
    /// None; or one that does not count here, and why not, in a sentence.
    Nothing(String),
}

impl Store {
    /// That of the user: `sdmac/certificates` in `$XDG_STATE_HOME`, or else in `~/.local/state` (XDG Base Directory
    /// Specification 0.8). `None` where neither is set.
    pub fn of_user() -> Option<Store> {
        let folder = |name| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))?;
        Some(Store(state.join("sdmac/certificates")))
    }

    /// The file of a radio; `None` where the kernel does not tell which one it is.
    fn file(&self, driver: &str, address: &str) -> Option<PathBuf> {
        let known = !driver.is_empty() && driver != "unknown" && !address.is_empty();
        known.then(|| self.0.join(file_name(driver, address)))
    }

    /// Keeps a certificate and its text; gives the file.
    ///
    /// # Errors
    /// Those of the file system; also if the certificate does not tell which radio it is about.
    pub fn keep(&self, certificate: &Certificate, text: &str) -> io::Result<PathBuf> {
        let file = self.file(&certificate.driver, &certificate.address);
        let file = file.ok_or_else(|| io::Error::other(NAMELESS))?;
        std::fs::create_dir_all(&self.0)?;
        // Whoever reads meanwhile finds the old one or the new one.
        let part = file.with_extension(format!("{}.part", std::process::id()));
        std::fs::write(&part, text)?;
        std::fs::rename(&part, &file)?;
        Ok(file)
    }

    /// What there is for a radio.
    ///
    /// # Errors
    /// [`Error`] if there is no such radio.
    pub fn find(&self, radio: &str) -> Result<Kept, Error> {
        let (driver, address) = identity(radio)?;
        let Some(file) = self.file(&driver, &address) else {
            return Ok(Kept::Nothing(NAMELESS.to_owned()));
        };
        Ok(read(&file, &|certificate| certificate.check(radio)))
    }
}

/// Why there is no file for a radio.
const NAMELESS: &str = "the kernel does not tell the driver and the address of this adapter here";

/// Name of the file of a radio with this driver and address.
fn file_name(driver: &str, address: &str) -> String {
    let plain = |text: &str| -> String {
        let all = text.trim().chars();
        all.map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' {
                c
            } else {
                '-'
            }
        })
        .collect()
    };
    format!("{}-{}.json", plain(driver), plain(address))
}

fn read(file: &Path, fits: &dyn Fn(&Certificate) -> Result<(), Error>) -> Kept {
    let place = file.display();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Kept::Nothing(format!("there is no {place}"));
        }
        Err(e) => return Kept::Nothing(format!("{place}: {e}")),
    };
    let certificate: Certificate = match serde_json::from_str(&text) {
        Ok(certificate) => certificate,
        Err(e) => return Kept::Nothing(format!("{place} is no certificate: {e}")),
    };
    match fits(&certificate) {
        Ok(()) => Kept::Certificate(Box::new(certificate), text),
        Err(why) => Kept::Nothing(format!("{place} does not count: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_driver_and_address() {
        assert_eq!(
            file_name("mac80211_hwsim", "02:00:00:00:00:00\n"),
            "mac80211_hwsim-02-00-00-00-00-00.json"
        );
        assert_eq!(file_name("../x", ""), "---x-.json");
    }

    /// In another network namespace all radios would share one file.
    #[test]
    fn a_radio_without_a_name_has_no_file() {
        let store = Store(PathBuf::from("/nowhere"));
        assert!(store.file("unknown", "").is_none() && store.file("", "02:00:00:00:00:00").is_none());
        assert!(store.file("ath9k", "").is_none() && store.file("unknown", "02:00:00:00:00:00").is_none());
        assert!(store.file("ath9k", "02:00:00:00:00:00").is_some());
    }

    #[test]
    fn what_is_kept_is_found_or_said_to_be_missing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.json");
        let found = |fits: bool| {
            read(&file, &|_| match fits {
                true => Ok(()),
                false => Err(Error::Config("of another kernel")),
            })
        };
        assert!(matches!(found(true), Kept::Nothing(why) if why.starts_with("there is no")));
        std::fs::write(&file, "{}").unwrap();
        assert!(matches!(found(true), Kept::Nothing(why) if why.contains("no certificate")));
        let text = r#"{
            "certificate": 1, "sdmac": "0", "partial": false, "kernel": "6.1", "driver": "d", "radio": "phy9",
            "monitor": "active", "channel_mhz": 2412, "peer": null, "rows": [],
            "proven": { "one_shot": true, "one_shot_to_stations": null, "no_ack": null, "no_ack_to_stations": null,
                        "max_tries": 7, "acknowledges": null }
        }"#;
        std::fs::write(&file, text).unwrap();
        match found(true) {
            Kept::Certificate(certificate, same) => {
                assert_eq!((certificate.proven.max_tries, same.as_str()), (Some(7), text));
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(found(false), Kept::Nothing(why) if why.contains("of another kernel")));
    }
}
