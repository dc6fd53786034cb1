//! What goes wrong on the way: radios that vanish, media that die, statuses that are lost. Whatever it is, every token has
//! one confirm, and the host goes on or refuses.

use linux::hwsim::{self, Medium, Series, Status};
use linux::wifi::clock_counts_instructions;
use linux::wifi::confirm::Path;
use radio::Refusal;

use super::*;

/// A status that has not come after this long does not come.
const PATIENCE: Duration = Duration::from_ms(300);

/// A medium that holds every frame until it is told otherwise.
pub struct Holding {
    medium: Medium,
    held: Vec<hwsim::Sent>,
}

impl Holding {
    pub fn start() -> Holding {
        let mut medium = Medium::open().unwrap();
        medium.register().unwrap();
        let held = Vec::new();
        Holding { medium, held }
    }

    pub fn collect(&mut self) -> usize {
        while let Some(event) = self.medium.receive().unwrap() {
            if let hwsim::Event::Sent(sent) = event {
                self.held.push(sent);
            }
        }
        self.held.len()
    }

    /// Acknowledges every `nth` of what it holds, and forgets the rest; gives how many the kernel still knew.
    fn release(&mut self, nth: usize) -> usize {
        self.answer(|n, _| n.is_multiple_of(nth).then_some(true))
    }

    /// Answers those of what it holds of which is said whether they are acknowledged, and forgets the rest; gives how many of
    /// them the kernel still knew.
    pub fn answer(&mut self, mut acked: impl FnMut(usize, &hwsim::Sent) -> Option<bool>) -> usize {
        self.collect();
        let mut known = 0;
        for (n, sent) in std::mem::take(&mut self.held).into_iter().enumerate() {
            let Some(acked) = acked(n, &sent) else { continue };
            let mut done = [Series::NONE; hwsim::MAX_SERIES];
            done[0] = Series {
                tries: 1,
                ..sent.plan[0]
            };
            let status = Status {
                radio: sent.radio,
                cookie: sent.cookie,
                flags: sent.flags,
                acked,
                signal_dbm: -50,
                done,
            };
            known += usize::from(self.medium.report(&status).unwrap());
        }
        known
    }
}

fn patient(outstanding: u16) -> HostConfig {
    HostConfig {
        outstanding,
        confirm_timeout: PATIENCE,
        ..HostConfig::default()
    }
}

/// The same by each way by which outcomes of a monitor come up: our kernel module's device, too, where it is loaded.
fn patient_by_each_way() -> Vec<HostConfig> {
    let device = std::env::var_os("SDMAC_LAB_MODULE").map(|_| Path::Device);
    let all = [Some(Path::Monitor), device].into_iter().flatten();
    let by = |confirm| HostConfig {
        confirm,
        ..patient(64)
    };
    let all: Vec<HostConfig> = all.map(by).collect();
    eprintln!("by {:?}", all.iter().map(|c| c.confirm).collect::<Vec<_>>());
    all
}

/// So many frames to nobody, made at the start.
fn script(me: MacAddr, count: u16) -> Checked<Script> {
    let requests = (0..count)
        .map(|n| (data(Kind::DATA, ABSENT, me, n, 0), HOW))
        .collect();
    Checked::strict(Script {
        requests,
        ..Script::default()
    })
}

fn run_for(host: &mut Host, script: &mut Checked<Script>, ms: u64) {
    let until = Host::now() + Duration::from_ms(ms);
    host.run(script, &mut (), Some(until), &AtomicBool::new(false))
        .unwrap();
}

/// Ends everything; how many confirms there are with each outcome. The checker has seen that each token has one.
fn outcomes_of(mut host: Host, mut script: Checked<Script>) -> Vec<(Outcome, usize)> {
    host.finish(&mut script, &mut ()).unwrap();
    script.finish();
    let script = script.into_inner();
    assert_eq!(script.confirms.len(), script.tokens.len());
    let mut all: Vec<(Outcome, usize)> = Vec::new();
    for confirm in &script.confirms {
        match all.iter_mut().find(|(outcome, _)| *outcome == confirm.outcome) {
            Some((_, count)) => *count += 1,
            None => all.push((confirm.outcome, 1)),
        }
    }
    all
}

