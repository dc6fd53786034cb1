//! The planes t2 to t8 on an unmodified kernel. User-Mode Linux has no kprobes: there it must say so.

use linux::hwsim::{self, Medium, Sent, Series, Status};
use linux::probe::{self, Way};
use linux::wifi::{Error, clock_counts_instructions};

use super::*;

/// Whether this kernel has kprobes; a word about it if it has not.
fn has_kprobes() -> bool {
    let there = std::path::Path::new("/sys/bus/event_source/devices/kprobe").exists();
    if !there {
        eprintln!("skipped: this kernel has no kprobes");
    }
    there
}

/// The ways to probe this kernel.
fn ways() -> Vec<Way> {
    let fentry = std::path::Path::new("/sys/kernel/btf/mac80211_hwsim").exists();
    let all = [
        has_kprobes().then_some(Way::Kprobe),
        fentry.then_some(Way::Fentry),
    ];
    all.into_iter().flatten().collect()
}

/// A medium that acknowledges every frame after `delay`.
fn medium(delay: std::time::Duration, stop: &AtomicBool, ready: &AtomicBool) {
    let mut medium = Medium::open().unwrap();
    medium.register().unwrap();
    ready.store(true, Ordering::Release);
    while !stop.load(Ordering::Relaxed) {
        medium.wait(Medium::now_ns() + 1_000_000).unwrap();
        while let Some(event) = medium.receive().unwrap() {
            let hwsim::Event::Sent(Sent {
                radio,
                cookie,
                flags,
                plan,
                ..
            }) = event
            else {
                continue;
            };
            std::thread::sleep(delay);
            let mut done = [Series::NONE; hwsim::MAX_SERIES];
            done[0] = Series { tries: 1, ..plan[0] };
            let status = Status {
                radio,
                cookie,
                flags,
                acked: true,
                signal_dbm: -50,
                done,
            };
            assert!(medium.report(&status).unwrap(), "the kernel waits for it");
        }
    }
}

