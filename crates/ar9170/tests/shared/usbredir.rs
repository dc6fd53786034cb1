//! Shared by tests and the fuzz target: what must hold for any octets that come over a connection of usbredir.
#![allow(dead_code)]

use ar9170::codec::Eeprom;
use ar9170::emulated::{Knobs, Redirected};
use ar9170::usbredir::{Control, DeviceConnect, Endpoints, Interfaces, Packet, Reader, Transfer, capability};
use radio::{AdapterId, Attribute, AttributeName, Event, Instant, Msdu, Protocol, Radio, Token, Tsf, TxHow};

/// Nobody is there, and nothing ends.
#[derive(Default)]
pub struct Nowhere(u64);

impl Radio for Nowhere {
    fn token(&mut self) -> Token {
        self.0 += 1;
        Token(self.0)
    }
    fn request(&mut self, _: Token, _: &[u8], _: &TxHow) {}
    fn set(&mut self, _: Token, _: AdapterId, _: Attribute) {}
    fn get(&self, _: AdapterId, name: AttributeName) -> Option<Attribute> {
        (name == AttributeName::Tsf).then_some(Attribute::Tsf(Tsf(1_000)))
    }
    fn abort(&mut self, _: Token) {}
    fn deliver(&mut self, _: Msdu<'_>) {}
}

/// The greeting of a QEMU.
pub fn hello() -> Vec<u8> {
    let mut out = Vec::new();
    Packet::Hello(b"qemu usb-redir guest 7.2.22".to_vec(), capability::NEEDED | 0x8d).emit(0, &mut out);
    out
}

/// One packet of each kind.
pub fn packets() -> Vec<Packet> {
    let control = Control {
        endpoint: 0x80,
        request: 6,
        request_type: 0x80,
        status: 0,
        value: 0x0100,
        index: 0,
        length: 18,
    };
    let transfer = |endpoint| Transfer {
        endpoint,
        status: 0,
        length: 4,
    };
    let connect = DeviceConnect {
        speed: 2,
        class: [255, 255, 0],
        vendor: 0x0cf3,
        product: 0x9170,
        version: 0x0106,
    };
    vec![
        Packet::Hello(b"someone".to_vec(), capability::NEEDED),
        Packet::DeviceConnect(connect),
        Packet::DeviceDisconnect,
        Packet::Reset,
        Packet::Interfaces(Interfaces(vec![(0, [255, 255, 0]), (1, [8, 6, 80])])),
        Packet::Endpoints(Endpoints::none().with(0x82, 2, 0, 512)),
        Packet::SetConfiguration(1),
        Packet::GetConfiguration,
        Packet::Configuration(0, 1),
        Packet::SetAlternative(0, 0),
        Packet::GetAlternative(0),
        Packet::Alternative(0, 0, 0),
        Packet::StartInterrupts(0x83),
        Packet::StopInterrupts(0x83),
        Packet::Interrupts(0, 0x83),
        Packet::Cancel,
        Packet::Control(control, Vec::new()),
        Packet::Control(
            Control {
                endpoint: 0,
                request: 0x31,
                request_type: 0x40,
                length: 0,
                ..control
            },
            Vec::new(),
        ),
        Packet::Bulk(transfer(0x01), vec![1, 2, 3, 4]),
        Packet::Bulk(
            Transfer {
                length: 8_192,
                ..transfer(0x82)
            },
            Vec::new(),
        ),
        // ECHO without octets to echo
        Packet::Interrupt(transfer(0x04), vec![0, 2, 0, 0]),
        Packet::Other(99),
    ]
}

/// What is understood is written as it was read, and a stick at the far end neither falls over nor talks without end.
pub fn try_stream(octets: &[u8]) {
    let mut reader = Reader::default();
    reader.push(octets);
    let mut written = Vec::new();
    while let Ok(Some((id, packet))) = reader.packet() {
        written.clear();
        packet.emit(id, &mut written);
        let mut again = Reader::default();
        if !matches!(packet, Packet::Hello(..)) {
            again.push(&hello());
            let _ = again.packet();
        }
        again.push(&written);
        assert_eq!(again.packet(), Ok(Some((id, packet))));
    }
    let eeprom = Eeprom {
        ghz5: false,
        ghz2_4: true,
        domain: 0,
        address: frame::MacAddr::local(1),
        receive_chains: 1,
        transmit_chains: 1,
    };
    let mut stick = Redirected::new(eeprom, Knobs::default());
    let (mut radio, mut now) = (Nowhere::default(), Instant::ZERO);
    stick.connect();
    let _ = stick.receive(now, &hello(), &mut radio);
    let _ = stick.receive(now, octets, &mut radio);
    for _ in 0..20 {
        let Some(due) = stick.deadline() else { break };
        assert!(due >= now);
        now = now.max(due);
        stick.handle(now, Event::Timer, &mut radio);
    }
    // each packet is answered by one of at most a transfer, and most by far less
    assert!(stick.output().len() < 4_096 + 64 * 8_300 + 40 * octets.len());
    stick.disconnect(now, &mut radio);
    assert!(stick.output().is_empty());
}
