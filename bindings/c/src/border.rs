//! The border: pointers of C become references here and nowhere else, and no panic crosses it.
//!
//! What every function asks of C, besides what its own text says: a pointer is null or points to as much as its type or the
//! number beside it says, for the time of the call; a host is one of [`SDMAC_open`] that was not closed, and no other call
//! uses it meanwhile.
//!
//! The header is for readers of C, so this stands here once and not at each function.
#![allow(non_snake_case, unsafe_code, clippy::missing_safety_doc)]

use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use frame::llc::Snap;
use frame::mac::{Data, SequenceControl};
use frame::{MacAddr, Wire};

use crate::host::Host;
use crate::types::{Beacon, Confirm, How, Indication, Series, SetAnswer, Status};
use crate::value::Value;

/// Time to wait that never ends.
pub const FOREVER: u64 = u64::MAX;

/// Octets of a C buffer to read; empty for a null pointer.
///
/// # Safety
/// As the [module](self) says of pointers.
unsafe fn octets<'a>(from: *const u8, octets: usize) -> &'a [u8] {
    if from.is_null() || octets > isize::MAX as usize {
        return &[];
    }
    // SAFETY: the caller's promise: `octets` octets are there, and nobody writes to them during the call.
    unsafe { std::slice::from_raw_parts(from, octets) }
}

/// Copies into a C buffer as much as has room.
///
/// # Safety
/// As the [module](self) says of pointers; the buffer is not part of `from`.
unsafe fn copy(from: &[u8], to: *mut u8, room: usize) {
    if !to.is_null() {
        // SAFETY: the caller's promise: `room` octets may be written, and no reference to them exists here.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to, from.len().min(room)) };
    }
}

/// Does something with a host that has not ended; a panic is caught and remembered as its end.
///
/// # Safety
/// As the [module](self) says of hosts.
unsafe fn with(host: *mut Host, f: impl FnOnce(&mut Host) -> Result<(), Status>) -> c_int {
    // SAFETY: the caller's promise: null, or a host from `SDMAC_open` that nobody else uses now.
    let Some(host) = (unsafe { host.as_mut() }) else {
        return Status::Argument as c_int;
    };
    if host.is_broken() {
        return Status::Broken as c_int;
    }
    let done = catch_unwind(AssertUnwindSafe(|| f(host)));
    let status = match done {
        Ok(Ok(())) => Status::Ok,
        Ok(Err(status)) => status,
        Err(_) => host.broken("a fault of sdmac, which has printed what it is: please report it"),
    };
    status as c_int
}

/// Opens a host by its name:
///
/// - "simulator:2": stations of 802.11a that hear each other, in virtual time; ",seed=7" and ",loss=0.1" (of data frames) may
///   follow.
/// - "ar9170:2": the same of 802.11g, each with the project's driver over an emulated AR9170 stick.
/// - "usb:any@2412": an AR9170 stick of this computer, or "usb:1-2@2412" by where it is plugged in; ",firmware=FILE" may
///   follow, where it is not that of Debian. Only emulated ones have been tried: one of hardware also wants the tables of its PHY,
///   which are not here, so expect it to hear nothing.
/// - "linux:phy0@5180,phy1@5180": radios of this computer with their channels in MHz; it needs CAP_NET_ADMIN and CAP_NET_RAW.
///
/// NULL if that fails; then `why`, unless NULL, has a sentence of at most `room` octets, with the null octet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_open(name: *const c_char, why: *mut c_char, room: usize) -> *mut Host {
    let opened = if name.is_null() {
        Err("the name of the host is missing".to_owned())
    } else {
        // SAFETY: not null, and the caller's promise: a string that ends with a null octet.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        catch_unwind(|| Host::open(&name)).unwrap_or_else(|_| Err("a fault of sdmac".to_owned()))
    };
    match opened {
        Ok(host) => Box::into_raw(Box::new(host)),
        Err(sentence) => {
            let mut text = sentence.replace('\0', " ").into_bytes();
            text.truncate(room.saturating_sub(1));
            text.push(0);
            // SAFETY: the caller's promise on `why` and `room`.
            unsafe { copy(&text, why.cast(), room) };
            ptr::null_mut()
        }
    }
}

/// Ends a host; frames on their way end as they may. NULL is nothing to end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_close(host: *mut Host) {
    if !host.is_null() {
        // SAFETY: it came from `Box::into_raw` in `SDMAC_open`, and the caller promises not to use it again.
        let host = unsafe { Box::from_raw(host) };
        let _ = catch_unwind(AssertUnwindSafe(|| drop(host)));
    }
}

/// Interfaces of a host; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_interfaces(host: *const Host) -> u32 {
    // SAFETY: the caller's promise on hosts.
    unsafe { host.as_ref() }.map_or(0, |host| host.interfaces() as u32)
}

/// The host's clock, ns; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_now(host: *const Host) -> u64 {
    // SAFETY: the caller's promise on hosts.
    unsafe { host.as_ref() }.map_or(0, Host::now_ns)
}