/// A request after the fault. For less than the patience: what ends meanwhile is told to this one.
fn once_more(host: &mut Host) -> Outcome {
    let me = host.adapters()[0].address();
    let mut one = Resend(data(Kind::DATA, MacAddr::BROADCAST, me, 4_000, 0), None);
    let until = Host::now() + Duration::from_ms(20);
    host.run(&mut one, &mut (), Some(until), &AtomicBool::new(false))
        .unwrap();
    one.1.expect("it is confirmed")
}

#[test]
fn an_interface_that_goes_down_with_frames_pending() {
    let Some((_lab, [first, _])) = lab() else { return };
    for config in patient_by_each_way() {
        let adapter = open(&first);
        let (me, name) = (adapter.address(), adapter.interfaces().next().unwrap().to_owned());
        let mut host = host(adapter, config);
        let mut script = script(me, 10);
        let mut medium = Holding::start();
        run_for(&mut host, &mut script, 10);
        assert_eq!(medium.collect(), 10, "all are pending");
        std::fs::write(format!("/sys/class/net/{name}/flags"), "0x0").unwrap();
        run_for(&mut host, &mut script, 10);
        assert_eq!(once_more(&mut host), Outcome::Refused(Refusal::NoAdapter));
        // Whether the kernel gives a status to what was pending is its affair; that each has a confirm is ours.
        let outcomes = outcomes_of(host, script);
        assert_eq!(outcomes.iter().map(|(_, n)| n).sum::<usize>(), 10);
        assert!(
            outcomes
                .iter()
                .all(|(o, _)| matches!(o, Outcome::Unknown | Outcome::NotAcked)),
            "{outcomes:?}"
        );
        drop(medium);
        assert!(our_interfaces().is_empty());
    }
}

#[test]
fn a_radio_that_is_pulled_out_with_frames_pending() {
    let Some((_lab, _)) = lab() else { return };
    for config in patient_by_each_way() {
        let mut maker = Medium::open().unwrap();
        let radio = maker.add_radio().unwrap();
        let adapter = open(&radio.name);
        let me = adapter.address();
        let mut host = host(adapter, config);
        let mut script = script(me, 10);
        let mut medium = Holding::start();
        run_for(&mut host, &mut script, 10);
        assert_eq!(medium.collect(), 10);
        maker.remove_radio(radio.id).unwrap();
        run_for(&mut host, &mut script, 10);
        assert_eq!(once_more(&mut host), Outcome::Refused(Refusal::NoAdapter));
        let outcomes = outcomes_of(host, script);
        assert_eq!(outcomes.iter().map(|(_, n)| n).sum::<usize>(), 10);
        assert!(
            outcomes
                .iter()
                .all(|(o, _)| matches!(o, Outcome::Unknown | Outcome::NotAcked)),
            "{outcomes:?}"
        );
        drop(medium);
        let error = Adapter::open(AdapterConfig::new(&radio.name, CHANNEL)).unwrap_err();
        assert!(error.to_string().contains("no radio"), "{error}");
        assert!(our_interfaces().is_empty());
    }
}

#[test]
fn a_medium_that_dies_with_frames_pending() {
    let Some((_lab, [first, second])) = lab() else {
        return;
    };
    for config in patient_by_each_way() {
        let peer = open(&second);
        let adapter = open(&first);
        let (me, to) = (adapter.address(), peer.address());
        let mut host = host(adapter, config);
        let mut script = script(me, 10);
        let mut medium = Holding::start();
        run_for(&mut host, &mut script, 10);
        assert_eq!(medium.collect(), 10);
        drop(medium); // As if it were killed: the kernel sees that its socket closes.
        run_for(&mut host, &mut script, 400);
        // The kernel goes on with its own air.
        let mut one = Resend(data(Kind::DATA, to, me, 4_000, 0), None);
        let until = Host::now() + Duration::from_ms(50);
        host.run(&mut one, &mut (), Some(until), &AtomicBool::new(false))
            .unwrap();
        assert_eq!(one.1, Some(Outcome::Acked));
        assert_eq!(outcomes_of(host, script), [(Outcome::Unknown, 10)]);
    }
}

