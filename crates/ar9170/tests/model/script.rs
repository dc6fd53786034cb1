//! The bus as an adversary whose moves are octets: for tests and for the fuzz target `driver`.

use ar9170::driver::{BusEvent, Config};
use ar9170::emulated::Knobs;
use ar9170::pipe::{Act, DRIVER_OCTETS, Decoder, Tell};
use frame::{EdcaParams, MacAddr, Rate, RateSet};
use radio::{
    Attribute, BeaconTiming, Duration, Event, Instant, Protocol, Queue, ReceiveFilter, SeriesList, Token, Tsf,
};

use crate::air::{Air, Computer, ME, Sends, acked, computer, file, from_peer, indication};

pub const MS: fn(u64) -> Duration = Duration::from_ms;

/// Times so short that all of them pass while it is disturbed.
pub const CONFIG: Config = Config {
    mhz: 2_412,
    address: None,
    requests: u16::MAX,
    reads: 4,
    window: 2,
    completion_timeout: MS_5,
    response_timeout: Duration::from_ms(20),
    status_timeout: Duration::from_ms(30),
    keep_alive: Duration::from_ms(25),
    control_timeout: MS_5,
    reset_timeout: Duration::from_ms(20),
    boot_timeout: Duration::from_ms(10),
    rest: MS_5,
};
const MS_5: Duration = Duration::from_ms(5);
/// The longest way up: until it is found out, the longest rest (64 times 5 ms), and before it and after it whatever it may wait for.
pub const BOUND: Duration = Duration::from_ms(25 + 64 * 5 + 2 * (20 + 30 + 5 + 20 + 10) + 100);
/// Events of a script at most.
const EVENTS: usize = 300;
/// Frames that the protocol sends.
const FRAMES: u16 = 200;

/// Changes of attributes that the protocol asks for at most.
const ASKS: usize = 60;

/// Any two octets as a change of an attribute: what the driver has, in all ways, and what it has not.
fn attribute(which: u8, value: u8) -> Attribute {
    let edca = EdcaParams {
        aifsn: value & 0x1f,
        cw_min: (1 << (value & 7)) - 1,
        cw_max: (1 << (value >> 4)) - 1,
        txop_us: u32::from(value) * 32,
    };
    match which % 19 {
        // it dozes, and is woken, more often than anything else
        0..3 => Attribute::Reception(false),
        3..6 => Attribute::Reception(true),
        6 => Attribute::ReceiveFilter(ReceiveFilter::All),
        7 => Attribute::ReceiveFilter(ReceiveFilter::Management),
        8 => match value % 2 {
            0 => Attribute::ReceiveFilter(ReceiveFilter::Data),
            _ => Attribute::ReceiveFilter(ReceiveFilter::Unicast),
        },
        // partly nonsense
        18 => Attribute::BeaconTiming(BeaconTiming {
            interval_tu: u16::from(value) % 40,
            atim_window_tu: u16::from(value / 5),
        }),
        9 => Attribute::Tsf(Tsf(u64::from(value) << 40)),
        10 => Attribute::Channel([2_412, 2_437, 5_180, 17][usize::from(value % 4)]),
        11 => Attribute::TxPower(value as i8),
        12 => Attribute::Edca(Queue::ALL[usize::from(value % 5)], edca),
        13 => Attribute::SlotTime(value.into()),
        14 => Attribute::Promiscuous(value > 127),
        15 => Attribute::Bssid(MacAddr::local(value.into())),
        16 => match value % 4 {
            0 => Attribute::BasicRates(RateSet::EMPTY),
            1 => Attribute::BasicRates(RateSet::HR_DSSS),
            2 => Attribute::Address(MacAddr::local(value.into())),
            _ => Attribute::RtsThreshold(u16::from(value) * 8),
        },
        _ => match value % 2 {
            0 => Attribute::CarrierSense(false),
            _ => Attribute::PacketSeries(Token(value.into()), SeriesList::one(Rate::OFDM_24, value % 8 + 1)),
        },
    }
}

/// Any octets as changes of attributes, one after the other: three octets for each, of which the first says how long after the
/// last.
pub fn asks(octets: &[u8]) -> Vec<(Duration, Attribute)> {
    let mut at_us = 0;
    let ask = |three: &[u8]| {
        at_us += u64::from(three[0]) * 50;
        (Duration::from_us(at_us), attribute(three[1], three[2]))
    };
    octets.chunks_exact(3).take(ASKS).map(ask).collect()
}

