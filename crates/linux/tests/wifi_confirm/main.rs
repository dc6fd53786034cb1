//! The kernel module and its records, on radios of mac80211_hwsim with a medium that loses: run it in the lab with
//! `sdmac lab run --qemu standard --radios 2 --module kernel`. Where no module was built each test says that it is skipped.

mod medium;
mod paths;

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use frame::{MacAddr, Rate};
use linux::wifi::confirm::{Device, OCTETS, Path, Record};
use linux::wifi::{Adapter, AdapterConfig, Host, HostConfig, SimulatedRadios, simulated_radios};
use medium::{fate, number, with_medium};
use radio::{Checked, Confirm, Duration, Event, Instant, Outcome, Plane, Protocol, Radio, TxHow};

const CHANNEL: u16 = 2412;
const TO: MacAddr = MacAddr::local(0xabad);
const TRIES: u8 = 5;
const FRAMES: usize = 1_000;
const MODULE: &std::ffi::CStr = c"sdmac_confirm";
/// Records that a file has room for, unless the module is told another number.
const ROOM: usize = 512;

/// The radios and the module, loaded.
struct Bench {
    radios: SimulatedRadios,
    file: std::path::PathBuf,
}

/// Waits for its turn; `None`, with a word, where there is no module.
fn bench() -> Option<Bench> {
    let radios = simulated_radios(1)?;
    let Some(file) = std::env::var_os("SDMAC_LAB_MODULE") else {
        eprintln!("skipped: there is no module here (sdmac lab run --qemu standard --module kernel)");
        return None;
    };
    let bench = Bench {
        radios,
        file: file.into(),
    };
    bench.load();
    Some(bench)
}

impl Bench {
    fn load(&self) {
        let file = std::fs::File::open(&self.file).unwrap();
        match rustix::system::finit_module(file, c"", 0) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => panic!("{}: {error}", self.file.display()),
        }
    }

    fn adapter(&self) -> Adapter {
        Adapter::open(AdapterConfig::new(&self.radios.names[0], CHANNEL)).unwrap()
    }
}

fn unload() -> rustix::io::Result<()> {
    rustix::system::delete_module(MODULE, libc::O_NONBLOCK)
}

/// Sends a frame when the one before is confirmed.
struct Chain {
    me: MacAddr,
    next: u16,
    left: usize,
    confirms: Vec<(u16, Confirm)>,
}

impl Chain {
    fn send(&mut self, radio: &mut dyn Radio) {
        let Some(left) = self.left.checked_sub(1) else {
            return;
        };
        self.left = left;
        let mut frame = [0x55; 40];
        frame[..4].copy_from_slice(&[8, 0, 0, 0]);
        frame[4..10].copy_from_slice(&TO.0);
        frame[10..16].copy_from_slice(&self.me.0);
        frame[22..24].copy_from_slice(&(self.next << 4).to_le_bytes());
        self.next += 1;
        let token = radio.token();
        radio.request(token, &frame, &TxHow::multi_shot(Rate::OFDM_6, TRIES));
    }
}

