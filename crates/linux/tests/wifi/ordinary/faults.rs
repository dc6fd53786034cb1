//! What goes wrong on the way through an ordinary interface. Whatever it is, every token has one confirm.

use super::super::faults::Holding;
use super::*;

/// Of two frames that are equal the first that was sent is told of first; the kernel tells them in that order.
#[test]
fn statuses_of_equal_frames_are_told_in_their_order() {
    let Some(stations) = stations() else { return };
    let [a, b] = [&stations.all[0], &stations.all[1]];
    let mut host = host_on(a);
    let mut medium = Holding::start();
    let equal = || frame(Kind::DATA, a, b.address, 1, 0);
    // As an Ethernet frame it differs where an 802.11 frame has its Duration.
    let mut almost = equal();
    almost[4 + 2] ^= 0x55;
    let requests = [equal(), equal(), almost.clone(), equal()].map(|frame| (frame, HOW));
    let mut script: Checked<Script> = Checked::strict(Script {
        requests: requests.into(),
        ..Script::default()
    });
    let mut run = |host: &mut Host| {
        let until = Host::now() + Duration::from_ms(20);
        host.run(&mut script, &mut (), Some(until), &AtomicBool::new(false))
            .unwrap();
    };
    run(&mut host);
    medium.collect();
    let mut sent = 0;
    let told = medium.answer(|_, frame| {
        let is_data = Header::parse(&frame.frame).is_ok_and(|h| h.frame_type() == FrameType::Data);
        sent += usize::from(is_data);
        is_data.then_some(sent != 2)
    });
    assert_eq!(
        (told, sent),
        (3, 3),
        "to the other address, which it does not know, the kernel sends nothing"
    );
    run(&mut host);
    host.finish(&mut script, &mut ()).unwrap();
    let script = script.into_inner();
    let of = |n: usize| {
        script
            .confirms
            .iter()
            .find(|c| c.token == script.tokens[n])
            .unwrap()
            .outcome
    };
    assert_eq!(
        [0, 1, 2, 3].map(of),
        [
            Outcome::Acked,
            Outcome::NotAcked,
            Outcome::Unknown,
            Outcome::Acked
        ]
    );
    assert_eq!(
        (host.counters().late_statuses, host.counters().foreign_statuses),
        (0, 0)
    );
}

/// Ten frames are with the kernel when something happens to the interface: each has its confirm, and later ones are refused until
/// it is as it was.
fn pending(stations: &mut Stations, radio: usize, what: impl FnOnce(&mut Control, &Interface)) -> Host {
    let a = stations.all[radio].clone();
    let b = stations.all[(radio + 1) % 2].address;
    let mut host = host_on(&a);
    let mut medium = Holding::start();
    let requests = (0..10).map(|n| (frame(Kind::DATA, &a, b, n, 0), HOW));
    let mut script: Checked<Script> = Checked::strict(Script {
        requests: requests.collect(),
        ..Script::default()
    });
    let stop = AtomicBool::new(false);
    let until = Host::now() + Duration::from_ms(10);
    host.run(&mut script, &mut (), Some(until), &stop).unwrap();
    assert!(medium.collect() >= 10, "all are pending");
    what(&mut stations.control, &a);
    let until = Host::now() + Duration::from_ms(1_100); // News of a carrier may be a second late.
    host.run(&mut script, &mut (), Some(until), &stop).unwrap();
    drop(medium);
    let mut one = Once::new(frame(Kind::DATA, &a, b, 99, 0), HOW);
    assert_eq!(one.outcome(&mut host), Some(Outcome::Refused(Refusal::NoAdapter)));
    let done = script.into_inner();
    assert_eq!(done.confirms.len(), 10, "each has its confirm");
    let outcomes = outcomes_of(&done.confirms);
    let unsent = |o: &Outcome| matches!(o, Outcome::Unknown | Outcome::NotAcked);
    assert!(outcomes.iter().all(unsent), "{outcomes:?}");
    host
}

