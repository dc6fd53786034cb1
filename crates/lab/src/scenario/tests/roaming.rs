//! Stations that roam, and nodes that walk.

use std::path::Path;

use super::*;
use crate::scenario::roam::moves;

const HALL: &str = include_str!("../../../../../scenarios/roaming.toml");

#[test]
fn what_cannot_roam_is_said() {
    let both = "roam = { access_points = [\"west\", \"east\"], hold = \"500ms\" }";
    for (from, to, says) in [
        (
            both,
            "roam = { access_points = [\"west\", \"eest\"] }",
            "did you mean \"east\"?",
        ),
        (
            both,
            "roam = { access_points = [\"east\"] }",
            "begins at its access point",
        ),
        (
            both,
            "roam = { access_points = [\"west\", \"alone\"] }",
            "\"alone\" sends no beacons",
        ),
        (
            both,
            "roam = { access_points = [\"west\"], better_db = -1 }",
            "-1 is not",
        ),
        (
            both,
            "roam = { access_points = [\"west\", \"east\"], failed = [11, 10] }",
            "not [11, 10]",
        ),
        (
            both,
            "roam = { access_points = [\"west\", \"east\"], lost = \"0us\" }",
            "lost after 0s, and \"west\" sends a beacon each 102.4ms",
        ),
        (
            both,
            "roam = { access_points = [\"west\", \"east\"], lost = \"102400us\" }",
            "three intervals or more",
        ),
        (
            both,
            "roam = { access_points = [\"west\", \"east\"], dwell = \"20ms\" }",
            "sends a beacon each 102.4ms: it would miss most of them",
        ),
        (
            both,
            "roam = { access_points = [\"west\", \"east\"], answer = \"1us\" }",
            "no access point answers within 1us",
        ),
        (
            "lost = \"350ms\"",
            "lost = \"350ms\", copies = true",
            "\"alone\" has one adapter, and copies go on two links",
        ),
        (
            both,
            "roam = { access_points = [\"west\"], rate = \"11M\" }",
            "has no rate 11M",
        ),
        (
            both,
            "redundancy = {}\nroam = { access_points = [\"west\"] }",
            "both want its adapters",
        ),
        (
            "what.walk = { to = [70, -1], m_per_s = 2 }",
            "what.walk = { to = [70, -1], m_per_s = 0 }",
            "0.01 to 1000",
        ),
    ] {
        let said = broken(HALL, from, to);
        assert!(said.contains(says), "{to}: {said}");
    }
    let sink = HALL.replacen(
        "protocol.sender = { rate = \"6M\", tries = 3 }",
        "protocol.tbmac = {}",
        1,
    );
    assert!(parse(&sink, &[]).is_err());
}

#[test]
fn a_walk_is_straight_and_as_fast_as_it_says() {
    let s = parse(HALL, &["duration=20s"]).unwrap();
    let way: Vec<_> = moves(&s).into_iter().filter(|(_, node, _)| *node == 2).collect();
    let (first, last) = (way[0], way[way.len() - 1]);
    assert_eq!(
        (first.0, last.0),
        (400_000_000, 20_000_000_000),
        "until the run ends"
    );
    assert!((first.2.x - 10.2).abs() < 1e-9 && first.2.y == 1.0, "{first:?}");
    assert!((last.2.x - 49.4).abs() < 1e-9, "{last:?}");
    // it turns round on the way
    let back = format!(
        "{HALL}\n[[incident]]\nat = \"12s\"\nnode = \"both\"\nwhat.walk = {{ to = [10, 1], m_per_s = 4 }}\n"
    );
    let s = parse(&back, &[]).unwrap();
    let way: Vec<_> = moves(&s).into_iter().filter(|(_, node, _)| *node == 2).collect();
    let east = way.iter().map(|(_, _, at)| at.x).fold(0.0, f64::max);
    let (at, _, home) = way[way.len() - 1];
    assert!((east - 33.4).abs() < 1e-9, "{east}");
    assert!(
        (home.x - 10.0).abs() < 1e-9 && at == 17_850_000_000,
        "{at} {home:?}"
    );
    // and is put elsewhere while it walks
    let away = format!("{HALL}\n[[incident]]\nat = \"3s\"\nnode = \"both\"\nwhat.move_to = [0, 5]\n");
    let s = parse(&away, &[]).unwrap();
    let (at, _, last) = *moves(&s).iter().rfind(|(_, node, _)| *node == 2).unwrap();
    assert_eq!((at, last.x, last.y), (3_000_000_000, 0.0, 5.0));
}

#[test]
fn too_many_steps_are_refused() {
    let crowd = HALL.replacen("name = \"both\"\n", "name = \"both\"\ncount = 9000\n", 1);
    let said = parse(&crowd, &["duration=1000s"])
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(said.contains("let fewer walk"), "{said}");
}

/// The robot with two adapters misses nothing, the one with one is cut off for a while.
#[test]
fn the_hall_shows_what_it_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/roaming.toml");
    let s = Scenario::open(&path, &[]).unwrap();
    let mut world = s.build(1);
    world.run_until(s.duration_ns());
    let of = |node| world.protocol(node).roamed().unwrap();
    let (two, one) = (of(2), of(3));
    assert_eq!((two.handovers, one.handovers), (1, 1), "{two:?} {one:?}");
    assert_eq!(two.missed_in_handover, 0, "{two:?}");
    assert!(one.missed_in_handover >= 10, "{one:?}");
    assert!(one.longest_gap_ns > two.longest_gap_ns, "{two:?} {one:?}");
}
