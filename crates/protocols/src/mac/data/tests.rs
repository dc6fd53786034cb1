//! Octets of frames, roles of addresses, duplicates.

use super::*;
use frame::mac::Header;
use frame::mac::header::set_retry;
use proptest::prelude::*;

const AP: MacAddr = MacAddr::local(1);
const STA: MacAddr = MacAddr::local(2);
const OTHER: MacAddr = MacAddr::local(3);
const VO: AccessCategory = AccessCategory::Voice;

fn build<'o>(f: &mut Framer, to: MacAddr, out: &'o mut [u8]) -> &'o mut [u8] {
    f.frame(to, VO, false, b"he", b"llo", out).unwrap()
}

#[test]
fn octets_of_a_qos_frame() {
    let mut out = [0xff; 64];
    let mut f = Framer::new(Identity::station(STA, AP), true, ETHERTYPE_PAYLOAD);
    build(&mut f, OTHER, &mut out);
    let mpdu = build(&mut f, OTHER, &mut out);
    #[rustfmt::skip]
    assert_eq!(mpdu, [
        0x88, 0x01, 0, 0, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 3, 0x10, 0, 6, 0,
        0xaa, 0xaa, 3, 0, 0, 0, 0x88, 0xb5, b'h', b'e', b'l', b'l', b'o',
    ]);
    assert_eq!(mpdu.len() + 4, 5 + QOS_OVERHEAD_OCTETS);
}

/// Of QoS data to all nobody shall acknowledge any (IEEE 802.11-2016, Table 9-9).
#[test]
fn groups_get_qos_only_where_all_read_it() {
    let identity = Identity {
        me: STA,
        role: Role::Direct { bssid: AP },
    };
    let mut out = [0; 64];
    let mut plain = Framer::new(identity, true, ETHERTYPE_PAYLOAD);
    let mpdu = build(&mut plain, MacAddr::BROADCAST, &mut out);
    assert_eq!((mpdu[0], Header::parse(mpdu).unwrap().tid()), (0x08, None));
    let mut all = Framer::all_qos(identity, ETHERTYPE_PAYLOAD);
    let mpdu = build(&mut all, MacAddr::BROADCAST, &mut out);
    assert_eq!((mpdu[0], mpdu[24]), (0x88, 0x20 | 6), "no ACK, voice");
    assert_eq!(Header::parse(mpdu).unwrap().access_category(), VO);
    let mpdu = build(&mut all, OTHER, &mut out);
    assert_eq!(mpdu[24], 6, "one is asked for an ACK as always");
}

/// 50 octets of payload make an MPDU of 86 (plain) or 88 octets (QoS): 36 us at 54 Mb/s, as SDMAC
/// (Cena et al. 2018) has it in Table III.
#[test]
fn airtime_of_the_measurement_frame() {
    for (qos, octets) in [(false, 86), (true, 88)] {
        let mut out = [0; 128];
        let mut f = Framer::new(Identity::station(STA, AP), qos, ETHERTYPE_PAYLOAD);
        let mpdu = f.frame(AP, VO, false, &[], &[0; 50], &mut out).unwrap();
        let length = mpdu.len() as u32 + 4;
        assert_eq!(length, octets);
        assert_eq!(
            frame::ppdu_us(frame::Rate::OFDM_54, length, frame::Band::Ghz5),
            36
        );
    }
}

#[test]
fn addresses_by_role() {
    let direct = Identity {
        me: STA,
        role: Role::Direct { bssid: AP },
    };
    let mut out = [0; 64];
    for (identity, to, receiver) in [
        (Identity::station(STA, AP), OTHER, AP),
        (Identity::access_point(AP), OTHER, OTHER),
        (direct, OTHER, OTHER),
        (direct, MacAddr::BROADCAST, MacAddr::BROADCAST),
    ] {
        let mut f = Framer::new(identity, true, ETHERTYPE_PAYLOAD);
        let mpdu = build(&mut f, to, &mut out);
        assert_eq!(Header::parse(mpdu).unwrap().receiver(), receiver);
        assert_eq!(identity.receiver(to), receiver);
        let r = Received::parse(mpdu).unwrap();
        assert_eq!(
            (r.source, r.destination, r.payload),
            (identity.me, to, &b"hello"[..])
        );
        assert_eq!(r.tid.is_some(), !to.is_group());
        assert!(r.is_for(OTHER) && !r.is_for(identity.me));
        assert_eq!(r.is_for(MacAddr::local(9)), to.is_group());
    }
}

