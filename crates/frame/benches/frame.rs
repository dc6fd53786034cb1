//! What a simulated adapter does for every frame.

#![allow(missing_docs)]

#[path = "../tests/shared/mod.rs"]
mod shared;

use divan::{Bencher, black_box};
use frame::element::{Ssid, Tim, WmmParameters};
use frame::mac::{Data, Header, SequenceControl, header};
use frame::mgmt::Beacon;
use frame::radiotap::Packet;
use frame::{Frame, Wire, fcs};

fn main() {
    divan::main();
}

/// What an adapter asks of a received QoS data frame.
#[divan::bench]
fn header_accessors(bencher: Bencher<'_, '_>) {
    let mpdu = shared::qos_data();
    bencher.bench_local(|| {
        let h = Header::parse(black_box(&mpdu)).unwrap();
        (
            h.receiver(),
            h.transmitter(),
            h.wants_ack(),
            h.tid(),
            h.sequence(),
            h.is_retry(),
            h.nav_us(),
        )
    });
}

#[divan::bench]
fn header_setters(bencher: Bencher<'_, '_>) {
    let mut mpdu = shared::qos_data();
    bencher.bench_local(|| {
        let mpdu = black_box(&mut mpdu[..]);
        header::set_retry(mpdu, true).unwrap();
        header::set_duration(mpdu, 44).unwrap();
        header::set_sequence(mpdu, SequenceControl::new(7, 0)).unwrap();
    });
}

#[divan::bench]
fn beacon_parse(bencher: Bencher<'_, '_>) {
    let mpdu = shared::beacon();
    bencher.bench_local(|| Beacon::parse(black_box(&mpdu)).unwrap());
}

/// With a look at the first, the fifth and the thirteenth of its 15 elements.
#[divan::bench]
fn beacon_parse_and_look_up(bencher: Bencher<'_, '_>) {
    let mpdu = shared::beacon();
    bencher.bench_local(|| {
        let b = Beacon::parse(black_box(&mpdu)).unwrap();
        (
            b.elements.get::<Ssid<'_>>(),
            b.elements.get::<Tim<'_>>(),
            b.elements.get::<WmmParameters>(),
        )
    });
}

#[divan::bench]
fn beacon_all_elements(bencher: Bencher<'_, '_>) {
    let mpdu = shared::beacon();
    bencher.bench_local(|| {
        let b = Beacon::parse(black_box(&mpdu)).unwrap();
        for element in b.elements {
            black_box(&element);
        }
    });
}

#[divan::bench]
fn frame_parse_data(bencher: Bencher<'_, '_>) {
    let mpdu = shared::qos_data();
    bencher.bench_local(|| Frame::parse(black_box(&mpdu)).unwrap());
}

/// 84 octets.
#[divan::bench]
fn data_emit(bencher: Bencher<'_, '_>) {
    let mpdu = shared::qos_data();
    let data = Data::parse(&mpdu).unwrap();
    let mut out = [0; 100];
    bencher.bench_local(|| black_box(&data).emit(black_box(&mut out)).unwrap());
}

#[divan::bench]
fn radiotap_parse(bencher: Bencher<'_, '_>) {
    let packet = shared::packets().swap_remove(0);
    bencher.bench_local(|| Packet::parse(black_box(&packet)).unwrap());
}

#[divan::bench(args = [14, 84, 1536])]
fn fcs_compute(bencher: Bencher<'_, '_>, octets: usize) {
    let mpdu = vec![0x5a; octets];
    bencher.bench_local(|| fcs::compute(black_box(&mpdu)));
}