/// A medium that answers two of three never: those are unknown, and the others are told in the order of their requests.
#[test]
fn a_hundred_and_fifty_requests_of_which_fifty_are_answered() {
    let Some((_lab, [first, _])) = lab() else { return };
    let adapter = open(&first);
    let me = adapter.address();
    let mut host = host(adapter, patient(150));
    // More than one event may ask for, so without the checker.
    let requests = (0..150)
        .map(|n| (data(Kind::DATA, ABSENT, me, n, 0), HOW))
        .collect();
    let mut script = Script {
        requests,
        ..Script::default()
    };
    let mut medium = Holding::start();
    let stop = AtomicBool::new(false);
    host.run(
        &mut script,
        &mut (),
        Some(Host::now() + Duration::from_ms(1)),
        &stop,
    )
    .unwrap();
    assert_eq!(medium.collect(), 150);
    assert_eq!(medium.release(3), 50);
    host.run(
        &mut script,
        &mut (),
        Some(Host::now() + Duration::from_ms(400)),
        &stop,
    )
    .unwrap();
    let of = |wanted| {
        script
            .confirms
            .iter()
            .filter(move |c| c.outcome == wanted)
            .map(|c| c.token)
    };
    assert!(of(Outcome::Acked).eq(script.tokens.iter().copied().step_by(3)));
    assert_eq!((of(Outcome::Unknown).count(), script.confirms.len()), (100, 150));
    let mut tokens: Vec<Token> = script.confirms.iter().map(|c| c.token).collect();
    tokens.sort_unstable();
    assert_eq!(tokens, script.tokens, "each has one confirm");
    assert_eq!(
        once_more_with(&mut host, &mut medium),
        Outcome::NotAcked,
        "it goes on"
    );
}

/// What hwsim keeps for a medium that does not answer: how many of so many frames it still knows.
#[test]
fn hwsim_forgets_the_oldest_frames_of_a_medium_that_does_not_answer() {
    let Some((_lab, [first, _])) = lab() else { return };
    for (count, known) in [(150, 150), (200, 200), (201, 100), (250, 149)] {
        let adapter = open(&first);
        let me = adapter.address();
        let mut host = host(adapter, patient(300));
        let requests = (0..count)
            .map(|n| (data(Kind::DATA, ABSENT, me, n, 0), HOW))
            .collect();
        let mut script = Script {
            requests,
            ..Script::default()
        };
        let mut medium = Holding::start();
        let until = Host::now() + Duration::from_ms(1);
        host.run(&mut script, &mut (), Some(until), &AtomicBool::new(false))
            .unwrap();
        assert_eq!(medium.collect(), usize::from(count));
        let kept = medium.release(1);
        eprintln!("{kept} of {count} frames were kept");
        assert_eq!(kept, known, "of {count}");
        host.finish(&mut script, &mut ()).unwrap();
        assert_eq!(script.confirms.len(), usize::from(count));
    }
}

/// A frame to all, on a medium that has to be served meanwhile.
fn once_more_with(host: &mut Host, medium: &mut Holding) -> Outcome {
    let me = host.adapters()[0].address();
    let mut one = Resend(data(Kind::DATA, MacAddr::BROADCAST, me, 4_000, 0), None);
    for _ in 0..20 {
        let until = Host::now() + Duration::from_ms(2);
        host.run(&mut one, &mut (), Some(until), &AtomicBool::new(false))
            .unwrap();
        medium.release(1);
    }
    one.1.expect("it is confirmed")
}

/// A host that was held up for longer than it waits for a status takes in first what came in time.
#[test]
fn what_came_while_the_host_was_held_up_is_known() {
    let Some((_lab, [first, _])) = lab() else { return };
    let adapter = open(&first);
    let me = adapter.address();
    let mut host = host(adapter, patient(64));
    let mut script = script(me, 20);
    run_for(&mut host, &mut script, 0);
    std::thread::sleep(std::time::Duration::from_nanos(2 * PATIENCE.as_ns()));
    run_for(&mut host, &mut script, 20);
    assert_eq!((host.counters().sent, host.counters().late_statuses), (20, 0));
    assert_eq!(outcomes_of(host, script), [(Outcome::NotAcked, 20)]);
}

