//! The dissector reads what the transport writes. Runs where tshark is installed, and says so where it is not.

use std::path::Path;
use std::process::Command;

use protocols::transport::wire::{Control, Header, OPTION_RAW_DELAY, ProtocolId};
use radio::{Duration, Instant};
use transfer::secure::{Guard, Key};

/// A capture file (linktype raw IP) with the first `snap` octets of packets with these datagrams in UDP from and to port 7800.
fn capture(datagrams: &[Vec<u8>], snap: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    for datagram in datagrams {
        let udp = 8 + datagram.len() as u16;
        let ip = 20 + udp;
        let captured = snap.min(ip.into());
        for word in [1, 0, captured as u32, u32::from(ip)] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        let begin = out.len();
        out.extend_from_slice(&[0x45, 0]);
        out.extend_from_slice(&ip.to_be_bytes());
        out.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        for half in [7_800, 7_800, udp, 0] {
            out.extend_from_slice(&u16::to_be_bytes(half));
        }
        out.extend_from_slice(datagram);
        out.truncate(begin + captured);
    }
    out
}

/// What tshark shows of these datagrams, a line each, and what it says beside.
fn shown(datagrams: &[Vec<u8>], snap: usize) -> (Vec<String>, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("atp.pcap");
    std::fs::write(&file, capture(datagrams, snap)).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("wireshark/sdmac-atp.lua");
    let output = Command::new("tshark")
        .arg("-X")
        .arg(format!("lua_script:{}", script.display()))
        .arg("-r")
        .arg(&file)
        .args([
            "-T",
            "fields",
            "-e",
            "_ws.col.Info",
            "-e",
            "sdmac-atp.spacing",
            "-e",
            "sdmac-atp.block.left",
            "-e",
            "_ws.expert.message",
        ])
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    let lines = shown.lines().map(|line| line.trim_end().to_owned()).collect();
    (lines, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn what_the_dissector_shows() {
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("skipped: no tshark");
        return;
    }
    let header = |control| Header {
        sequence: 1_000,
        acknowledgement: 2_000,
        delay_us: 1_500,
        spacing_us: 250,
        hops: 3,
        options: OPTION_RAW_DELAY,
        ..Header::new(ProtocolId::Atp, control)
    };
    let call = header(Control::SYN.with(Control::SACK_REQ)).octets().to_vec();
    let data = [&header(Control::ACK).octets()[..], b"some content"].concat();
    let mut feedback = header(Control::ACK.with(Control::SACK_OPT));
    feedback.size = 16;
    let blocks: Vec<u8> = [10_u32, 20, 30, 40]
        .iter()
        .flat_map(|n| n.to_be_bytes())
        .collect();
    let feedback = [&feedback.octets()[..], &blocks].concat();
    let key = Key([3; 32]);
    let mut guard = Guard::caller(&key, Duration::from_ms(1_000)).unwrap();
    let handshake = guard.call(Instant::ZERO).unwrap().unwrap().to_vec();
    let (mut other, _) = Guard::listener(&key, &handshake).unwrap();
    let sealed = other.seal(&data).unwrap().to_vec();

    // what every receiver drops
    let mut sized = header(Control::ACK);
    sized.size = 8;
    let many = Header {
        size: 168,
        ..header(Control::ACK.with(Control::SACK_OPT))
    };
    let many = [&many.octets()[..], &[0; 168]].concat();
    let long = [&header(Control::ACK).octets()[..], &[0; 1_449]].concat();
    let segment = Header {
        size: 9_000,
        ..Header::new(ProtocolId::Tcp, Control::ACK)
    };
    let dropped = [sized.octets().to_vec(), many, long];
    assert!(dropped.iter().all(|d| Header::parse(d).is_err()));
    let all = [call, data, feedback, handshake, sealed, segment.octets().to_vec()];

    let (lines, said) = shown(&[&all[..], &dropped].concat(), 65_535);
    assert_eq!(
        lines,
        [
            "SACK_REQ,SYN seq=1000 ack=2000 D=1500 us, 3 hops\t250",
            "ACK seq=1000 ack=2000 D=1500 us, 3 hops, 12 octets\t250",
            "SACK_OPT,ACK seq=1000 ack=2000 D=1500 us, 3 hops, 2 missing\t250\t10,30",
            "Handshake, call",
            "ACK seq=1000 ack=2000 D=1500 us, 3 hops, sealed\t250",
            "ACK seq=0 ack=0 stamp=0, 0 hops\t0",
            "ACK seq=1000 ack=2000 D=1500 us, 3 hops\t250\t\ta SACK length in a packet that is no feedback",
            "SACK_OPT,ACK seq=1000 ack=2000 D=1500 us, 3 hops, 21 missing\t250\t0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\tthe SACK length does not fit the \
             body, or is longer than 20 blocks",
            "ACK seq=1000 ack=2000 D=1500 us, 3 hops, 1449 octets\t250\t\tmore than 1448 octets of data",
        ],
        "{said}"
    );

    // 52 octets are headers
    for (snap, left) in [(52, ""), (61, "10"), (75, "10,30")] {
        let (lines, said) = shown(&all[1..5], snap);
        let feedback = format!("SACK_OPT,ACK seq=1000 ack=2000 D=1500 us, 3 hops, 2 missing\t250\t{left}");
        assert_eq!(
            lines,
            [
                "ACK seq=1000 ack=2000 D=1500 us, 3 hops, 12 octets\t250",
                feedback.trim_end(),
                "Handshake, call",
                "ACK seq=1000 ack=2000 D=1500 us, 3 hops, sealed\t250",
            ],
            "{snap}: {said}"
        );
    }
}
