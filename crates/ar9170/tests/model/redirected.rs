//! The stick behind usbredir: what Linux does with it at first, packet by packet, and any octets.

use ar9170::codec::stream::{Unit, Units};
use ar9170::codec::{Order, Response, command};
use ar9170::emulated::{Knobs, Redirected};
use ar9170::usbredir::{Control, Packet, Reader, Status, Transfer};
use proptest::prelude::*;
use radio::{Duration, Event, Protocol};

use crate::air::{Air, acked, eeprom};

#[path = "../../tests/shared/usbredir.rs"]
mod shared;

/// A computer that has it plugged in.
struct Host {
    stick: Redirected,
    air: Air,
    reader: Reader,
    last_id: u64,
}

impl Host {
    fn new(knobs: Knobs) -> Host {
        let mut host = Host {
            stick: Redirected::new(eeprom(), knobs),
            air: Air::new(acked),
            reader: Reader::default(),
            last_id: 0,
        };
        host.stick.connect();
        let now = host.air.now;
        host.stick.receive(now, &shared::hello(), &mut host.air).unwrap();
        host
    }

    /// Says this and gives its id.
    fn say(&mut self, packet: &Packet) -> u64 {
        self.last_id += 1;
        let mut octets = Vec::new();
        packet.emit(self.last_id, &mut octets);
        let now = self.air.now;
        self.stick.receive(now, &octets, &mut self.air).unwrap();
        self.last_id
    }

    fn told(&mut self) -> Vec<(u64, Packet)> {
        self.reader.push(&std::mem::take(self.stick.output()));
        std::iter::from_fn(|| self.reader.packet().unwrap()).collect()
    }

    fn control(
        &mut self,
        request_type: u8,
        request: u8,
        value: u16,
        length: u16,
        data: &[u8],
    ) -> (u8, Vec<u8>) {
        let control = Control {
            endpoint: request_type & 0x80,
            request,
            request_type,
            status: 0,
            value,
            index: 0,
            length,
        };
        let id = self.say(&Packet::Control(control, data.to_vec()));
        match self.told().pop() {
            Some((answered, Packet::Control(end, data))) if answered == id => (end.status, data),
            other => panic!("{other:?}"),
        }
    }

    fn read(&mut self) -> u64 {
        let wanted = Transfer {
            endpoint: 0x82,
            status: 0,
            length: 8_192,
        };
        self.say(&Packet::Bulk(wanted, Vec::new()))
    }

    fn command(&mut self, order: &Order) {
        let transfer = Transfer {
            endpoint: 4,
            status: 0,
            length: order.octets().len() as u32,
        };
        self.say(&Packet::Interrupt(transfer, order.octets().to_vec()));
    }

    /// Uploads an image and starts it.
    fn boot(&mut self) {
        assert_eq!(
            self.control(0x40, 0x30, 0x2000, 4_096, &[0; 4_096]),
            (0, Vec::new())
        );
        assert_eq!(self.control(0x40, 0x31, 0, 0, &[]), (0, Vec::new()));
        let due = self.stick.deadline().unwrap();
        self.air.now = due;
        self.stick.handle(due, Event::Timer, &mut self.air);
    }
}

