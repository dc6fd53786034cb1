//! The border: pointers of C become references here.
//!
//! What every function asks of C, besides what its own text says: a pointer is null or points to as much as its type or the
//! number beside it says, for the time of the call; a station is one of [`SDMAC_IBSS_init`], and no other call uses it
//! meanwhile.
//!
//! The header is for readers of C, so this stands here once and not at each function.
#![allow(non_snake_case, unsafe_code, clippy::missing_safety_doc)]

use core::ffi::c_char;
use core::panic::PanicInfo;
use core::ptr;

use frame::MacAddr;
use protocols::mac::ccmp::{CcmpCounters, Secret};
use protocols::mac::ibss::{Ibss, IbssConfig, PowerProfile};
use radio::{
    AdapterId, Confirm, Duration, Event, Indication, Instant, Msdu, Outcome, Protocol, Stamps, Token, Tsf,
};

use crate::radio_of_c::{Above, Desk, Radio};
use crate::types::{self, Config, Counters};

/// Packets that wait for their receivers at most.
const PACKETS: usize = 4;
/// Octets of a payload at most: the MTU that IPv6 asks for.
pub const PAYLOAD: usize = 1280;
/// Octets of memory for a station, aligned to 16.
pub const OCTETS: usize = 8448;
/// No deadline.
pub const NEVER: u64 = u64::MAX;

/// A station.
#[repr(align(16))]
pub struct Station {
    link: Ibss<PACKETS, PAYLOAD, Above>,
    desk: Desk,
    power: PowerProfile,
}

const _: () = assert!(size_of::<Station>() <= OCTETS && align_of::<Station>() == 16);

impl Station {
    fn tell(&mut self, now_ns: u64, event: Event<'_>) {
        let now = Instant::from_ns(now_ns);
        self.link.handle(now, event, &mut self.desk);
        self.answer(now);
    }

    fn answer(&mut self, now: Instant) {
        while let Some(answer) = self.desk.owed() {
            self.link.handle(now, Event::Set(answer), &mut self.desk);
        }
    }
}

/// Octets of a C buffer to read; empty for a null pointer.
///
/// # Safety
/// As the [module](self) says of pointers.
unsafe fn octets<'a>(from: *const u8, octets: usize) -> &'a [u8] {
    if from.is_null() || octets > isize::MAX as usize {
        return &[];
    }
    // SAFETY: the caller's promise: `octets` octets are there, and nobody writes to them during the call.
    unsafe { core::slice::from_raw_parts(from, octets) }
}

/// Fills in a config for a station with this address: 100 TU without power save, a scan of 7 s, 6 Mb/s, IPv6, slots of
/// 802.11a, and round numbers for what the radio draws (1500, 800, 800 and 10 mW). The name of the network is missing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_IBSS_config(config: *mut Config, address: *const u8) {
    // SAFETY: the caller's promise: 6 octets, and a place.
    let (address, config) = unsafe { (octets(address, 6), config.as_mut()) };
    let (Ok(address), Some(config)) = (address.try_into(), config) else {
        return;
    };
    let own = IbssConfig::new(MacAddr(address), "", frame::Rate::OFDM_6);
    *config = Config {
        address,
        ssid: ptr::null(),
        ssid_octets: 0,
        channel: 0,
        interval_tu: own.interval_tu,
        atim_window_tu: own.atim_window_tu,
        bssid: [0; 6],
        ethertype: 0x86dd,
        scan_ms: 7_000,
        active_scan: own.active_scan,
        power_save: own.power_save,
        wake_ahead_us: (own.wake_ahead.as_ns() / 1_000) as u32,
        adapt_wake_ahead: own.adapt_wake_ahead,
        soft_beacon_us: 0,
        multi_hop: own.multi_hop,
        key: ptr::null(),
        key_id: 0,
        first_packet: 0,
        rate: types::octet(own.rate),
        group_rate: types::octet(own.group_rate),
        tries: own.tries,
        lifetime_intervals: own.lifetime_intervals,
        slot_us: (own.slot.as_ns() / 1_000) as u32,
        cw_min: own.cw_min,
        seed: own.seed,
        power: PowerProfile::TYPICAL.into(),
    };
}