#[test]
fn numbers_run_per_traffic_identifier_and_wrap() {
    let mut f = Framer::new(Identity::station(STA, AP), true, ETHERTYPE_PAYLOAD);
    let mut out = [0; 64];
    let mut number = |f: &mut Framer, to, category| {
        let mpdu = f.frame(to, category, false, &[], b"x", &mut out).unwrap();
        Header::parse(mpdu).unwrap().sequence().unwrap().number()
    };
    for i in 0..4_096 {
        assert_eq!(number(&mut f, AP, VO), i);
    }
    assert_eq!(number(&mut f, AP, VO), 0);
    assert_eq!(number(&mut f, AP, AccessCategory::Video), 0);
    assert_eq!(number(&mut f, MacAddr::BROADCAST, VO), 0);
}

#[test]
fn what_is_too_long_uses_no_number() {
    let mut f = Framer::new(Identity::station(STA, AP), true, ETHERTYPE_PAYLOAD);
    let mut out = [0; 40];
    assert_eq!(
        f.frame(AP, VO, false, &[], &[0; 7], &mut out).unwrap_err(),
        TooLong
    );
    let mpdu = f.frame(AP, VO, false, &[], &[0; 6], &mut out).unwrap();
    assert_eq!(Header::parse(mpdu).unwrap().sequence(), Some(SequenceControl(0)));
}

#[test]
fn duplicates_have_the_retry_bit_and_the_same_number() {
    let mut f = Framer::new(Identity::station(STA, AP), true, ETHERTYPE_PAYLOAD);
    let (mut first, mut second) = ([0; 64], [0; 64]);
    let first = build(&mut f, AP, &mut first);
    let second = build(&mut f, AP, &mut second);
    let mut seen: Duplicates<2> = Duplicates::default();
    let mut check = |mpdu: &[u8]| seen.is_duplicate(&Received::parse(mpdu).unwrap());
    assert!(
        !check(first) && !check(first),
        "the same number without the retry bit is new"
    );
    set_retry(first, true).unwrap();
    assert!(check(first) && check(first));
    set_retry(second, true).unwrap();
    assert!(!check(second), "the first one that is heard of it");
    assert!(check(second));
    assert!(check(first), "a retry that another frame went before");
}

#[test]
fn the_window_moves_on_and_wraps() {
    let mut w = Window::new((AP, None), 4_090);
    let mut mark = |n| w.mark(n, false);
    for n in (4_091..4_096).chain(0..10) {
        assert!(!mark(n));
    }
    assert!(mark(4_090) && mark(9) && !mark(4_089) && mark(4_089));
    assert!(!mark(150), "a gap");
    assert!(!mark(130) && !mark(23) && mark(150));
    assert!(!mark(9), "out of the window: the sender has started again");
    assert!(!mark(10) && mark(9) && !mark(150));
}

/// A straggler that is older than the window goes back, as it comes where others are sent between a frame and its retry: what was heard
/// since then is known all the same. Two of them in a row, the second one newer, are a sender that has started again.
#[test]
fn a_retry_from_behind_the_window_makes_nothing_forgotten() {
    let mut w = Window::new((AP, None), 999);
    (1_000..1_200).for_each(|n| assert!(!w.mark(n, false)));
    assert!(!w.mark(1_050, true), "nobody knows");
    assert!(w.mark(1_050, true), "the same again");
    assert!(w.mark(1_199, true) && w.mark(1_100, true), "not forgotten");
    assert!(
        !w.mark(1_040, true) && !w.mark(1_200, false) && !w.mark(1_041, true),
        "others between them"
    );
    assert!(w.mark(1_200, true));
    // started again, and none but retries arrive
    assert!(!w.mark(100, true) && !w.mark(102, true));
    assert!(w.mark(100, true) && !w.mark(101, true) && w.mark(102, true) && !w.mark(103, true));
    // from half of all numbers on it is ahead
    assert!(!w.mark(3_000, true) && w.mark(3_000, true));
}

