//! The few kinds of protobuf fields that a trace needs (protobuf.dev, "Encoding").

/// Appends fields to a message.
pub(super) struct Message<'a> {
    bytes: &'a mut Vec<u8>,
}

impl<'a> Message<'a> {
    pub(super) fn new(bytes: &'a mut Vec<u8>) -> Self {
        Message { bytes }
    }

    /// A number as varint; int64 and enums pass their two's complement.
    pub(super) fn unsigned(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    /// Eight octets, little-endian: fixed64 and double.
    pub(super) fn fixed64(&mut self, field: u32, bits: u64) {
        self.varint(u64::from(field) << 3 | 1);
        self.bytes.extend_from_slice(&bits.to_le_bytes());
    }

    /// Text in UTF-8.
    pub(super) fn text(&mut self, field: u32, text: &str) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// A message inside this one.
    pub(super) fn message(&mut self, field: u32, fields: impl FnOnce(&mut Message<'_>)) {
        self.varint(u64::from(field) << 3 | 2);
        // The length comes first but is known last: fill, then make room for it.
        let start = self.bytes.len();
        fields(&mut Message { bytes: self.bytes });
        let length = self.bytes.len() - start;
        self.varint(length as u64);
        self.bytes[start..].rotate_left(length);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of protobuf.dev, "Encoding": 150 in field 1, "testing" in field 2, the first inside field 3.
    #[test]
    fn examples_of_the_specification() {
        let mut bytes = Vec::new();
        Message::new(&mut bytes).unsigned(1, 150);
        Message::new(&mut bytes).text(2, "testing");
        Message::new(&mut bytes).message(3, |m| m.unsigned(1, 150));
        let expected = b"\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01";
        assert_eq!(bytes, expected);
    }

    #[test]
    fn a_long_message_has_a_long_length() {
        let mut bytes = Vec::new();
        Message::new(&mut bytes).message(1, |m| m.text(1, &"x".repeat(300)));
        assert_eq!(bytes[..6], [0x0a, 0xaf, 0x02, 0x0a, 0xac, 0x02]);
        assert_eq!(bytes.len(), 306);
    }
}
