//! The key that two ends share.

use std::fmt;

/// Octets of a key.
pub const KEY_OCTETS: usize = 32;

/// A shared key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(pub [u8; KEY_OCTETS]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// A new one.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn random() -> std::io::Result<Key> {
        let mut key = Key([0; KEY_OCTETS]);
        rustix::rand::getrandom(&mut key.0, rustix::rand::GetRandomFlags::empty())?;
        Ok(key)
    }

    /// Reads 64 hexadecimal digits; blanks around them do not count.
    pub fn parse(text: &str) -> Option<Key> {
        let digits = text.trim().as_bytes();
        let (pairs, rest) = digits.as_chunks::<2>();
        if pairs.len() != KEY_OCTETS || !rest.is_empty() {
            return None;
        }
        let mut key = Key([0; KEY_OCTETS]);
        for (octet, pair) in key.0.iter_mut().zip(pairs) {
            let digit = |c: u8| char::from(c).to_digit(16).map(|d| d as u8);
            *octet = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(key)
    }

    /// As [`parse`](Key::parse) reads it.
    pub fn text(&self) -> String {
        self.0.iter().map(|o| format!("{o:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_as_text() {
        let key = Key::random().unwrap();
        assert_eq!(Key::parse(&format!(" {}\n", key.text())), Some(key));
        assert_eq!(Key::parse(&key.text()[1..]), None);
        assert_eq!(Key::parse(&"g".repeat(64)), None);
        assert_eq!(format!("{key:?}"), "Key(..)");
    }
}