#[test]
fn the_memory_for_duplicates_forgets_who_was_silent_longest() {
    let mut out = [0; 64];
    let mut seen: Duplicates<2> = Duplicates::default();
    let mut hear = |node: u32| {
        let mut f = Framer::new(
            Identity::station(MacAddr::local(node), AP),
            true,
            ETHERTYPE_PAYLOAD,
        );
        let mpdu = build(&mut f, AP, &mut out);
        set_retry(mpdu, true).unwrap();
        seen.is_duplicate(&Received::parse(mpdu).unwrap())
    };
    assert_eq!(
        [10, 11, 10, 12, 10, 11].map(&mut hear),
        [false, false, true, false, true, false]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn any_octets(mpdu in proptest::collection::vec(any::<u8>(), 0..60), first in 0usize..4) {
        let mut mpdu = mpdu;
        if let Some(o) = mpdu.first_mut() {
            *o = [0x08, 0x88, *o, 0x80][first];
        }
        if let Some(r) = Received::parse(&mpdu) {
            prop_assert!(mpdu.ends_with(r.payload));
        }
    }

    #[test]
    fn what_is_framed_is_read(payload in proptest::collection::vec(any::<u8>(), 0..200), qos: bool, ap: bool) {
        let identity = if ap { Identity::access_point(AP) } else { Identity::station(STA, AP) };
        let mut f = Framer::new(identity, qos, 0x1234);
        let mut out = [0; 450];
        let mpdu = f.frame(OTHER, VO, true, &payload, &payload, &mut out).unwrap();
        let r = Received::parse(mpdu).unwrap();
        prop_assert_eq!((r.source, r.destination, r.ethertype), (identity.me, OTHER, 0x1234));
        prop_assert_eq!(r.tid, qos.then_some(6));
        prop_assert_eq!(r.payload, [&payload[..], &payload[..]].concat());
        prop_assert_eq!(Header::parse(mpdu).unwrap().wants_ack(), !qos);
    }
}

#[test]
fn a_sender_knows_what_its_receivers_have_forgotten() {
    let mut framer = Framer::new(Identity::access_point(MacAddr::local(0)), true, ETHERTYPE_PAYLOAD);
    let mut frame = |category| {
        let mut out = [0; 64];
        let frame = framer.frame(MacAddr::local(1), category, false, &[], b"x", &mut out);
        frame.unwrap().to_vec()
    };
    let mut newest = Newest::NONE;
    let [first, of_another] =
        [AccessCategory::Video, AccessCategory::Voice].map(|c| newest.sent(&frame(c)).unwrap());
    // more than all numbers
    for n in 1..=4_200 {
        newest.sent(&frame(AccessCategory::Video)).unwrap();
        assert_eq!(newest.is_forgotten(first), n >= 128, "{n}");
    }
    assert!(!newest.is_forgotten(of_another) && newest.sent(&[0x80]).is_none());
    // what others have overtaken on its way is as old as it is
    let late: std::vec::Vec<_> = (0..100).map(|_| frame(AccessCategory::Video)).collect();
    newest.sent(&late[99]).unwrap();
    let overtaken = newest.sent(&late[0]).unwrap();
    for n in 0..29 {
        assert_eq!(newest.is_forgotten(overtaken), n == 29, "{n}");
        newest.sent(&frame(AccessCategory::Video)).unwrap();
    }
    assert!(newest.is_forgotten(overtaken));
    // numbers that were used up by what was never sent: nearly all of them, and then the rest
    let before = newest.sent(&frame(AccessCategory::Video)).unwrap();
    (0..3_900).for_each(|_| drop(frame(AccessCategory::Video)));
    newest.sent(&frame(AccessCategory::Video)).unwrap();
    assert!(newest.is_forgotten(before));
    (0..200).for_each(|_| drop(frame(AccessCategory::Video)));
    newest.sent(&frame(AccessCategory::Video)).unwrap();
    assert!(newest.is_forgotten(before));
}