/// Lets `wait_ns` pass; the host works meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_wait(host: *mut Host, wait_ns: u64) -> c_int {
    // SAFETY: the caller's promise on hosts.
    unsafe { with(host, |host| host.wait(wait_ns)) }
}

/// Why the host is broken (SDMAC_STATUS_BROKEN): a sentence, empty if it is not. Valid until the next call with this host.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_why(host: *const Host) -> *const c_char {
    // SAFETY: the caller's promise on hosts.
    let host = unsafe { host.as_ref() };
    // `why` ends with a null octet
    host.map_or(c"".as_ptr(), |host| host.why.as_ptr().cast())
}

/// An SDMAC_STATUS in words.
#[unsafe(no_mangle)]
pub extern "C" fn SDMAC_text(status: c_int) -> *const c_char {
    let text = match status {
        0 => c"done",
        -1 => c"nothing came within the time",
        -2 => c"a null pointer, a number without a meaning, or no such interface",
        -3 => c"a request with this identifier is open",
        -4 => c"too much waits: fetch confirms first",
        -5 => c"the buffer is too small for what came",
        -6 => c"this host or adapter cannot do it",
        -7 => c"the value is outside of what the adapter takes",
        -8 => c"the regulatory domain forbids it",
        -9 => c"the process lacks a permission",
        -10 => c"there is no such packet or queue",
        -11 => c"the host has ended: SDMAC_why() tells why",
        _ => c"no status of sdmac",
    };
    text.as_ptr()
}

/// A confirmed one-shot: one frame on the air at this rate, in the units of SDMAC_Series.
#[unsafe(no_mangle)]
pub extern "C" fn SDMAC_one_shot(rate: u8) -> How {
    SDMAC_multi_shot(rate, 1)
}

/// Up to `tries` frames at this rate, in the units of SDMAC_Series.
#[unsafe(no_mangle)]
pub extern "C" fn SDMAC_multi_shot(rate: u8, tries: u8) -> How {
    How {
        series: [Series { rate, tries }; 4],
        series_count: 1,
        ..How::default()
    }
}

/// Writes a data frame between stations into `frame`: header, LLC and SNAP, payload. Its length, or an SDMAC_STATUS.
/// `sequence` is the number of the frame, of which 12 bits count: one more for each new frame. The addresses have 6 octets each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_data_frame(
    frame: *mut u8,
    room: usize,
    to: *const u8,
    from: *const u8,
    bssid: *const u8,
    sequence: u16,
    ethertype: u16,
    payload: *const u8,
    payload_octets: usize,
) -> isize {
    // SAFETY: the caller's promise: three addresses of 6 octets, and the payload.
    let (to, from, bssid, payload) = unsafe {
        (
            octets(to, 6),
            octets(from, 6),
            octets(bssid, 6),
            octets(payload, payload_octets),
        )
    };
    let address = |a: &[u8]| a.try_into().map(MacAddr).ok();
    let (Some(to), Some(from), Some(bssid)) = (address(to), address(from), address(bssid)) else {
        return Status::Argument as isize;
    };
    let (mut body, mut mpdu) = ([0; radio::MAX_FRAME_OCTETS], [0; radio::MAX_FRAME_OCTETS]);
    let snap = Snap::ethernet(ethertype, payload);
    let data = |body| Data {
        sequence: SequenceControl::new(sequence & 0xfff, 0),
        ..Data::direct(to, from, bssid, body)
    };
    let length = snap
        .emit(&mut body)
        .and_then(|n| data(&body[..n]).emit(&mut mpdu));
    let Ok(length) = length else {
        return Status::OutOfRange as isize;
    };
    if frame.is_null() || length > room {
        return Status::TooSmall as isize;
    }
    // SAFETY: the caller's promise on `frame` and `room`.
    unsafe { copy(&mpdu[..length], frame, room) };
    length as isize
}

/// Asks for `frame` (an MPDU without FCS; the adapter fills in Duration and FCS, the program everything else) to be sent on
/// the queue `ac` of an interface, as `how` says. `id` is the program's own and must not be that of an open request of this
/// interface. Returns at once; exactly one confirm follows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_DATA_req(
    host: *mut Host,
    interface: u32,
    id: u64,
    frame: *const u8,
    frame_octets: usize,
    ac: u32,
    how: *const How,
) -> c_int {
    // SAFETY: the caller's promise on pointers and hosts; a How is integers, and any bits of them are values.
    unsafe {
        let (frame, how) = (octets(frame, frame_octets), how.as_ref());
        with(host, |host| {
            host.request(interface, id, frame, ac, how.ok_or(Status::Argument)?)
        })
    }
}

/// The next confirm of an interface, waiting for `wait_ns` at most. Without an open request it returns at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_DATA_con(
    host: *mut Host,
    interface: u32,
    confirm: *mut Confirm,
    wait_ns: u64,
) -> c_int {
    // SAFETY: the caller's promise on pointers and hosts.
    unsafe {
        with(host, |host| {
            let place = confirm.as_mut().ok_or(Status::Argument)?;
            *place = host.confirm(interface, wait_ns)?;
            Ok(())
        })
    }
}

