//! Random octets and damaged specimens: a million inputs, always the same ones, none of which may panic, loop or
//! come back different.

mod shared;

/// xorshift64*: enough for this, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// 0 to n - 1.
    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }
}

/// Damages octets in one to four places: bits flipped, octets replaced by boring values, cut, repeated, inserted.
fn damage(octets: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let n = octets.len();
        if n == 0 {
            octets.push(random.next() as u8);
            continue;
        }
        let at = random.below(n);
        match random.below(6) {
            0 => octets[at] ^= 1 << random.below(8),
            1 => octets[at] = [0, 1, 0x7f, 0x80, 0xfe, 0xff][random.below(6)],
            2 => octets[at] = random.next() as u8,
            3 => octets.truncate(at),
            4 => octets.insert(at, random.next() as u8),
            _ => {
                let piece = octets[at..n.min(at + 1 + random.below(16))].to_vec();
                octets.extend(piece);
            }
        }
    }
}

/// Runs `check` on the specimens, on `inputs` damaged ones, and on a tenth as many random ones.
fn run(seed: u64, inputs: usize, specimens: &[Vec<u8>], check: fn(&[u8])) {
    for octets in specimens {
        check(octets);
        for n in 0..octets.len() {
            check(&octets[..n]);
        }
    }
    let mut random = Random(seed);
    let mut octets = Vec::new();
    for _ in 0..inputs {
        octets.clear();
        octets.extend_from_slice(&specimens[random.below(specimens.len())]);
        damage(&mut octets, &mut random);
        check(&octets);
    }
    for _ in 0..inputs / 10 {
        let n = random.below(80);
        octets.clear();
        octets.extend((0..n).map(|_| random.next() as u8));
        check(&octets);
    }
}

/// For the two largest parsers; a million in all.
const INPUTS: usize = 400_000;

#[test]
fn frames() {
    run(0x5eed_0001, INPUTS, &shared::frames(), shared::try_frame);
}

#[test]
fn elements() {
    let mut specimens = shared::elements();
    specimens.push(specimens.concat());
    run(0x5eed_0002, INPUTS / 2, &specimens, shared::try_elements);
}

#[test]
fn radiotap() {
    run(0x5eed_0003, INPUTS, &shared::packets(), shared::try_packet);
}

#[test]
fn bodies() {
    let mut specimens = shared::amsdus();
    specimens.extend(
        shared::frames()
            .into_iter()
            .map(|f| f[f.len().min(24)..].to_vec()),
    );
    specimens.push(b"\xaa\xaa\x03\0\0\0\x08\0 and so on".to_vec());
    run(0x5eed_0004, INPUTS / 4, &specimens, shared::try_body);
}

/// Every kind of frame and element is among the specimens, so that damage reaches all parsers.
#[test]
fn specimens_cover_everything() {
    use frame::element::Elements;
    use frame::{Frame, Wire};
    use std::collections::BTreeSet;

    let frames = shared::frames();
    let name = |debug: String| debug.split(['(', ' ']).next().unwrap_or_default().to_string();
    let kinds: BTreeSet<String> = frames
        .iter()
        .map(|f| name(format!("{:?}", Frame::parse(f).unwrap())))
        .collect();
    assert_eq!(kinds.len(), 18, "{kinds:?}");
    let all = shared::elements().concat();
    let kinds: BTreeSet<String> = Elements::new(&all)
        .iter()
        .map(|e| name(format!("{e:?}")))
        .collect();
    assert_eq!(kinds.len(), 15, "{kinds:?}");
    let fields: BTreeSet<String> = shared::packets()
        .iter()
        .flat_map(|p| frame::radiotap::Fields::new(p).unwrap())
        .map(|f| name(format!("{:?}", f.unwrap())))
        .collect();
    assert_eq!(fields.len(), 28, "{fields:?}");
}