#[test]
fn an_ordinary_interface_that_goes_down_or_leaves_with_frames_pending() {
    let Some(mut stations) = stations() else { return };
    let host = pending(&mut stations, 0, |control, a| control.set_down(a).unwrap());
    drop(host);
    let a = stations.all[0].clone();
    let error = Adapter::open(config(&a)).unwrap_err().to_string();
    assert!(error.contains("it is down: ip link set"), "{error}");
    stations.control.join_ad_hoc(&a, &NETWORK).unwrap();
    wait_for("a network", || has_carrier(&a));
    std::thread::sleep(std::time::Duration::from_secs(1));

    let mut host = pending(&mut stations, 0, |control, a| {
        let socket = OrdinarySocket::open(&a.name).unwrap();
        control.leave_ad_hoc(a).unwrap();
        let error = socket.send(&[0; 60]).unwrap_err();
        assert_eq!(
            error.raw_os_error(),
            Some(libc::ENOBUFS),
            "before there is news of it: {error}"
        );
    });
    let error = OpenError::of(&a, |_| ());
    assert!(error.0.contains("in no network yet: iw dev"), "{}", error.0);
    // Back in its network it goes on.
    stations.control.join_ad_hoc(&a, &NETWORK).unwrap();
    wait_for("a network", || has_carrier(&a));
    std::thread::sleep(std::time::Duration::from_secs(1));
    let b = stations.all[1].address;
    let mut settle = Script::default();
    let until = Host::now() + Duration::from_ms(1_100);
    let stop = AtomicBool::new(false);
    host.run(&mut settle, &mut (), Some(until), &stop).unwrap();
    let mut one = Once::new(frame(Kind::DATA, &a, b, 100, 0), HOW);
    assert_eq!(one.outcome(&mut host), Some(Outcome::Acked));
}

#[test]
fn the_radio_of_an_ordinary_interface_is_pulled_out_with_frames_pending() {
    let Some(radios) = simulated_radios(1) else { return };
    let mut maker = linux::hwsim::Medium::open().unwrap();
    let radio = maker.add_radio().unwrap();
    let names = [radio.name.clone(), radios.names[0].clone()];
    let mut stations = stations_of(radios, &names);
    pending(&mut stations, 0, |_, _| maker.remove_radio(radio.id).unwrap());
    assert!(our_interfaces().is_empty());
}

/// Outcomes that came while the host was held up for longer than its patience are known all the same.
#[test]
fn outcomes_that_came_while_the_host_was_held_up_are_known() {
    let Some(stations) = stations() else { return };
    let [a, b] = [&stations.all[0], &stations.all[1]];
    let mut host = host_on(a);
    let requests = (0..20).map(|n| (frame(Kind::DATA, a, b.address, n, 0), HOW));
    let mut script: Checked<Script> = Checked::strict(Script {
        requests: requests.collect(),
        ..Script::default()
    });
    let stop = AtomicBool::new(false);
    for ms in [0, 20] {
        let until = Host::now() + Duration::from_ms(ms);
        host.run(&mut script, &mut (), Some(until), &stop).unwrap();
        std::thread::sleep(std::time::Duration::from_nanos(2 * PATIENCE.as_ns()));
    }
    let confirms = script.into_inner().confirms;
    assert_eq!(outcomes_of(&confirms), [Outcome::Acked; 20]);
    assert_eq!(host.counters().late_statuses, 0);
}

/// A monitor comes to the channel where the last one was, though an ordinary interface has been elsewhere since.
#[test]
fn a_monitor_comes_back_to_its_channel_after_a_network() {
    let Some(radios) = simulated_radios(2) else { return };
    let names = radios.names[..2].to_vec();
    drop(open(&names[0]));
    let stations = stations_of(radios, &names);
    let error = Adapter::open(AdapterConfig::new(&names[0], CHANNEL)).unwrap_err();
    assert!(error.to_string().contains("holds the channel"), "{error}");
    drop(stations);
    drop(open(&names[0]));
}

/// Outcomes that find no room in the socket are lost, and the kernel does not count them: unknown.
#[test]
fn outcomes_that_find_no_room_are_unknown() {
    let Some(stations) = stations() else { return };
    let [a, b] = [&stations.all[0], &stations.all[1]];
    let adapter = Adapter::open(AdapterConfig {
        receive_octets: 1, // The kernel's least, room for a few.
        ..config(a)
    });
    let by_status = HostConfig {
        confirm: Path::Status,
        confirm_timeout: PATIENCE,
        ..HostConfig::default()
    };
    let mut host = host(adapter.unwrap(), by_status);
    let requests = (0..50).map(|n| (frame(Kind::DATA, a, b.address, n, 0), HOW));
    let confirms = asked(&mut host, requests.collect());
    let of = |outcome| confirms.iter().filter(|c| c.outcome == outcome).count();
    let [acked, unknown] = [Outcome::Acked, Outcome::Unknown].map(of);
    assert!(
        acked > 0 && unknown > 0 && acked + unknown == 50,
        "{acked} {unknown}"
    );
    assert_eq!(host.counters().lost_packets, 0);
    let mut one = Once::new(frame(Kind::DATA, a, b.address, 99, 0), HOW);
    assert_eq!(one.outcome(&mut host), Some(Outcome::Acked), "it goes on");
}