/// Makes a station in `memory` and starts it; it looks for its network from now on. NULL if the memory is too small or not
/// aligned, if a number in `config` has no meaning, or if `radio` lacks a function that this config takes. Config and radio are copied; the memory
/// is the library's until the firmware uses it for something else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_IBSS_init(
    memory: *mut u8,
    memory_octets: usize,
    config: *const Config,
    radio: *const Radio,
    now_ns: u64,
) -> *mut Station {
    let place = memory.cast::<Station>();
    // SAFETY: the caller's promise on pointers.
    let (config, radio) = unsafe { (config.as_ref(), radio.as_ref()) };
    let (Some(config), Some(radio)) = (config, radio) else {
        return ptr::null_mut();
    };
    // SAFETY: the caller's promise: as many octets, which stay for good.
    let ssid: &'static [u8] = unsafe { octets(config.ssid.cast(), config.ssid_octets) };
    let (Ok(ssid), Some(rate), Some(group_rate)) = (
        core::str::from_utf8(ssid),
        types::rate(config.rate),
        types::rate(config.group_rate),
    ) else {
        return ptr::null_mut();
    };
    // SAFETY: the caller's promise: 16 octets, if it is not null.
    let key = unsafe { octets(config.key, 16) };
    let secret = key.try_into().ok().map(|key| Secret {
        key,
        id: config.key_id,
        first_pn: config.first_packet,
    });
    let fits = !place.is_null() && place.is_aligned() && memory_octets >= size_of::<Station>();
    let numbers = secret.is_none_or(|s| s.id < 4 && (1..1 << 48).contains(&s.first_pn));
    if !fits || !numbers || !config.has_meaning() || !radio.is_whole(config.multi_hop) {
        return ptr::null_mut();
    }
    let own = IbssConfig {
        channel: (config.channel > 0).then_some(config.channel),
        interval_tu: config.interval_tu,
        atim_window_tu: config.atim_window_tu,
        bssid: (config.bssid != [0; 6]).then_some(MacAddr(config.bssid)),
        ethertype: config.ethertype,
        active_scan: config.active_scan,
        power_save: config.power_save,
        scan: Duration::from_ms(config.scan_ms.into()),
        wake_ahead: Duration::from_us(config.wake_ahead_us.into()),
        adapt_wake_ahead: config.adapt_wake_ahead,
        multi_hop: config.multi_hop,
        secret,
        soft_beacon: (config.soft_beacon_us > 0).then(|| Duration::from_us(config.soft_beacon_us.into())),
        group_rate,
        tries: config.tries,
        lifetime_intervals: config.lifetime_intervals,
        slot: Duration::from_us(config.slot_us.into()),
        cw_min: config.cw_min,
        seed: config.seed,
        ..IbssConfig::new(MacAddr(config.address), ssid, rate)
    };
    let station = Station {
        link: Ibss::with_routing(own, Above::of(radio)),
        desk: Desk::new(*radio),
        power: config.power.into(),
    };
    // SAFETY: aligned, large enough, and by the caller's promise nobody else's.
    let station = unsafe {
        place.write(station);
        &mut *place
    };
    station.tell(now_ns, Event::Start);
    station
}

/// When SDMAC_IBSS_timer() is to be called next; SDMAC_IBSS_NEVER: not by itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_IBSS_deadline(station: *const Station) -> u64 {
    // SAFETY: the caller's promise on stations.
    let station = unsafe { station.as_ref() };
    let deadline = station.and_then(|station| station.link.deadline());
    deadline.map_or(NEVER, Instant::as_ns)
}

/// Tells that the deadline has passed. Does nothing if it has not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_IBSS_timer(station: *mut Station, now_ns: u64) {
    // SAFETY: the caller's promise on stations.
    let Some(station) = (unsafe { station.as_mut() }) else {
        return;
    };
    if station.link.deadline().is_some_and(|t| t.as_ns() <= now_ns) {
        station.tell(now_ns, Event::Timer);
    }
}

/// Tells how a request ended: `outcome` is an SDMAC_IBSS_OUTCOME, `attempts` how many frames of it went on the air.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_IBSS_confirm(
    station: *mut Station,
    now_ns: u64,
    token: u64,
    outcome: u32,
    attempts: u16,
    rate: u8,
) {
    // SAFETY: the caller's promise on stations.
    let Some(station) = (unsafe { station.as_mut() }) else {
        return;
    };
    let outcome: Outcome = types::outcome(outcome);
    let rate = types::rate(rate).unwrap_or(frame::Rate::OFDM_6);
    let confirm = Confirm {
        attempts,
        ..Confirm::without_air(Token(token), outcome, rate)
    };
    station.tell(now_ns, Event::Confirm(confirm));
}

/// Tells a received frame without FCS: every frame to this station or to a group. `tsf_us`: adapter time of its first bit,
/// NULL if that is not known; the clock then stays behind that of the network by the time of a beacon on the air and what the host
/// takes to tell it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_IBSS_received(
    station: *mut Station,
    now_ns: u64,
    frame: *const u8,
    frame_octets: usize,
    rate: u8,
    tsf_us: *const u64,
) {
    // SAFETY: the caller's promise on pointers and stations.
    let (frame, tsf, station) = unsafe { (octets(frame, frame_octets), tsf_us.as_ref(), station.as_mut()) };
    let Some(station) = station else {
        return;
    };
    let received = Indication {
        frame,
        rate: types::rate(rate).unwrap_or(frame::Rate::OFDM_6),
        signal_dbm: None,
        tsf: tsf.map(|us| Tsf(*us)),
        adapter: AdapterId::FIRST,
        stamps: Stamps::NONE,
    };
    station.tell(now_ns, Event::Indication(received));
}

