//! The primitives as C calls them, on the hosts that are on every machine.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::ptr;

use sdmac::*;

const RATE: u8 = 108;
const VOICE: u32 = 3;
const S: u64 = 1_000_000_000;

/// A host that is closed in the end.
struct Open(*mut SDMACHost);
type SDMACHost = std::ffi::c_void;

fn open(name: &str) -> Result<Open, String> {
    let name = CString::new(name).unwrap();
    let mut why = [0; 300];
    // SAFETY: a string, and a buffer with its length.
    let host = unsafe { SDMAC_open(name.as_ptr(), why.as_mut_ptr(), why.len()) };
    if host.is_null() {
        // SAFETY: it has put a string there.
        return Err(unsafe { CStr::from_ptr(why.as_ptr()) }
            .to_string_lossy()
            .into_owned());
    }
    Ok(Open(host.cast()))
}

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: from `open`, and not used again.
        unsafe { SDMAC_close(self.0.cast()) };
    }
}

fn address(station: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, station + 1]
}

impl Open {
    fn request(&self, interface: u32, id: u64, to: [u8; 6], payload: &[u8], how: &How) -> i32 {
        let from = address(interface as u8);
        let mut frame = [0; 2_000];
        // SAFETY: buffers with their lengths, and a host.
        unsafe {
            let octets = SDMAC_data_frame(
                frame.as_mut_ptr(),
                frame.len(),
                to.as_ptr(),
                from.as_ptr(),
                from.as_ptr(),
                id as u16,
                0x88b5,
                payload.as_ptr(),
                payload.len(),
            );
            assert_eq!(octets, 24 + 8 + payload.len() as isize);
            SDMAC_DATA_req(
                self.0.cast(),
                interface,
                id,
                frame.as_ptr(),
                octets as usize,
                VOICE,
                how,
            )
        }
    }

    fn confirm(&self, interface: u32, wait_ns: u64) -> Result<Confirm, i32> {
        let mut confirm = Confirm::default();
        // SAFETY: a host, and a place for the answer.
        match unsafe { SDMAC_DATA_con(self.0.cast(), interface, &mut confirm, wait_ns) } {
            0 => Ok(confirm),
            status => Err(status),
        }
    }

    fn indication(
        &self,
        interface: u32,
        room: usize,
        wait_ns: u64,
    ) -> Result<(Indication, Vec<u8>), (i32, usize)> {
        let (mut about, mut frame) = (Indication::default(), vec![0; room]);
        // SAFETY: a host, and places for the answer.
        let status = unsafe {
            SDMAC_DATA_ind(
                self.0.cast(),
                interface,
                &mut about,
                frame.as_mut_ptr(),
                room,
                wait_ns,
            )
        };
        if status != 0 {
            return Err((status, about.octets));
        }
        frame.truncate(about.octets);
        Ok((about, frame))
    }

    fn set(&self, name: Name, value: Value, id: u64) -> i32 {
        self.set_within(name, value, id, 10 * S)
    }

    fn set_within(&self, name: Name, value: Value, id: u64, wait_ns: u64) -> i32 {
        // SAFETY: a host and a value.
        unsafe { SDMAC_DATA_set(self.0.cast(), 0, name as u32, &value, id, VOICE, wait_ns) }
    }

    fn set_answer(&self, wait_ns: u64) -> Result<SetAnswer, i32> {
        let mut answer = SetAnswer::default();
        // SAFETY: a host and a place for the answer.
        match unsafe { SDMAC_DATA_set_con(self.0.cast(), 0, &mut answer, wait_ns) } {
            0 => Ok(answer),
            status => Err(status),
        }
    }

    fn get(&self, name: Name, id: u64) -> Result<Value, i32> {
        let mut value = Value::default();
        // SAFETY: a host and a place for the answer.
        match unsafe { SDMAC_DATA_get(self.0.cast(), 0, name as u32, &mut value, id, VOICE) } {
            0 => Ok(value),
            status => Err(status),
        }
    }

    fn now(&self) -> u64 {
        // SAFETY: a host.
        unsafe { SDMAC_now(self.0.cast()) }
    }
}

/// What a program does first: send, learn what became of it, receive. Both with waiting and without.
fn exchange(name: &str) {
    let host = open(name).unwrap();
    // SAFETY: a host.
    assert_eq!(unsafe { SDMAC_interfaces(host.0.cast()) }, 2);
    let one_shot = SDMAC_one_shot(RATE);
    for id in 1..=5 {
        assert_eq!(host.request(0, id, address(1), b"setpoint", &one_shot), 0);
        let begun = host.now();
        assert_eq!(
            host.confirm(0, 0),
            Err(Status::Nothing as i32),
            "no time passes without waiting"
        );
        assert_eq!(host.now(), begun);
        let confirm = host.confirm(0, 5 * S).unwrap();
        assert_eq!(
            (confirm.id, confirm.outcome),
            (id, Outcome::Acked as u32),
            "{confirm:?}"
        );
        assert_eq!(
            (confirm.attempts, confirm.rate_100kbps, confirm.ac),
            (1, 540, VOICE)
        );
        let (about, frame) = host.indication(1, 2_000, S).unwrap();
        assert_eq!((about.idr, about.octets), (id, 40));
        assert!(frame.ends_with(b"setpoint"));
    }
    assert_eq!(
        host.confirm(0, FOREVER),
        Err(Status::Nothing as i32),
        "nothing is open"
    );
    // nobody has this address
    assert_eq!(
        host.request(0, 9, address(7), b"?", &SDMAC_multi_shot(RATE, 3)),
        0
    );
    let confirm = host.confirm(0, 5 * S).unwrap();
    assert_eq!((confirm.outcome, confirm.attempts), (Outcome::NotAcked as u32, 3));
}

