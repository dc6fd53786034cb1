//! The body on the simulator, and on hosts that break the contract: a body that cannot fail shows nothing.

use std::rc::Rc;

use radio::{Event, Instant, Outcome, Protocol, Radio};

use super::*;

const BOOK: &str = include_str!("../../../../docs/src/contract.md");

/// All holds, nothing is declared, and the book's table of attributes tells the truth of it in this column.
fn clean(subject: &mut dyn Subject, column: &str) {
    let report = body(subject);
    println!("{report}");
    assert_eq!(report.failures().collect::<Vec<_>>(), []);
    assert_eq!(report.declared().collect::<Vec<_>>(), [""; 0]);
    assert_eq!(report.differences(BOOK, column), [], "seen, and written");
}

#[test]
fn the_simulator() {
    clean(&mut Simulator::default(), "simulator");
}

#[test]
fn the_simulator_with_the_latencies_of_a_host() {
    let profile = sim::host::Profile::open("table5").unwrap();
    let model = sim::host::HostModel::new(&profile).unwrap();
    clean(
        &mut Simulator {
            profile: Some(Rc::new(model)),
        },
        "simulator",
    );
}

#[test]
fn the_ar9170() {
    clean(&mut Ar9170::default(), "AR9170");
}

/// A fifth of all that the sticks say comes a millisecond late, three units at a time at most.
#[test]
fn the_ar9170_with_late_interrupts() {
    let knobs = ar9170::emulated::Knobs {
        late_interrupt: 0.2,
        units: 3,
        ..ar9170::emulated::Knobs::default()
    };
    clean(&mut Ar9170 { knobs }, "AR9170");
}

/// What a bad host does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sin {
    LosesConfirms,
    ConfirmsTwice,
    TimerTooEarly,
    TimeGoesBack,
    ClaimsAcks,
    LosesFrames,
    ClaimsTries,
    TellsNoBeacons,
}

/// A node whose host sins.
struct Sinner {
    node: Node,
    sin: Option<Sin>,
}

impl Protocol for Sinner {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        let sin = self.sin;
        let node = &mut self.node;
        match event {
            Event::Confirm(_) if sin == Some(Sin::LosesConfirms) => {}
            Event::Confirm(mut c) => {
                if sin == Some(Sin::ClaimsAcks) && c.outcome == Outcome::NotAcked {
                    c.outcome = Outcome::Acked;
                }
                if sin == Some(Sin::ClaimsTries) {
                    c.attempts += 1;
                }
                node.handle(now, Event::Confirm(c), radio);
                if sin == Some(Sin::ConfirmsTwice) {
                    node.handle(now, Event::Confirm(c), radio);
                }
            }
            Event::Start if sin == Some(Sin::TimerTooEarly) => {
                node.handle(now, Event::Start, radio);
                if node.deadline().is_some() {
                    node.handle(now, Event::Timer, radio);
                }
            }
            Event::Timer if sin == Some(Sin::TimeGoesBack) => {
                node.handle(now, Event::Timer, radio);
                node.handle(Instant::ZERO, Event::Timer, radio);
            }
            Event::Indication(_) if sin == Some(Sin::LosesFrames) => {}
            Event::Beacon(_) if sin == Some(Sin::TellsNoBeacons) => {}
            event => node.handle(now, event, radio),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.node.deadline()
    }
}

struct BadHost(Sin);

impl Subject for BadHost {
    fn name(&self) -> String {
        format!("{:?}", self.0)
    }

    fn cannot(&self, point: Point) -> Option<&'static str> {
        (point == Point::Expired).then_some("for the sake of the test")
    }

    fn addresses(&self) -> [MacAddr; 2] {
        Simulator::default().addresses()
    }

    fn run(&mut self, scene: Scene, nodes: [Node; 2], time: Duration) -> Result<[Node; 2], String> {
        let sinner = |node| Sinner {
            node,
            sin: Some(self.0),
        };
        let idle = || Sinner {
            node: Node::new(Script::default()),
            sin: None,
        };
        let nodes = Simulator::default().world(scene, nodes.map(sinner), idle, time);
        Ok(nodes.map(|sinner| sinner.node))
    }
}

/// Each sin is found, and by a case that is about it.
#[test]
fn a_host_that_breaks_the_contract_fails() {
    for (sin, case, why) in [
        (Sin::LosesConfirms, "outcome acked", "law 1 broken by the host"),
        (Sin::ConfirmsTwice, "outcome acked", "law 1 broken by the host"),
        (Sin::TimerTooEarly, "laws 3 and 4", "law 4 broken by the host"),
        (Sin::TimeGoesBack, "laws 3 and 4", "law 3 broken by the host"),
        (Sin::ClaimsAcks, "outcome not acked: nobody", "expected NotAcked"),
        (Sin::LosesFrames, "law 5", "heard []"),
        (
            Sin::ClaimsTries,
            "outcome not acked after all tries",
            "after 7 attempts",
        ),
        (Sin::TellsNoBeacons, "a beacon is told", "heard []"),
    ] {
        let report = body(&mut BadHost(sin));
        let found = report.failures().find(|(name, _)| name.starts_with(case));
        assert!(found.is_some_and(|(_, what)| what.contains(why)), "{report}");
    }
    let report = body(&mut BadHost(Sin::LosesFrames));
    let declared: Vec<_> = report.declared().collect();
    assert_eq!(
        declared.len(),
        3,
        "what needs an expiry, and no more: {declared:?}"
    );
}
