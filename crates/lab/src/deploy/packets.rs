//! Numbers of protected packets: none may come back with the same key, after a restart neither.

use std::time::SystemTime;

use protocols::mac::ccmp::packet_number;
use radio::tape::requested;

/// The first number of a station that begins now: seconds since 1970, times 2^16. Who sends less than 65,536 frames in a second, and has
/// a clock that does not go back, never comes to a number twice.
pub(super) fn first_by_clock() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let since = since.unwrap_or_default();
    (since.as_secs() << 16) | (u64::from(since.subsec_micros()) * (1 << 16) / 1_000_000)
}

/// The first number of the station on a tape; `None` if it protected nothing.
pub(super) fn first_on(tape: &[u8]) -> Option<u64> {
    requested(tape).find_map(packet_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_start_has_higher_numbers() {
        let first = first_by_clock();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!((1..1 << 48).contains(&first) && first_by_clock() > first);
    }
}