#[test]
fn frames_are_sent_confirmed_and_received_in_the_simulator() {
    exchange("simulator:2");
}

#[test]
fn frames_are_sent_confirmed_and_received_over_emulated_sticks() {
    exchange("ar9170:2");
}

/// A stick takes time to come up; what waits for that can be taken back, too.
#[test]
fn a_request_can_be_taken_back_before_the_stick_is_up() {
    let host = open("ar9170:2").unwrap();
    let late = How {
        not_before_ns: host.now() + S,
        ..SDMAC_one_shot(RATE)
    };
    assert_eq!(host.request(0, 1, address(1), b"", &late), 0);
    // SAFETY: a host.
    assert_eq!(unsafe { SDMAC_DATA_abort(host.0.cast(), 0, 1) }, 0);
    let confirm = host.confirm(0, 5 * S).unwrap();
    assert_eq!((confirm.outcome, confirm.attempts), (Outcome::Aborted as u32, 0));
}

#[test]
fn identifiers_and_room_are_the_programs_affair_and_it_is_told() {
    let host = open("simulator:2").unwrap();
    // nothing goes out before a second has passed
    let late = How {
        not_before_ns: S,
        ..SDMAC_one_shot(RATE)
    };
    assert_eq!(host.request(0, 1, address(1), b"", &late), 0);
    assert_eq!(host.request(0, 1, address(1), b"", &late), Status::IdInUse as i32);
    assert_eq!(host.get(Name::Packet, 1).unwrap().number, 0, "it waits");
    // SAFETY: a host.
    unsafe {
        assert_eq!(SDMAC_DATA_abort(host.0.cast(), 0, 2), Status::NotFound as i32);
        assert_eq!(SDMAC_DATA_abort(host.0.cast(), 0, 1), 0);
    }
    assert_eq!(host.confirm(0, S).unwrap().outcome, Outcome::Aborted as u32);
    let begun = host.now();
    let late = How {
        not_before_ns: begun + S,
        ..late
    };
    for id in 0..1_024 {
        assert_eq!(host.request(0, id, address(1), b"", &late), 0, "{id}");
    }
    assert_eq!(
        host.request(0, 2_000, address(1), b"", &late),
        Status::Full as i32
    );
    // SAFETY: a host.
    assert_eq!(unsafe { SDMAC_wait(host.0.cast(), 3 * S) }, 0);
    assert_eq!(host.now(), begun + 3 * S);
    // all came while nobody looked; the identifiers tell which is which
    let ids: std::collections::BTreeSet<u64> = (0..1_024).map(|_| host.confirm(0, 0).unwrap().id).collect();
    assert_eq!(ids.len(), 1_024);
    let received = std::iter::from_fn(|| host.indication(1, 100, 0).ok()).count();
    assert!(received > 0);
}

#[test]
fn attributes_are_read_and_written() {
    let host = open("simulator:2").unwrap();
    let number = |number| Value {
        number,
        ..Value::default()
    };
    assert_eq!(host.get(Name::Channel, 0).unwrap().number, 5_180);
    assert_eq!(host.get(Name::Address, 0).unwrap().address, address(0));
    assert_eq!(host.set(Name::AckTimeout, number(60), 0), 0);
    assert_eq!(host.get(Name::AckTimeout, 0).unwrap().number, 60);
    assert_eq!(
        host.set(Name::TxPower, number(1_000), 0),
        Status::OutOfRange as i32
    );
    assert_eq!(
        host.set(Name::Counters, number(0), 0),
        Status::NotSupported as i32
    );
    assert_eq!(
        host.set(Name::PacketSeries, number(0), 7),
        Status::NotFound as i32
    );
    assert_eq!(host.get(Name::Packet, 7), Err(Status::NotFound as i32));
    let edca = host.get(Name::Edca, 0).unwrap().edca;
    assert_eq!(
        (edca.aifsn, edca.cw_min, edca.cw_max),
        (2, 3, 7),
        "802.11a, voice"
    );
    host.request(0, 1, address(1), b"", &SDMAC_one_shot(RATE));
    host.confirm(0, S).unwrap();
    assert_eq!(host.get(Name::Counters, 0).unwrap().counters.tx_acked, 1);
}