impl Protocol for Chain {
    fn handle(&mut self, _: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Start => self.send(radio),
            Event::Confirm(confirm) => {
                self.confirms.push((self.next - 1, confirm));
                self.send(radio);
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// The confirms of so many frames, which are numbered from 0.
fn chain(bench: &Bench, confirm: Path, count: usize) -> (Vec<(u16, Confirm)>, Host) {
    let adapter = bench.adapter();
    let chain = Chain {
        me: adapter.address(),
        next: 0,
        left: count,
        confirms: Vec::with_capacity(count),
    };
    let config = HostConfig {
        confirm,
        ..HostConfig::default()
    };
    let mut host = Host::new(vec![adapter], config).unwrap();
    let mut chain: Checked<Chain> = Checked::strict(chain);
    let stop = AtomicBool::new(false);
    while chain.inner().confirms.len() < count {
        let before = chain.inner().confirms.len();
        let until = Host::now() + Duration::from_ms(1_000);
        host.run(&mut chain, &mut (), Some(until), &stop).unwrap();
        assert!(chain.inner().confirms.len() > before, "it stands after {before}");
    }
    chain.finish();
    (chain.into_inner().confirms, host)
}

#[test]
fn a_host_has_outcome_tries_and_all_planes_from_the_device() {
    let Some(bench) = bench() else { return };
    let (confirms, host) = with_medium(|| chain(&bench, Path::Device, FRAMES));
    assert_eq!(confirms.len(), FRAMES);
    for (n, c) in &confirms {
        let (tries, acked) = fate(*n);
        let outcome = if acked { Outcome::Acked } else { Outcome::NotAcked };
        assert_eq!(
            (c.outcome, c.attempts, c.rate),
            (outcome, tries.into(), Rate::OFDM_6),
            "frame {n}"
        );
        assert!(c.stamps.in_order(), "{n}: {:?}", c.stamps);
    }
    let full = confirms.iter().filter(|(_, c)| c.stamps.count() == 9).count();
    eprintln!("{full} of {FRAMES} have all nine planes");
    assert!(full * 100 >= FRAMES * 99, "{full}");
    let counters = host.counters();
    assert_eq!(
        (
            counters.lost_packets,
            counters.unreadable,
            counters.foreign_statuses
        ),
        (0, 0, 0)
    );
}

#[test]
fn each_frame_has_one_record_and_a_second_reader_has_the_same() {
    let Some(bench) = bench() else { return };
    let mut devices = [Device::open().unwrap(), Device::open().unwrap()];
    let count = ROOM - 12;
    let (confirms, _) = with_medium(|| chain(&bench, Path::Monitor, count));
    let records = devices.each_mut().map(|device| {
        let mut all: Vec<Record> = Vec::new();
        while let Some(record) = device.next_record().unwrap() {
            all.push(record);
        }
        all
    });
    assert_eq!(records[0], records[1]);
    assert_eq!(records[0].len(), count);
    for (record, (n, c)) in records[0].iter().zip(&confirms) {
        let (tries, acked) = fate(*n);
        assert_eq!(
            (number(&record.head), record.length, record.mark),
            (*n, 40, Some(0))
        );
        assert_eq!(
            (record.acked, record.attempts(), record.lost),
            (acked, tries.into(), 0)
        );
        assert!(record.is_of(&bench.radios.names[0]) && !record.is_of("phy77"));
        let stamps = record.stamps();
        assert!(stamps.in_order(), "{n}: {stamps:?}");
        // Both read one clock, so what one saw lies between what the other saw.
        let [t1, t9] = [Plane::T1, Plane::T9].map(|p| c.stamps.get_host(p).unwrap());
        let [t2, t8] = [Plane::T2, Plane::T8].map(|p| stamps.get_host(p).unwrap());
        assert!(t1 <= t2 && t8 <= t9, "{n}");
    }
}

#[test]
fn what_finds_no_room_is_counted_and_told() {
    let Some(bench) = bench() else { return };
    let mut device = Device::open().unwrap();
    let more = 100;
    with_medium(|| chain(&bench, Path::Monitor, ROOM + more));
    let mut kept = 0;
    while let Some(record) = device.next_record().unwrap() {
        assert_eq!((number(&record.head), record.lost), (kept as u16, 0));
        kept += 1;
    }
    assert_eq!(kept, ROOM);
    with_medium(|| chain(&bench, Path::Monitor, 1));
    let next = device.next_record().unwrap().unwrap();
    assert_eq!(next.lost as usize, more);
}

#[test]
fn a_read_waits_and_poll_tells() {
    use rustix::event::{PollFd, PollFlags, poll};
    let Some(bench) = bench() else { return };
    let mut blocking = std::fs::File::open("/dev/sdmac").unwrap();
    let polling = Device::open().unwrap();
    let error = blocking.read(&mut [0; OCTETS - 1]).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "no room for a record");
    let none = poll(
        &mut [PollFd::new(&polling.as_fd(), PollFlags::IN)],
        Some(&rustix::time::Timespec::default()),
    );
    assert_eq!(none, Ok(0));
    let (read, polled) = std::thread::scope(|scope| {
        let read = scope.spawn(|| {
            let mut octets = [0; 3 * OCTETS];
            let length = blocking.read(&mut octets).unwrap();
            (length, Record::parse(&octets).unwrap())
        });
        let polled = scope.spawn(|| {
            let patience = rustix::time::Timespec {
                tv_sec: 60,
                tv_nsec: 0,
            };
            poll(
                &mut [PollFd::new(&polling.as_fd(), PollFlags::IN)],
                Some(&patience),
            )
        });
        // Both wait before there is a frame.
        std::thread::sleep(std::time::Duration::from_millis(50));
        with_medium(|| chain(&bench, Path::Monitor, 1));
        (read.join().unwrap(), polled.join().unwrap())
    });
    assert_eq!((read.0, number(&read.1.head)), (OCTETS, 0));
    assert_eq!(polled, Ok(1));
}

#[test]
fn it_is_not_unloaded_while_somebody_reads() {
    let Some(bench) = bench() else { return };
    let mut device = Device::open().unwrap();
    let error = unload().unwrap_err();
    assert!(
        matches!(error, rustix::io::Errno::AGAIN | rustix::io::Errno::BUSY),
        "{error}"
    );
    with_medium(|| chain(&bench, Path::Monitor, 3));
    assert!(device.next_record().unwrap().is_some(), "and goes on");
    drop(device);
    unload().unwrap();
    let error = Device::open().unwrap_err();
    assert!(
        error.to_string().contains("load the module sdmac_confirm"),
        "{error}"
    );
    // Frames on their way while it goes and comes.
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            with_medium(|| chain(&bench, Path::Monitor, 300));
            stop.store(true, Ordering::Relaxed);
        });
        while !stop.load(Ordering::Relaxed) {
            bench.load();
            drop(Device::open().unwrap());
            std::thread::sleep(std::time::Duration::from_millis(5));
            unload().unwrap();
        }
    });
    bench.load();
    assert!(Device::open().is_ok());
}

#[test]
fn too_many_readers_are_refused() {
    let Some(_bench) = bench() else { return };
    let all: Vec<Device> = (0..16).map(|_| Device::open().unwrap()).collect();
    let error = Device::open().unwrap_err().to_string();
    assert!(error.contains("/dev/sdmac"), "{error}");
    drop(all);
    assert!(Device::open().is_ok());
}

const CHILD: &str = "SDMAC_TEST_DEVICE";

/// Not a test of its own: opens the device and says how that went.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    match Device::open() {
        Ok(_) => println!("it is open"),
        Err(error) => println!("error {error}"),
    }
}

#[test]
fn without_the_right_it_says_which_is_missing() {
    let Some(_bench) = bench() else { return };
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["child", "--exact", "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped());
    let text = |command: &mut Command| String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(text(&mut command).contains("it is open"));
    let refused = text(command.uid(65_534));
    assert!(
        refused.contains("error not allowed to open /dev/sdmac, for want of CAP_NET_ADMIN"),
        "{refused}"
    );
}