/// Reads a script: one octet says what happens, those behind it how.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn octet(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Octets behind a length.
    fn octets(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(self.octet()?) * 2;
        let (octets, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        Some(octets)
    }

    /// A transfer with one response, whose parts may be wrong.
    fn response(&mut self) -> Option<Vec<u8>> {
        let [code, sequence, more] = [self.octet()?, self.octet()?, self.octet()?];
        let payload = self.octets()?;
        let mut block = vec![0xff; 12];
        block.extend([payload.len() as u8, code, sequence & 0x1f, more]);
        block.extend(payload);
        let mut out = (block.len() as u16).to_le_bytes().to_vec();
        out.extend([0, 0x4e]);
        out.extend(block);
        out.resize(out.len().next_multiple_of(4), 0);
        Some(out)
    }

    /// Tells the driver one thing, has the stick hang, or lets time pass; `None` at its end. Says whether the stick is `gone` by
    /// what was told.
    fn step(&mut self, computer: &mut Computer<'_>, air: &mut Air, gone: &mut bool) -> Option<()> {
        let kind = self.octet()?;
        let owned;
        let event = match kind % 13 {
            0..3 => {
                let until = air.now + Duration::from_us(u64::from(self.octet()?) * 100);
                air.run(computer, until);
                return Some(());
            }
            3 if kind < 128 => BusEvent::Received(self.octets()?),
            3 => BusEvent::Cut(self.octets()?),
            4..7 => {
                owned = self.response()?;
                BusEvent::Received(&owned)
            }
            7 => BusEvent::Sent(self.octet()?.into(), kind < 128),
            8 => BusEvent::ControlDone(kind < 128),
            9 => BusEvent::ReadFailed,
            10 => BusEvent::Attached,
            11 => BusEvent::Detached,
            _ => {
                computer.hang();
                return Some(());
            }
        };
        *gone = is_gone(&event, *gone);
        computer.disturb(air.now, event);
        computer.handle(air.now, Event::Timer, air);
        Some(())
    }
}

/// Whether the driver was told last that there is no stick.
pub fn is_gone(event: &BusEvent<'_>, before: bool) -> bool {
    match event {
        BusEvent::Detached => true,
        BusEvent::Attached => false,
        _ => before,
    }
}

/// From now on the stick behaves; one of which was said that it is `gone` is plugged in again, and no other is. It is up within
/// [`BOUND`], answers, and stays up. How long it was until it was up for good.
pub fn recovers(computer: &mut Computer<'_>, air: &mut Air, gone: bool) -> Duration {
    if gone {
        computer.disturb(air.now, BusEvent::Attached);
    }
    let quiet = air.now;
    let mut down = quiet;
    while air.now < quiet + BOUND {
        let next = air.now + Duration::from_us(500);
        air.run(computer, next);
        if !computer.is_up() {
            down = air.now;
        }
    }
    assert!(computer.is_up(), "not up after {BOUND:?}");
    let before = *computer.counts();
    let until = air.now + MS(1_000);
    air.run(computer, until);
    let after = *computer.counts();
    assert_eq!(after.restarts, before.restarts, "it stays up");
    assert!(after.responses > before.responses, "it answers");
    down.since(quiet)
}

/// A frame on the air is heard by the protocol.
pub fn hears(computer: &mut Computer<'_>, air: &mut Air) -> bool {
    let before = computer.protocol().inner().heard.len();
    let frame = from_peer(ME, 0x9170);
    computer.handle(air.now, Event::Indication(indication(&frame)), air);
    let until = air.now + MS(10);
    air.run(computer, until);
    computer.protocol().inner().heard.len() == before + 1
}

/// Any octets as a script: the driver does not panic, is up within a bounded time after the script's end, and has kept the
/// laws towards its protocol, which may want nothing but to listen.
pub fn try_driver(octets: &[u8]) {
    let file = file();
    let mut script = Script(octets);
    let first = script.octet().unwrap_or(0);
    let listens = first % 2 == 1;
    let sends = match listens {
        true => Sends::default(),
        false => Sends {
            asks: asks(script.octets().unwrap_or_default()),
            ..Sends::every(MS(1), FRAMES)
        },
    };
    let frames = sends.plan.len();
    let mut computer = computer(&file, CONFIG, Knobs::default(), sends);
    let mut air = Air::new(acked);
    let first = Duration::from_us(1 + u64::from(first) * 300);
    air.run(&mut computer, Instant::ZERO + first);
    let mut gone = false;
    for _ in 0..EVENTS {
        if script.step(&mut computer, &mut air, &mut gone).is_none() {
            break;
        }
    }
    recovers(&mut computer, &mut air, gone);
    assert!(!listens || hears(&mut computer, &mut air));
    let mut node = computer.into_protocol();
    node.finish();
    assert_eq!(node.violations(), 0);
    let node = node.inner();
    assert_eq!(node.confirms.len(), frames);
    assert_eq!(node.answers.len(), node.asked);
    assert!(
        node.asks.is_empty() || node.asked > node.asks.len(),
        "it is awake at the end"
    );
}

/// Any octets as what comes out of a pipe, in pieces: each is taken or counted as damaged, what is understood is written as it
/// was read, and a whole message behind them is found.
pub fn try_pipe(octets: &[u8]) {
    let mut decoder = Box::new(Decoder::<DRIVER_OCTETS>::new());
    let mut look = |octets: &[u8]| {
        let mut last = None;
        for piece in octets.chunks(57) {
            let mut left = piece;
            while !left.is_empty() {
                let taken = decoder.feed(left);
                left = &left[taken..];
                let mut found = 0;
                while let Some(packet) = decoder.packet() {
                    found += 1;
                    if let Some((now, tell)) = Tell::parse(packet) {
                        let mut again = Vec::new();
                        assert!(tell.write(now, &mut |part| again.extend_from_slice(part)));
                        last = Some(now);
                    }
                    let _ = Act::parse(packet);
                }
                assert!(taken > 0 || found > 0, "it goes on");
            }
        }
        last
    };
    look(octets);
    // longer than any packet: what was left of one is over by then
    look(&[0; 2 * DRIVER_OCTETS]);
    let mut message = Vec::new();
    let now = Instant::from_ns(77);
    assert!(Tell::Timer.write(now, &mut |part| message.extend_from_slice(part)));
    assert_eq!(look(&message), Some(now), "the next message is found");
}
