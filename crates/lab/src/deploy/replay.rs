//! The files of a deployed node, by playing its tape to a fresh protocol: what is in them are the events of the tape, and
//! each action was compared on the way.

use std::collections::BTreeMap;

use frame::Rate;
use frame::radiotap::{Channel, Radiotap};
use radio::tape::{ReplayError, Replayed, replay};
use radio::{
    AdapterId, Confirm, Event, Hooks, Indication, Instant, Msdu, Outcome, Plane, Protocol, Radio, Tap, Token,
    TxHow,
};
use sim::Observer;
use sim::clock::Clock;

use crate::record::{RecordError, Recorded, Recorder};
use crate::report::folder::Folder;
use crate::scenario::Scenario;

use super::{DeployError, packets};

/// What a tape has come to.
#[derive(Debug)]
pub struct Transcript {
    /// The comparison with a fresh protocol.
    pub replayed: Result<Replayed, ReplayError>,
    /// What was written, if there was a folder.
    pub recorded: Option<Result<Recorded, RecordError>>,
}

/// Plays a tape to a fresh protocol of a node, and writes what it says to a folder, if there is one: capture, timeline, and
/// tables. All times are on the clock of the tape.
///
/// # Errors
/// [`DeployError::NoNode`], [`DeployError::Record`]. What is wrong with the tape is in [`Transcript::replayed`].
pub fn transcribe(
    scenario: &Scenario,
    node: &str,
    seed: u64,
    tape: &[u8],
    folder: Option<&Folder>,
) -> Result<Transcript, DeployError> {
    let mut station = super::station(scenario, node, seed)?;
    if let Some(first) = packets::first_on(tape) {
        station.program.number_packets_from(first);
    }
    let number = (0..scenario.nodes())
        .find(|n| scenario.node_name(*n) == node)
        .expect("it has a station");
    let mut recorder = None;
    if let Some(folder) = folder {
        let (begun, mut limits) = (first(tape), scenario.limits());
        limits.air_ns = limits.air_ns.saturating_add(begun.as_ns());
        limits.timeline_ns = limits.timeline_ns.saturating_add(begun.as_ns());
        let mut about = scenario.about(seed);
        // The tape has one clock, this computer's.
        about.iter_mut().for_each(|a| a.clock = Clock::default());
        let (title, text) = (scenario.file().title.as_str(), seed.to_string());
        let facts = [("scenario", title), ("seed", text.as_str()), ("node", node)];
        let new = Recorder::of_station(folder, &about, &facts, limits)?;
        for (flow, from) in (0..).zip(scenario.flow_sources(seed)) {
            new.expect_flow(flow, from);
        }
        recorder = Some(new);
    }
    let mut scribe = Scribe {
        inner: station.program,
        pen: Pen {
            node: number,
            mhz: station.config.adapters.iter().map(|a| a.mhz).collect(),
            observer: recorder.as_ref().map(Recorder::observer),
            recorder: recorder.as_ref(),
            open: BTreeMap::new(),
        },
    };
    let replayed = replay(tape, &mut scribe);
    drop(scribe);
    Ok(Transcript {
        replayed,
        recorded: recorder.zip(folder).map(|(r, folder)| r.finish(folder)),
    })
}

/// The time of the first event.
fn first(tape: &[u8]) -> Instant {
    struct First(Option<Instant>);
    impl Protocol for First {
        fn handle(&mut self, now: Instant, _: Event<'_>, _: &mut dyn Radio) {
            self.0.get_or_insert(now);
        }
        fn deadline(&self) -> Option<Instant> {
            None
        }
    }
    let mut first = First(None);
    // It does nothing of what is on the tape, which ends this.
    let _ = replay(tape, &mut first);
    first.0.unwrap_or(Instant::ZERO)
}

/// A protocol whose events and actions are written down.
struct Scribe<'a, P> {
    inner: P,
    pen: Pen<'a>,
}