/// A stick answers later. What was not waited for is told by its name, and what was waited for is not told again.
#[test]
fn changes_are_answered_later_to_who_does_not_wait() {
    let host = open("ar9170:2").unwrap();
    let number = |number| Value {
        number,
        ..Value::default()
    };
    let nothing = Status::Nothing as i32;
    assert_eq!(host.set_answer(FOREVER), Err(nothing), "nothing was asked for");
    let begun = host.now();
    assert_eq!(host.set_within(Name::SlotTime, number(9), 5, 0), nothing);
    assert_eq!(host.set_within(Name::TxPower, number(100), 6, 0), nothing);
    assert_eq!((host.set_answer(0), host.now()), (Err(nothing), begun));
    assert_eq!(
        host.set(Name::ReceiveFilter, number(1), 7),
        0,
        "this is waited for"
    );
    let mut told: Vec<SetAnswer> = (0..2).map(|_| host.set_answer(10 * S).unwrap()).collect();
    // what is out of range is known at once
    told.sort_by_key(|answer| answer.id);
    for (answer, name, id, status) in [
        (told[0], Name::SlotTime, 5, Status::Ok),
        (told[1], Name::TxPower, 6, Status::OutOfRange),
    ] {
        let expected = SetAnswer {
            name: name as u32,
            id,
            ac: VOICE,
            status: status as i32,
        };
        assert_eq!(answer, expected);
    }
    assert_eq!(host.set_answer(FOREVER), Err(nothing), "all are told");
    assert_eq!(host.get(Name::SlotTime, 0).unwrap().number, 9);
}

#[test]
fn what_is_wrong_is_a_status_and_a_sentence() {
    let why = |name: &str| open(name).err().unwrap();
    assert!(why("mars:1").contains("no such kind"));
    assert!(why("linux:phy99@5180").len() > 10);
    let host = open("simulator:1").unwrap();
    let wrong = Status::Argument as i32;
    assert_eq!(host.confirm(1, 0), Err(wrong), "there is no interface 1");
    assert_eq!(
        host.request(0, 1, address(1), b"", &How::default()),
        wrong,
        "no series"
    );
    // SAFETY: null is what these are to bear, and the host is one.
    unsafe {
        assert_eq!(SDMAC_DATA_con(ptr::null_mut(), 0, ptr::null_mut(), 0), wrong);
        assert_eq!(SDMAC_DATA_con(host.0.cast(), 0, ptr::null_mut(), 0), wrong);
        assert_eq!(SDMAC_DATA_set(host.0.cast(), 0, 2, ptr::null(), 0, 0, 0), wrong);
        assert_eq!(SDMAC_DATA_set_con(host.0.cast(), 0, ptr::null_mut(), 0), wrong);
        assert_eq!(
            SDMAC_DATA_get(host.0.cast(), 0, 99, &mut Value::default(), 0, 0),
            wrong
        );
        assert_eq!(
            SDMAC_DATA_req(host.0.cast(), 0, 1, ptr::null(), 9, 0, ptr::null()),
            wrong
        );
        assert_eq!(SDMAC_open(ptr::null(), ptr::null_mut(), 0), ptr::null_mut());
        assert_eq!(*SDMAC_why(host.0.cast()), 0);
        for status in -12..=1 {
            assert!(!CStr::from_ptr(SDMAC_text(status)).is_empty());
        }
        SDMAC_close(ptr::null_mut());
    }
    // an empty frame is none: the host says so in its confirm
    let one_shot = SDMAC_one_shot(RATE);
    // SAFETY: a host; null is what it is to bear.
    let taken = unsafe { SDMAC_DATA_req(host.0.cast(), 0, 1, ptr::null(), 0, 1, &one_shot) };
    assert_eq!(taken, 0);
    let confirm = host.confirm(0, S).unwrap();
    assert_eq!((confirm.outcome, confirm.refusal), (2, Refusal::BadFrame as u32));
}

#[test]
fn a_frame_without_room_is_lost_and_its_length_is_told() {
    let host = open("simulator:2").unwrap();
    host.request(0, 1, address(1), &[7; 100], &SDMAC_one_shot(RATE));
    assert_eq!(host.indication(1, 131, S), Err((Status::TooSmall as i32, 132)));
    assert_eq!(
        host.indication(1, 132, S).err().unwrap().0,
        Status::Nothing as i32
    );
}

#[test]
fn a_seed_is_a_run() {
    let run = |seed: u32| {
        let host = open(&format!("simulator:2,seed={seed},loss=0.5")).unwrap();
        let attempts = (0..20).map(|id| {
            host.request(0, id, address(1), b"", &SDMAC_multi_shot(RATE, 7));
            host.confirm(0, S).unwrap().attempts
        });
        attempts.collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    assert!(
        run(1).into_iter().sum::<u16>() > 25,
        "half of the frames are lost"
    );
}
