//! Parsers under any octets, and the two parsers of a stream next to each other.

mod shared;

use ar9170::codec::response::TxStatus;
use ar9170::codec::stream::{FirstHeader, RESPONSE_MARK, Unit, Units, write_unit};
use ar9170::codec::{PhyControl, TxFrame, firmware, tx};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_octets(octets in proptest::collection::vec(any::<u8>(), 0..400)) {
        shared::try_transfer(&octets);
        shared::try_others(&octets);
    }

    #[test]
    fn damaged_transfers(which in 0usize..5, at in any::<usize>(), to in any::<u8>(), cut in any::<usize>()) {
        let mut transfer = shared::transfers().swap_remove(which);
        let place = at % transfer.len();
        transfer[place] = to;
        shared::try_transfer(&transfer);
        transfer.truncate(cut % transfer.len());
        shared::try_transfer(&transfer);
    }

    #[test]
    fn damaged_files(at in 0usize..636, to in any::<u8>(), cut in 0usize..636) {
        let mut file = firmware_file();
        file[at] = to;
        shared::try_others(&file);
        shared::try_others(&file[..cut]);
    }

    #[test]
    fn frames_to_be_sent(
        mpdu in proptest::collection::vec(any::<u8>(), 0..300),
        cookie in 1u8..191,
        queue in 0u8..4,
        flags in any::<[bool; 6]>(),
        tries in proptest::collection::vec(1u8..8, 1..5),
    ) {
        let [assign_sequence, insert_tsf, after_beacon, no_ack, backoff, duration] = flags;
        let mut rates = [tx::RateTries::default(); 4];
        for (rate, tries) in rates.iter_mut().zip(tries) {
            let phy = PhyControl::new(frame::Rate::OFDM_24, 30, 1).unwrap();
            *rate = tx::RateTries { phy, tries, protection: tx::Protection::Cts };
        }
        let frame = TxFrame {
            cookie, queue, interface: 1, assign_sequence, insert_tsf, after_beacon, no_ack, backoff, duration, rates,
            mpdu: &mpdu,
        };
        let mut out = vec![0; mpdu.len() + 32];
        let n = frame.emit(&mut out).unwrap();
        prop_assert_eq!(TxFrame::parse(&out[..n]), Some(frame));
        shared::try_others(&out);
    }

    /// Whatever length one unit says, the blocks of responses in the others are found.
    #[test]
    fn the_walk_goes_on_behind_damage(length in any::<u16>(), mpdu in 24usize..200) {
        let mut transfer = shared::received(&vec![8; mpdu]);
        transfer[..2].copy_from_slice(&length.to_le_bytes());
        transfer.extend(shared::block(&[(0xc0, 7, 0, &[0; 4])]));
        transfer.extend(shared::received(&[8; 40]));
        // a length that leads to a unit, or to the end, is believed
        let end = (4 + usize::from(length)).next_multiple_of(4);
        let believed = end == transfer.len() || transfer.get(end + 2..end + 4) == Some(&[0, 0x4e]);
        let found = Units::new(&transfer).any(|unit| match unit {
            Unit::Responses(mut block) => block.next().is_some_and(|r| r.sequence == 7),
            _ => false,
        });
        prop_assert!(found || believed);
    }
}

fn firmware_file() -> Vec<u8> {
    #[cfg(feature = "emulated")]
    let file = firmware::blank();
    #[cfg(not(feature = "emulated"))]
    let file = {
        let _ = firmware::feature::NEEDED;
        let mut file = vec![0; 636];
        file[512..520].copy_from_slice(b"OTAR\x20\0\x06\x07");
        file
    };
    file
}

/// A source of numbers that is the same in every run (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % n
    }
}

/// A million transfers, each of two to four units: received frames, and blocks of up to three responses.
/// The parser that walks the lengths finds them all, in their order; the one that looks at the first header alone
/// loses those behind it. Both see the same octets.
#[test]
fn a_million_grouped_transfers() {
    const TRANSFERS: u32 = 1_000_000;
    let mut random = Random(0x9170);
    let mut frame = [0; 200];
    let received = shared::received(&[8; 60]);
    let mut transfer = [0; 2_048];
    let (mut sent, mut lost, mut wrong, mut lost_by_first) = (0_u64, 0_u64, 0_u64, 0_u64);
    let mut expected = 0_u8;
    for _ in 0..TRANSFERS {
        let (mut end, mut count, before) = (0, 0_u64, expected);
        let units = 2 + random.below(3);
        for _ in 0..units {
            if random.below(3) == 0 {
                transfer[end..end + received.len()].copy_from_slice(&received);
                end += received.len();
                continue;
            }
            let mut at = 0;
            let responses = if random.below(20) < 19 {
                1
            } else {
                2 + random.below(2)
            };
            for _ in 0..responses {
                let status = TxStatus {
                    cookie: 1,
                    queue: 1,
                    rate: 0,
                    tries: 1,
                    success: true,
                }
                .octets();
                let sequence = (before.wrapping_add(count as u8)) % 16;
                frame[at..at + 8].copy_from_slice(&[4, 0xc1, sequence, 1, status[0], status[1], 0, 0]);
                at += 8;
                count += 1;
            }
            end += write_unit(&[&RESPONSE_MARK, &frame[..at]], &mut transfer[end..]).unwrap();
        }
        sent += count;
        let mut found = 0;
        for unit in Units::new(&transfer[..end]) {
            let Unit::Responses(block) = unit else { continue };
            for response in block {
                wrong += u64::from(response.sequence != expected);
                expected = (response.sequence + 1) % 16;
                found += 1;
            }
        }
        lost += count - found;
        lost_by_first += count - u64::from(FirstHeader(&transfer[..end]).response().is_some());
        expected = (before.wrapping_add(count as u8)) % 16;
    }
    println!(
        "{TRANSFERS} transfers, {sent} responses: {lost} lost, {lost_by_first} by the first header alone"
    );
    assert_eq!((lost, wrong), (0, 0));
    assert!(lost_by_first > sent / 100, "the comparison must be able to lose");
}