/// Hands a payload down, for `to` (6 octets). False if there is no room for it now, or never: it is longer than
/// SDMAC_IBSS_PAYLOAD. `number`, unless it is NULL, gets the number by which `sent` of the radio tells how it ended; it is there before
/// anything is done with the payload.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_IBSS_submit(
    station: *mut Station,
    now_ns: u64,
    to: *const u8,
    payload: *const u8,
    payload_octets: usize,
    number: *mut u64,
) -> bool {
    // SAFETY: the caller's promise on pointers and stations.
    let (to, payload, station, number) = unsafe {
        let payload = octets(payload, payload_octets);
        (octets(to, 6), payload, station.as_mut(), number.as_mut())
    };
    let (Ok(to), Some(station)) = (to.try_into(), station) else {
        return false;
    };
    let c = station.link.counters();
    let before = c.no_room;
    if let Some(number) = number {
        *number = c.submitted - before;
    }
    station.tell(now_ns, Event::Submit(Msdu::new(MacAddr(to), payload)));
    station.link.counters().no_room == before
}

/// Leaves the network; what waits is given up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_IBSS_leave(station: *mut Station, now_ns: u64) {
    // SAFETY: the caller's promise on stations.
    if let Some(station) = unsafe { station.as_mut() } {
        let now = Instant::from_ns(now_ns);
        station.link.leave(now, &mut station.desk);
        station.answer(now);
    }
}

/// Looks for the network again, after it was left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_IBSS_begin(station: *mut Station, now_ns: u64) {
    // SAFETY: the caller's promise on stations.
    if let Some(station) = unsafe { station.as_mut() } {
        let now = Instant::from_ns(now_ns);
        station.link.begin(now, &mut station.desk);
        station.answer(now);
    }
}

/// Whether it is in a network; then `bssid` (6 octets, or NULL) tells which.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_IBSS_network(station: *const Station, bssid: *mut u8) -> bool {
    // SAFETY: the caller's promise on stations.
    let network = unsafe { station.as_ref() }.and_then(|station| station.link.network());
    let Some(network) = network else {
        return false;
    };
    if !bssid.is_null() {
        // SAFETY: the caller's promise: 6 octets.
        unsafe { ptr::copy_nonoverlapping(network.bssid.0.as_ptr(), bssid, 6) };
    }
    true
}

/// Stations that were heard of late.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_IBSS_neighbours(station: *const Station) -> usize {
    // SAFETY: the caller's promise on stations.
    unsafe { station.as_ref() }.map_or(0, |station| station.link.neighbours().count())
}

/// Payloads that wait for their receivers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_IBSS_waiting(station: *const Station) -> usize {
    // SAFETY: the caller's promise on stations.
    unsafe { station.as_ref() }.map_or(0, |station| station.link.waiting())
}

/// What it has counted until now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SDMAC_IBSS_counters(station: *const Station, now_ns: u64, counters: *mut Counters) {
    // SAFETY: the caller's promise on pointers and stations.
    let (station, counters) = unsafe { (station.as_ref(), counters.as_mut()) };
    let (Some(station), Some(counters)) = (station, counters) else {
        return;
    };
    let (link, now) = (&station.link, Instant::from_ns(now_ns));
    let c = link.counters();
    let p: CcmpCounters = link.protected().copied().unwrap_or_default();
    let energy = link.energy(now);
    *counters = Counters {
        beacons: c.beacons,
        beacons_heard: c.beacons_heard,
        merges: c.merges,
        atims: c.atims,
        intervals: c.intervals,
        intervals_dozed: c.intervals_dozed,
        submitted: c.submitted,
        no_room: c.no_room,
        expired: c.expired,
        acked: c.confirms.acked,
        delivered: c.delivered,
        atims_asked_on: c.atims_asked_on,
        atims_unrouted: c.atims_unrouted,
        sealed: p.sealed,
        opened: p.opened,
        dropped: p.plain + p.unreadable + p.replays + p.mic_failures,
        transmit_us: energy.transmit.as_us(),
        receive_us: energy.receive.as_us(),
        listen_us: energy.listen.as_us(),
        doze_us: energy.doze.as_us(),
        microjoules: energy.microjoules(&station.power),
    };
}

unsafe extern "C" {
    /// The firmware's: what is to be done when a fault was found in this line of this file of the library; its name has
    /// `octets` octets and no null octet. Does not return.
    fn SDMAC_IBSS_panicked(file: *const c_char, octets: usize, line: u32) -> !;
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let (file, line) = info.location().map_or(("", 0), |l| (l.file(), l.line()));
    // SAFETY: the firmware has it, or it does not link; the name stays where it is for good, and any number will do.
    unsafe { SDMAC_IBSS_panicked(file.as_ptr().cast(), file.len(), line) }
}