/// Runs with that medium in another thread.
fn with_medium<T>(delay_us: u64, body: impl FnOnce() -> T) -> T {
    let (stop, ready) = (AtomicBool::new(false), AtomicBool::new(false));
    let delay = std::time::Duration::from_micros(delay_us);
    std::thread::scope(|scope| {
        scope.spawn(|| medium(delay, &stop, &ready));
        while !ready.load(Ordering::Acquire) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let result = body();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

/// Sends the next frame when one is confirmed, `window` at once, and keeps the confirms.
struct Chain {
    left: usize,
    window: usize,
    frame: Vec<u8>,
    confirms: Vec<Confirm>,
}

impl Chain {
    fn send(&mut self, radio: &mut dyn Radio) {
        let Some(left) = self.left.checked_sub(1) else {
            return;
        };
        self.left = left;
        let number = SequenceControl::new((left & 0xfff) as u16, 0);
        self.frame[22..24].copy_from_slice(&number.0.to_le_bytes());
        let token = radio.token();
        radio.request(token, &self.frame, &HOW);
    }
}

impl Protocol for Chain {
    fn handle(&mut self, _: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Start => (0..self.window).for_each(|_| self.send(radio)),
            Event::Confirm(confirm) => {
                self.confirms.push(confirm);
                self.send(radio);
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// The confirms of so many frames.
fn chain(radio: &str, probes: Option<Way>, count: usize, window: usize) -> (Vec<Confirm>, Host) {
    let adapter = open(radio);
    let frame = data(Kind::DATA, ABSENT, adapter.address(), 0, 0);
    // An emulated processor may stand still for a while; what is lost for good is unknown all the same.
    let config = HostConfig {
        probes,
        confirm_timeout: Duration::from_ms(20_000),
        ..HostConfig::default()
    };
    let mut host = host(adapter, config);
    let mut chain = Chain {
        left: count,
        window,
        frame,
        confirms: Vec::with_capacity(count),
    };
    let stop = AtomicBool::new(false);
    let mut idle_s = 0;
    while chain.confirms.len() < count {
        let before = chain.confirms.len();
        let until = Host::now() + Duration::from_ms(1_000);
        host.run(&mut chain, &mut (), Some(until), &stop).unwrap();
        idle_s = if chain.confirms.len() > before {
            0
        } else {
            idle_s + 1
        };
        assert!(idle_s < 30, "it stands after {before}");
    }
    (chain.confirms, host)
}

/// So many frames with so many open at once: all are acknowledged, and have all nine planes in order.
fn all_planes_of(radio: &str, way: Way, window: usize, count: usize) {
    // An emulated processor may be held up in the driver for longer than a frame takes on the air; were the medium on another one
    // to answer meanwhile, t5 would be before t4, and t4 left out.
    let delay_us = if cpus() > 1 { 5_000 } else { 50 };
    let (confirms, host) = with_medium(delay_us, || chain(radio, Some(way), count, window));
    let probes = host.probes().unwrap();
    assert_eq!(probes.way(), way);
    assert_eq!(probes.functions().len(), 7, "{:?}", probes.functions());
    assert_eq!((confirms.len(), probes.lost()), (count, 0));
    let is_full = |c: &&Confirm| c.stamps.count() == 9 && c.stamps.in_order();
    let full = confirms.iter().filter(is_full).count();
    let acked = confirms.iter().filter(|c| c.outcome == Outcome::Acked).count();
    let without = |p: &Plane| confirms.iter().filter(|c| c.stamps.get(*p).is_none()).count();
    let missing: Vec<(Plane, usize)> = Plane::ALL
        .into_iter()
        .map(|p| (p, without(&p)))
        .filter(|m| m.1 > 0)
        .collect();
    eprintln!(
        "{way:?}, {} CPUs, {window} open at once: of {count} frames {acked} acknowledged, {full} with all nine planes in order; \
         without a plane: {missing:?}",
        cpus()
    );
    let odd = confirms.iter().find(|c| c.outcome != Outcome::Acked);
    assert!(odd.is_none(), "{odd:?}, {:?}", host.counters());
    // One in a hundred may lack a plane; of a few frames more may, by five standard deviations.
    let lacking = count as f64 / 100.0;
    let chance = if count < 10_000 { 5.0 * lacking.sqrt() } else { 0.0 };
    assert!(
        (count - full) as f64 <= lacking + chance,
        "{full} of {count}: {:?}",
        confirms.iter().find(|c| c.stamps.count() < 9)
    );
}

#[test]
fn all_nine_planes_are_stamped_in_order() {
    let Some((_lab, [first, _])) = lab() else { return };
    for way in ways() {
        all_planes_of(&first, way, 1, if cpus() > 1 { 300 } else { 10_000 });
        all_planes_of(&first, way, 4, if cpus() > 1 { 300 } else { 1_000 });
    }
}

#[test]
#[ignore = "takes minutes where the processors are emulated"]
fn all_nine_planes_of_ten_thousand_frames_on_several_cpus() {
    let Some((_lab, [first, _])) = lab() else { return };
    for way in ways() {
        for window in [1, 4] {
            all_planes_of(&first, way, window, 10_000);
        }
    }
}

/// Without a program as the medium everything is over before the driver returns: t4 contradicts, and stays empty.
#[test]
fn hwsims_own_medium_has_no_ring() {
    let Some((_lab, [first, _])) = lab() else { return };
    for way in ways() {
        let (confirms, _) = chain(&first, Some(way), 100, 1);
        for c in &confirms {
            assert!(c.stamps.in_order(), "{:?}", c.stamps);
            assert_eq!(c.stamps.get(Plane::T4), None);
            assert_eq!(c.stamps.count(), 8, "{:?}", c.stamps);
        }
    }
}

/// So many times as long a frame takes with probes, at most.
fn most(way: Way) -> f64 {
    if way == Way::Fentry { 1.2 } else { 1.75 }
}

/// On hwsim's own medium a frame is software and nothing else, which is the worst case. Where the clock counts instructions
/// this is a ratio of them, and is judged.
#[test]
fn what_probing_costs() {
    let Some((_lab, [first, _])) = lab() else { return };
    let of = |way| {
        let (confirms, _) = chain(&first, way, 500, 1);
        let way = |c: &Confirm| {
            let [t1, t9] = [Plane::T1, Plane::T9].map(|p| c.stamps.get_host(p).unwrap());
            t9.since(t1).as_ns()
        };
        let mut ways: Vec<u64> = confirms.iter().map(way).collect();
        ways.sort_unstable();
        (ways[0], ways[ways.len() / 2])
    };
    let plain = of(None);
    for way in ways() {
        let probed = of(Some(way));
        eprintln!(
            "{way:?}: t9 - t1 with probes / without: least {:.3}, median {:.3} ({probed:?} / {plain:?} ns)",
            probed.0 as f64 / plain.0 as f64,
            probed.1 as f64 / plain.1 as f64
        );
        assert!(
            probed.0 > plain.0,
            "probes are there, so they cost: {plain:?} {probed:?}"
        );
        if clock_counts_instructions() {
            let median = probed.1 as f64 / plain.1 as f64;
            assert!(median <= most(way), "{way:?}: {median}");
        }
    }
}

/// Programs go with the process, too, and the modules can be unloaded then.
#[test]
fn without_probes_the_module_has_no_more_users_than_before() {
    let Some((_lab, _)) = lab() else { return };
    let users = || std::fs::read_to_string("/sys/module/mac80211_hwsim/refcnt").unwrap();
    for way in ways() {
        let before = users();
        drop(probe::Probes::open(way, ["mac80211_hwsim"], 1).unwrap());
        // The kernel lets go of a program when nobody can be in it any more.
        for _ in 0..200 {
            if users() == before {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert_eq!(users(), before, "{way:?}");
    }
}

fn probes_in_the_kernel() -> usize {
    let list = std::fs::read_to_string("/sys/kernel/debug/kprobes/list").expect("debugfs is there");
    list.lines().count()
}

const CHILD: &str = "SDMAC_TEST_PROBES";

/// Not a test of its own: probes, says so, and waits to be killed.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    match probe::Probes::open(Way::Kprobe, ["mac80211_hwsim"], 1) {
        Ok(_probes) => {
            println!("probing");
            std::thread::sleep(std::time::Duration::from_secs(3_600));
        }
        Err(error) => println!("error {error}"),
    }
}

fn child_process() -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command
        .args(["probes::child", "--exact", "--nocapture"])
        .env(CHILD, "1")
        .stdout(std::process::Stdio::piped());
    command
}

#[test]
fn no_probe_stays_behind() {
    let Some((_lab, _)) = lab() else { return };
    if !has_kprobes() {
        return;
    }
    let before = probes_in_the_kernel();
    let probes = probe::Probes::open(Way::Kprobe, ["mac80211_hwsim"], 1).unwrap();
    assert!(probes_in_the_kernel() >= before + 7);
    drop(probes);
    assert_eq!(probes_in_the_kernel(), before, "after the end");
    for signal in ["-KILL", "-INT"] {
        let mut child = child_process().spawn().unwrap();
        while probes_in_the_kernel() < before + 7 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let pid = child.id().to_string();
        assert!(
            std::process::Command::new("kill")
                .args([signal, &pid])
                .status()
                .unwrap()
                .success()
        );
        child.wait().unwrap();
        assert_eq!(probes_in_the_kernel(), before, "after {signal}");
    }
}

#[test]
fn without_the_right_or_the_kernel_it_says_what_is_missing() {
    use std::os::unix::process::CommandExt;
    let Some((_lab, [first, _])) = lab() else { return };
    if has_kprobes() {
        let output = child_process().uid(65_534).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("for want of CAP_PERFMON"), "{text}");
    } else {
        let config = HostConfig {
            probes: Some(Way::Kprobe),
            ..HostConfig::default()
        };
        let error = Host::new(vec![open(&first)], config).unwrap_err();
        assert!(
            matches!(error, Error::Probe(probe::Error::NoProbes(_))),
            "{error}"
        );
        assert!(error.to_string().contains("CONFIG_KPROBE_EVENTS"), "{error}");
    }
    assert!(our_interfaces().is_empty());
}