/// The next frame that an interface has received, without FCS, waiting for `wait_ns` at most. A frame longer than `room` is
/// lost; its length is told.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_DATA_ind(
    host: *mut Host,
    interface: u32,
    about: *mut Indication,
    frame: *mut u8,
    room: usize,
    wait_ns: u64,
) -> c_int {
    // SAFETY: the caller's promise on pointers and hosts.
    unsafe {
        with(host, |host| {
            let place = about.as_mut().ok_or(Status::Argument)?;
            let heard = host.indication(interface, wait_ns)?;
            *place = heard.about;
            if heard.octets.len() > room || frame.is_null() {
                return Err(Status::TooSmall);
            }
            copy(&heard.octets, frame, room);
            Ok(())
        })
    }
}

/// The next beacon that an interface has received, waiting for `wait_ns` at most. `frame` may be NULL, for a program that
/// only wants to know that there was one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_beacon_ind(
    host: *mut Host,
    interface: u32,
    about: *mut Beacon,
    frame: *mut u8,
    room: usize,
    wait_ns: u64,
) -> c_int {
    // SAFETY: the caller's promise on pointers and hosts.
    unsafe {
        with(host, |host| {
            let place = about.as_mut().ok_or(Status::Argument)?;
            let heard = host.beacon(interface, wait_ns)?;
            *place = heard.about;
            if !frame.is_null() && heard.octets.len() > room {
                return Err(Status::TooSmall);
            }
            copy(&heard.octets, frame, room);
            Ok(())
        })
    }
}

/// Sets the attribute `name` (an SDMAC_NAME) of an interface, of its packet `id` or its queue `ac` where the name says so;
/// otherwise these do not matter. Waits for `wait_ns` at most until the adapter has answered: without an answer by then it
/// ends with SDMAC_STATUS_NOTHING, and SDMAC_DATA_set_con() tells the answer once it is there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_DATA_set(
    host: *mut Host,
    interface: u32,
    name: u32,
    value: *const Value,
    id: u64,
    ac: u32,
    wait_ns: u64,
) -> c_int {
    // SAFETY: the caller's promise on pointers and hosts; a Value is integers, and any bits of them are values.
    unsafe {
        let value = value.as_ref();
        with(host, |host| {
            let value = value.ok_or(Status::Argument)?;
            host.set(interface, name, value, id, ac, wait_ns)
        })
    }
}

/// The next answer to a change that SDMAC_DATA_set() did not wait for, in the order of the answers, waiting for `wait_ns` at most.
/// Without a change that has no answer it returns at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_DATA_set_con(
    host: *mut Host,
    interface: u32,
    answer: *mut SetAnswer,
    wait_ns: u64,
) -> c_int {
    // SAFETY: the caller's promise on pointers and hosts.
    unsafe {
        with(host, |host| {
            let place = answer.as_mut().ok_or(Status::Argument)?;
            *place = host.set_answer(interface, wait_ns)?;
            Ok(())
        })
    }
}

/// Reads the attribute `name` (an SDMAC_NAME) of an interface, of its packet `id` or its queue `ac` where the name says so;
/// otherwise these do not matter. It does not wait for the adapter: the answer is what the host knows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_DATA_get(
    host: *mut Host,
    interface: u32,
    name: u32,
    value: *mut Value,
    id: u64,
    ac: u32,
) -> c_int {
    // SAFETY: the caller's promise on pointers and hosts.
    unsafe {
        with(host, |host| {
            let place = value.as_mut().ok_or(Status::Argument)?;
            *place = host.get(interface, name, id, ac)?;
            Ok(())
        })
    }
}

/// Takes the request `id` back if it is not too late. Its confirm still comes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_DATA_abort(host: *mut Host, interface: u32, id: u64) -> c_int {
    // SAFETY: the caller's promise on hosts.
    unsafe { with(host, |host| host.abort(interface, id)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fault ends the host: it is told why, and whatever it holds is not used again.
    #[test]
    fn a_host_that_has_ended_stays_so() {
        // SAFETY: a string, a buffer with its length, and the host that comes of it, until it is closed.
        unsafe {
            let host = SDMAC_open(c"simulator:1".as_ptr(), ptr::null_mut(), 0);
            assert_eq!(*SDMAC_why(host), 0);
            assert_eq!(SDMAC_wait(host, 1_000), 0);
            let broken = Status::Broken as c_int;
            assert_eq!(with(host, |_| panic!("on purpose")), broken);
            let then = SDMAC_now(host);
            assert_eq!(SDMAC_wait(host, 1_000), broken);
            assert_eq!(SDMAC_DATA_con(host, 0, &mut Confirm::default(), 0), broken);
            assert_eq!(SDMAC_now(host), then, "nothing is done any more");
            assert!(
                CStr::from_ptr(SDMAC_why(host))
                    .to_string_lossy()
                    .contains("a fault of sdmac")
            );
            SDMAC_close(host);
        }
    }
}