fn responses(transfer: &[u8]) -> Vec<(u8, u8)> {
    let blocks = Units::new(transfer).filter_map(|unit| match unit {
        Unit::Responses(block) => Some(block),
        _ => None,
    });
    blocks
        .flatten()
        .map(|r: Response<'_>| (r.code, r.sequence))
        .collect()
}

/// Those of a Linux that was watched: enumeration, reset, upload, BOOT and ECHO.
#[test]
fn a_computer_finds_it_and_starts_it() {
    let mut host = Host::new(Knobs::default());
    let told: Vec<Packet> = host.told().into_iter().map(|t| t.1).collect();
    assert!(matches!(
        &told[..],
        [
            Packet::Hello(..),
            Packet::Endpoints(_),
            Packet::Interfaces(_),
            Packet::DeviceConnect(_)
        ]
    ));
    let (status, device) = host.control(0x80, 6, 0x0100, 18, &[]);
    assert_eq!((status, &device[8..12]), (0, &[0xf3, 0x0c, 0x70, 0x91][..]));
    assert_eq!(
        host.control(0x80, 6, 0x0200, 9, &[]).1.len(),
        9,
        "no more than was asked for"
    );
    assert_eq!(host.control(0x80, 6, 0x0600, 10, &[]).0, Status::Stall as u8);
    host.say(&Packet::Reset);
    let id = host.say(&Packet::SetConfiguration(1));
    let told = host.told();
    assert!(matches!(
        told[..],
        [(0, Packet::Endpoints(_)), (0, Packet::Interfaces(_)), _]
    ));
    assert_eq!(told[2], (id, Packet::Configuration(0, 1)));

    let reads = [host.read(), host.read()];
    host.boot();
    let [(id, Packet::Bulk(end, boot))] = &host.told()[..] else {
        panic!("one transfer")
    };
    assert_eq!((*id, end.length as usize), (reads[0], boot.len()));
    // as it was seen: length and tag, the pattern, the event
    let expected = [&[0x10, 0, 0, 0x4e][..], &[0xff; 12], &[0, 0xcf, 0, 0]].concat();
    assert_eq!(boot, &expected);
    let (status, _) = host.control(0x40, 0x30, 0x2000, 0, &[]);
    assert_eq!(status, Status::Stall as u8, "the firmware takes no image");
    host.command(&Order::echo(0x4a11_0123));
    let echo = host.told().into_iter().find_map(|(id, p)| match p {
        Packet::Bulk(_, data) if id == reads[1] => Some(data),
        _ => None,
    });
    let expected = [
        &[0x14, 0, 0, 0x4e][..],
        &[0xff; 12],
        &[4, 2, 1, 0, 0x23, 1, 0x11, 0x4a],
    ]
    .concat();
    assert_eq!(echo, Some(expected));
    assert_eq!((host.stick.starts(), host.stick.resets()), (1, 1));
    let counts: Vec<_> = host.stick.commands().iter().collect();
    assert_eq!(counts, [(&(command::Code::Echo, true), &1)]);
}

/// Whoever takes a read back gets it back; a reset gives all of them back.
#[test]
fn reads_end_once() {
    let mut host = Host::new(Knobs::default());
    host.told();
    let (a, b) = (host.read(), host.read());
    host.last_id = a - 1;
    host.say(&Packet::Cancel);
    host.last_id = b;
    let ended = |host: &mut Host| -> Vec<(u64, u8)> {
        let told = host.told().into_iter();
        told.filter_map(|(id, p)| match p {
            Packet::Bulk(end, _) => Some((id, end.status)),
            _ => None,
        })
        .collect()
    };
    assert_eq!(ended(&mut host), [(a, Status::Cancelled as u8)]);
    host.say(&Packet::Reset);
    assert_eq!(ended(&mut host), [(b, Status::Cancelled as u8)]);
    // too small a read
    let small = Transfer {
        endpoint: 0x82,
        status: 0,
        length: 8,
    };
    let id = host.say(&Packet::Bulk(small, Vec::new()));
    host.boot();
    assert_eq!(ended(&mut host), [(id, Status::Babble as u8)]);
}

/// The number is skipped once, although the stick is started anew in between, as Linux does.
#[test]
fn a_number_is_skipped_once() {
    let mut host = Host::new(Knobs {
        skip_response: Some(3),
        ..Knobs::default()
    });
    for expected in [[0, 1, 3, 4], [0, 1, 2, 3]] {
        host.say(&Packet::Reset);
        host.told();
        host.boot();
        (0..3).for_each(|n| host.command(&Order::echo(n)));
        host.read();
        let told = host.told();
        let Some((_, Packet::Bulk(_, data))) = told.last() else {
            panic!("{told:?}")
        };
        let numbers: Vec<u8> = responses(data).iter().map(|r| r.1).collect();
        assert_eq!(numbers, expected);
    }
}

/// What is late is there when its time has come, together with what was said meanwhile.
#[test]
fn what_is_late_comes_grouped() {
    let knobs = Knobs {
        late_interrupt: 1.0,
        late_ns: 1_000_000,
        ..Knobs::default()
    };
    let mut host = Host::new(knobs);
    let reads: Vec<u64> = (0..4).map(|_| host.read()).collect();
    host.boot();
    let booted = host.air.now;
    host.command(&Order::echo(1));
    host.command(&Order::echo(2));
    let read = |host: &mut Host| -> Vec<(u64, usize)> {
        let ended = host.told().into_iter().filter_map(|(id, packet)| match packet {
            Packet::Bulk(t, data) if t.endpoint == 0x82 => Some((id, responses(&data).len())),
            _ => None,
        });
        ended.collect()
    };
    assert_eq!(read(&mut host), []);
    let due = host.stick.deadline().unwrap();
    assert_eq!(due.since(booted), Duration::from_ms(1));
    host.air.now = due;
    host.stick.handle(due, Event::Timer, &mut host.air);
    assert_eq!(read(&mut host), [(reads[0], 3)]);
    assert_eq!(host.stick.deadline(), None);
}

/// A computer that does not read, since its driver starts anew, does not stop the clock when the time of what is late has come.
#[test]
fn what_was_late_waits_for_a_read() {
    let mut host = Host::new(Knobs {
        late_interrupt: 1.0,
        ..Knobs::default()
    });
    let taken_back = host.read();
    host.boot();
    host.last_id = taken_back - 1;
    host.say(&Packet::Cancel);
    let due = host.stick.deadline().unwrap();
    host.air.now = due;
    host.stick.handle(due, Event::Timer, &mut host.air);
    assert_eq!(host.stick.deadline(), None);
    host.told();
    // and is not late again
    host.last_id = taken_back;
    let id = host.read();
    let Some((answered, Packet::Bulk(_, data))) = host.told().pop() else {
        panic!("nothing was read")
    };
    assert_eq!((answered, responses(&data).len()), (id, 1));
}

#[test]
fn packets_are_read_as_they_are_written() {
    for packet in shared::packets() {
        let mut octets = shared::hello();
        packet.emit(7, &mut octets);
        let mut reader = Reader::default();
        reader.push(&octets);
        reader.packet().unwrap();
        assert_eq!(reader.packet(), Ok(Some((7, packet))));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_octets(octets in proptest::collection::vec(any::<u8>(), 0..400)) {
        shared::try_stream(&octets);
        let mut octets = octets;
        octets.splice(..0, shared::hello());
        shared::try_stream(&octets);
    }

    /// Packets that make sense, in any order, one of them damaged.
    #[test]
    fn any_packets(which in proptest::collection::vec((0usize..22, any::<u64>()), 0..40), at in any::<usize>(), to in any::<u8>()) {
        let all = shared::packets();
        let mut octets = Vec::new();
        for (n, id) in which {
            all[n % all.len()].emit(id, &mut octets);
        }
        shared::try_stream(&octets);
        if !octets.is_empty() {
            let place = at % octets.len();
            octets[place] = to;
            shared::try_stream(&octets);
        }
    }
}