/// What writes.
struct Pen<'a> {
    node: u32,
    /// Of each adapter.
    mhz: Vec<u16>,
    observer: Option<Box<dyn Observer>>,
    recorder: Option<&'a Recorder>,
    /// Frames that were requested and have not ended.
    open: BTreeMap<Token, (Vec<u8>, AdapterId)>,
}

impl Pen<'_> {
    fn event(&mut self, now: Instant, event: &Event<'_>) {
        let Some(observer) = &mut self.observer else {
            return;
        };
        match event {
            Event::Submit(msdu) => observer.submitted(now.as_ns(), self.node, msdu),
            Event::Confirm(confirm) => {
                observer.confirmed(now.as_ns(), self.node, confirm, None);
                self.sent(confirm);
            }
            Event::Indication(i) => self.heard(now, i),
            Event::Beacon(b) => self.heard(now, &b.received),
            _ => {}
        }
    }

    /// A frame of its own, at the last plane before the air that has a stamp.
    fn sent(&mut self, confirm: &Confirm) {
        let Some((frame, adapter)) = self.open.remove(&confirm.token) else {
            return;
        };
        let planes = [Plane::T4, Plane::T3, Plane::T2, Plane::T1];
        let at = planes.iter().find_map(|p| confirm.stamps.get_host(*p));
        if let (1.., Some(at)) = (confirm.attempts, at) {
            let tries = u8::try_from(confirm.attempts - 1).unwrap_or(u8::MAX);
            let head = Radiotap {
                data_retries: Some(tries),
                ..self.head(adapter, confirm.rate)
            };
            self.write(at, &head, &frame, outcome(confirm));
        }
    }

    fn heard(&self, now: Instant, i: &Indication<'_>) {
        let at = i.stamps.get_host(Plane::T8).unwrap_or(now);
        let head = Radiotap {
            tsft_us: i.tsf.map(|t| t.0),
            signal_dbm: i.signal_dbm,
            ..self.head(i.adapter, i.rate)
        };
        self.write(at, &head, i.frame, "");
    }

    fn head(&self, adapter: AdapterId, rate: Rate) -> Radiotap {
        let mhz = self.mhz.get(usize::from(adapter.0)).copied().unwrap_or(0);
        let modulation = if let Rate::Dsss(..) = rate {
            Channel::CCK
        } else {
            Channel::OFDM
        };
        let band = if mhz < 3_000 {
            Channel::GHZ_2_4
        } else {
            Channel::GHZ_5
        };
        Radiotap {
            flags: Some(0),
            channel: Some(Channel {
                mhz,
                flags: modulation | band,
            }),
            ..Radiotap::default()
        }
        .with_rate(rate)
    }

    fn write(&self, at: Instant, head: &Radiotap, frame: &[u8], comment: &str) {
        if let Some(recorder) = self.recorder {
            recorder.captured(at.as_ns(), self.node, head, frame, comment);
        }
    }
}

fn outcome(confirm: &Confirm) -> &'static str {
    match confirm.outcome {
        Outcome::Acked => "sent: acked",
        Outcome::NotAcked => "sent: not acked",
        _ => "sent: no status",
    }
}

impl<P: Protocol> Protocol for Scribe<'_, P> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        self.pen.event(now, &event);
        let pen = &mut self.pen;
        self.inner
            .handle(now, event, &mut Tap::new(radio, Notes { pen, now }));
    }

    fn deadline(&self) -> Option<Instant> {
        self.inner.deadline()
    }
}

/// The pen beside the radio of the tape.
struct Notes<'a, 'b> {
    pen: &'a mut Pen<'b>,
    now: Instant,
}

impl Hooks for Notes<'_, '_> {
    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow, radio: &mut dyn Radio) {
        self.pen.open.insert(token, (frame.to_vec(), how.adapter));
        radio.request(token, frame, how);
    }

    fn deliver(&mut self, msdu: Msdu<'_>, radio: &mut dyn Radio) {
        if let Some(observer) = &mut self.pen.observer {
            observer.delivered(self.now.as_ns(), self.pen.node, &msdu);
        }
        radio.deliver(msdu);
    }
}