/// Statuses that find no room in the socket are lost: unknown, and counted.
#[test]
fn statuses_that_are_lost_are_unknown() {
    let Some((_lab, [first, _])) = lab() else { return };
    let adapter = Adapter::open(AdapterConfig {
        receive_octets: 1, // The kernel's least, room for a few.
        ..AdapterConfig::new(&first, CHANNEL)
    });
    let adapter = adapter.unwrap();
    let me = adapter.address();
    let mut host = host(adapter, patient(64));
    let mut script = script(me, 50);
    run_for(&mut host, &mut script, 400);
    assert_eq!(once_more(&mut host), Outcome::NotAcked, "it goes on");
    let lost = host.counters().lost_packets;
    let outcomes = outcomes_of(host, script);
    let of = |outcome| {
        outcomes
            .iter()
            .find(|(o, _)| *o == outcome)
            .map_or(0, |(_, n)| *n)
    };
    assert_eq!(of(Outcome::Unknown) + of(Outcome::NotAcked), 50, "{outcomes:?}");
    assert!(
        of(Outcome::Unknown) > 0 && of(Outcome::NotAcked) > 0,
        "{outcomes:?}"
    );
    assert_eq!(lost, of(Outcome::Unknown) as u64);
}

/// More news than the kernel keeps while the clerk has no processor: they are counted, all is read again, and each request has
/// its confirm.
#[test]
fn news_that_overflow_cost_no_confirm() {
    let Some((_lab, [first, _])) = lab() else { return };
    if clock_counts_instructions() {
        eprintln!("skipped: so much news takes minutes on an emulated processor");
        return;
    }
    let adapter = open(&first);
    let me = adapter.address();
    let mut host = host(adapter, patient(64));
    let later = HOW.not_before(Instant::from_us(50_000)); // from the start of the script on
    let requests = (0..20).map(|n| (data(Kind::DATA, ABSENT, me, n, 0), later));
    let mut script = Checked::strict(Script {
        requests: requests.collect(),
        ..Script::default()
    });
    std::thread::scope(|scope| {
        let maker = scope.spawn(|| {
            let mut control = Control::open().unwrap();
            let radio = control.wiphy(&first).unwrap().index;
            let all = control.interfaces().unwrap();
            let ordinary = |i: &&linux::wifi::Interface| i.wiphy == radio && i.name.starts_with("wlan");
            let path = format!("/sys/class/net/{}/flags", all.iter().find(ordinary).unwrap().name);
            std::thread::sleep(std::time::Duration::from_millis(20));
            let seat = Seat {
                fifo: Some(10),
                ..Seat::default()
            };
            seat.take().unwrap();
            for n in 0..800 {
                std::fs::write(&path, ["0x1", "0x0"][n % 2]).unwrap();
            }
        });
        while !maker.is_finished() {
            run_for(&mut host, &mut script, 50);
        }
        run_for(&mut host, &mut script, 200);
    });
    let c = *host.counters();
    assert!(c.news > 0 && c.netlink_overflows > 0, "{c:?}");
    assert_eq!(outcomes_of(host, script), [(Outcome::NotAcked, 20)]);
}

/// News of the radio are read while the host runs, and those of others are none.
#[test]
fn the_news_of_others_are_not_ours() {
    let Some((_lab, [first, second])) = lab() else {
        return;
    };
    let adapter = open(&first);
    let me = adapter.address();
    let mut host = host(adapter, patient(64));
    let up_and_down = |radio: &str| {
        let wiphy = Control::open().unwrap().wiphy(radio).unwrap();
        let all = Control::open().unwrap().interfaces().unwrap();
        let wlan = all
            .iter()
            .find(|i| i.wiphy == wiphy.index && i.name.starts_with("wlan"));
        let path = format!("/sys/class/net/{}/flags", wlan.unwrap().name);
        for flags in ["0x1", "0x0"] {
            std::fs::write(&path, flags).unwrap();
        }
    };
    let mut script = script(me, 5);
    run_for(&mut host, &mut script, 20);
    let before = *host.counters();
    up_and_down(&second);
    for flags in ["0x8", "0x9"] {
        std::fs::write("/sys/class/net/lo/flags", flags).unwrap();
    }
    run_for(&mut host, &mut script, 20);
    let after = *host.counters();
    assert_eq!(
        (after.news, after.netlink_overflows),
        (before.news, 0),
        "the news of others are not ours"
    );
    up_and_down(&first);
    run_for(&mut host, &mut script, 20);
    let last = *host.counters();
    assert!(last.news > after.news, "{last:?}");
    assert_eq!(outcomes_of(host, script), [(Outcome::NotAcked, 5)]);
}
