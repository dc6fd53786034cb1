//! Datagrams of anybody.

use super::*;

/// Octets from anywhere, ten times a millisecond for so many seconds: nothing panics, nothing is delivered that was not sent, timers
/// make sense. Tells the datagrams that were of no connection.
fn any_datagrams(seed: u64, seconds: u64) -> u64 {
    let mut dice = Dice::new(seed);
    let [mut a, mut b] = connected(&Config::adaptive(), 1_000);
    let mut s = Sheet::default();
    let mut fresh = ends(6, &Config::standard());
    a.write(at(0), &[1; 9_000]);
    for n in 0..10_000 * seconds {
        let now = at(1 + n / 10);
        let mut datagram = [0_u8; 60];
        let length = dice.within(0..=60) as usize;
        let datagram = &mut datagram[..length];
        datagram.iter_mut().for_each(|octet| *octet = dice.roll() as u8);
        if let Some(head) = datagram.first_chunk_mut::<4>() {
            *head = [2, 1, dice.roll() as u8 & 0xf0, dice.roll() as u8 & 0x37];
        }
        // near enough to be looked at
        if datagram.len() >= 16 && dice.chance(500) {
            let near =
                |dice: &mut Dice, n: u32| n.wrapping_add(dice.within(0..=4_000) as u32).wrapping_sub(2_000);
            let sequence = near(&mut dice, b.theirs.number(0)).to_be_bytes();
            let acknowledgement = near(&mut dice, b.ours.number(0)).to_be_bytes();
            datagram[8..12].copy_from_slice(&sequence);
            datagram[12..16].copy_from_slice(&acknowledgement);
        }
        for end in [&mut a, &mut b].into_iter().chain(&mut fresh) {
            end.handle(now, Event::Indication(datagram), &mut s);
            end.handle(now, Event::Timer, &mut s);
            assert!(s.0.len() <= 4 && s.0.drain(..).all(|d| d.len() <= MAX_PACKET_OCTETS));
            assert!(end.outbox.acknowledged() <= end.outbox.next());
        }
    }
    b.counters().foreign
}

#[test]
fn random_datagrams() {
    assert!(any_datagrams(9, 6) > 1_000);
}

/// The same for an hour, with new connections each minute.
#[test]
#[ignore = "takes seconds; in the step `long`"]
fn an_hour_of_random_datagrams() {
    for minute in 0..60 {
        assert!(any_datagrams(100 + minute, 60) > 10_000);
    }
}
