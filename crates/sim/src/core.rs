//! Everything in a world but the protocols: what the event loop, the air, the adapters and the hosts share.

use crate::adapter::Adapter;
use crate::adapter::herd::Herds;
use crate::medium::error::Reception;
use crate::medium::fate::LinkState;
use crate::medium::links::{Antenna, Links, Neighbours};
use crate::medium::power::{self, Attowatt};
use crate::medium::{Capture, MediumConfig};
use crate::node::Node;
use crate::pool::Pool;
use crate::queue::Queue;
use crate::trace::{OnAir, Trace};
use crate::traffic::Source;
use frame::Rate;
use radio::{Confirm, Indication, Stamps, Token, TxHow};
use std::ops::Range;
use std::rc::Rc;

/// No object.
pub(crate) const NONE: u32 = u32::MAX;

/// What the event queue holds. Ranks order events at equal times.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ev {
    /// A signal ends at its receivers.
    End(u32),
    /// The preamble of a signal has been on the air long enough to be detected.
    Detect(u32),
    /// A response is due: adapter.
    Respond(u32),
    /// SIFS after a CTS is over, or a TXOP goes on: adapter.
    Continue(u32),
    /// An ACK or CTS did not begin in time: adapter.
    Timeout(u32),
    /// Nothing has followed an RTS that set the NAV: adapter.
    NavReset(u32),
    /// A countdown is over: adapter.
    Access(u32),
    /// The first countdowns of a herd are over: herd.
    Herd(u32),
    /// A request has reached its queue: frame.
    Arrive(u32),
    /// A confirm has reached its protocol: confirm.
    Confirm(u32),
    /// A received frame has reached its protocol: indication.
    Indicate(u32),
    /// The answer to a `set`: node, index of the answer.
    Answer(u32, u32),
    /// The interrupt of a protocol's timer: node.
    Interrupt(u32),
    /// A protocol's timer: node.
    Timer(u32),
    /// The first event of a node.
    Start(u32),
    /// Traffic: source.
    Traffic(u32),
    /// Something that was planned: index.
    Plan(u32),
}

impl Ev {
    /// Ends before new access, the air before the hosts.
    pub fn rank(&self) -> u8 {
        match self {
            Ev::End(_) => 0,
            Ev::Detect(_) => 1,
            Ev::Plan(_) => 2,
            Ev::Respond(_) | Ev::Continue(_) => 3,
            Ev::Timeout(_) | Ev::NavReset(_) => 4,
            Ev::Access(_) | Ev::Herd(_) => 5,
            Ev::Arrive(_) => 6,
            Ev::Start(_) => 7,
            Ev::Confirm(_) | Ev::Indicate(_) | Ev::Answer(..) => 8,
            Ev::Interrupt(_) | Ev::Timer(_) => 9,
            Ev::Traffic(_) => 10,
        }
    }
}

/// What the error rate of a signal depends on besides its ratio.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Decoding {
    /// Preamble and PHY header, ns.
    pub header_ns: u64,
    /// Bits per ns in these.
    pub header_density: f64,
    /// Bits per ns after these.
    pub body_density: f64,
    /// Noise in the channel, attowatts.
    pub noise: f64,
    /// Error tables of header and body.
    pub tables: (u8, u8),
}

/// A transmission on the air.
#[derive(Clone, Debug)]
pub(crate) struct Signal {
    pub what: OnAir,
    pub tx: u32,
    /// Frame it carries, or [`NONE`].
    pub frame: u32,
    pub rate: Rate,
    pub channel: u16,
    pub start: u64,
    pub end: u64,
    /// Receiver address as a key.
    pub ra: u64,
    /// Duration field, us.
    pub duration_us: u32,
    pub octets: u32,
    pub retry: bool,
    /// The receiver answers with an ACK (or CTS).
    pub solicits: bool,
    /// The sender waits for that answer.
    pub awaits: bool,
    /// TSF of the sender when the first bit of a timestamp field is sent, us.
    pub tsf_us: u64,
    /// What its error rate depends on, filled in when it starts.
    pub decoding: Decoding,
    /// Who hears it, as it was when it started.
    pub links: Rc<Neighbours>,
}

/// A request on its way.
#[derive(Clone, Debug)]
pub(crate) struct TxFrame {
    pub token: Token,
    pub node: u32,
    pub adapter: u32,
    pub how: TxHow,
    pub octets: Vec<u8>,
    pub ra: u64,
    /// Its receiver answers with an ACK.
    pub solicits: bool,
    /// We wait for the ACK.
    pub awaits: bool,
    pub is_beacon: bool,
    pub attempts: u16,
    pub rts_failures: u16,
    pub aborted: bool,
    pub arrived: bool,
    pub stamps: Stamps,
    pub load: Option<crate::host::Load>,
    /// Rate and duration of the latest attempt, us.
    pub timing: (Rate, u32),
    /// The last exchange: start and end, ns.
    pub exchange: Option<(u64, u64)>,
    /// Strength of its ACK, where the adapter tells.
    pub ack_dbm: Option<i8>,
    /// The request itself and indications that have not been handed over.
    pub users: u32,
    /// The one behind it in its queue, or [`NONE`].
    pub next: u32,
}

/// A confirm on its way.
#[derive(Clone, Debug)]
pub(crate) struct PendingConfirm {
    pub node: u32,
    pub confirm: Confirm,
    pub exchange: Option<(u64, u64)>,
    /// The saturated source that may hand down its next MSDU.
    pub refill: Option<u32>,
}

/// A received frame on its way.
#[derive(Clone, Debug)]
pub(crate) struct PendingIndication {
    pub node: u32,
    pub adapter: u32,
    pub frame: u32,
    pub rate: Rate,
    pub signal_dbm: i8,
    pub tsf_us: u64,
    pub retry: bool,
    pub duration_us: u32,
    pub beacon_tsf_us: u64,
    pub stamps: Stamps,
}

/// Gate bits: what a pass over the neighbours needs to know about a receiver.
pub(crate) mod gate {
    /// Index of the channel.
    pub const CHANNEL: u16 = 0x07ff;
    /// It is receiving a frame.
    pub const RECEIVING: u16 = 0x8000;
    /// It is transmitting.
    pub const TRANSMITTING: u16 = 0x4000;
    /// Its receiver is off.
    pub const DEAF: u16 = 0x2000;
    /// Its medium is busy by energy: look when the power falls.
    pub const ENERGY: u16 = 0x1000;
    /// It notes every change of power during its reception.
    pub const RECORDING: u16 = 0x0800;
}

/// The part of a receiver that every signal in reach touches, kept apart from the rest so that a pass over the
/// neighbours stays in the cache.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Ear {
    /// Sum of the powers that arrive.
    pub power: Attowatt,
    /// Sum of powers above which the receiver must be looked at.
    pub limit: Attowatt,
    /// Bits of [`gate`].
    pub gate: u16,
}

/// Powers and thresholds of the medium, in the units of the inner loops.
#[derive(Clone, Debug)]
pub(crate) struct Levels {
    pub noise_20: f64,
    pub noise_40: f64,
    pub energy: Attowatt,
    pub preamble_ratio: f64,
    pub preamble_detection: bool,
    pub capture: Capture,
    /// The ratio in `capture`, linear.
    pub capture_ratio: f64,
}

impl Levels {
    /// Noise in the channel of a rate, attowatts.
    #[inline]
    pub fn noise(&self, rate: Rate) -> f64 {
        if rate.width_mhz() == 40 {
            self.noise_40
        } else {
            self.noise_20
        }
    }
}

/// The shared state.
pub(crate) struct Core {
    pub now: u64,
    pub seed: u64,
    pub queue: Queue<Ev>,
    pub adapters: Vec<Adapter>,
    /// What the passes over neighbours touch, per adapter.
    pub ears: Vec<Ear>,
    /// When the timer of each adapter goes off; [`NEVER`](crate::adapter::NEVER) if it has none.
    pub armed: Vec<u64>,
    pub herds: Herds,
    pub antennas: Vec<Antenna>,
    /// Frequencies in MHz by channel index.
    pub channels: Vec<u16>,
    pub links: Links,
    pub losses: Vec<LinkState>,
    pub levels: Levels,
    pub reception: Reception,
    pub signals: Pool<Signal>,
    /// Receivers that a pass over the neighbours has found; empty between passes.
    pub concerned: Vec<u32>,
    /// Signals on the air, for adapters that change the channel.
    pub on_air: Vec<u32>,
    pub frames: Pool<TxFrame>,
    pub confirms: Pool<PendingConfirm>,
    pub indications: Pool<PendingIndication>,
    pub nodes: Vec<Node>,
    pub sources: Vec<Source>,
    /// When what is handed down counts, ns.
    pub flows_count: Range<u64>,
    pub answers: Pool<radio::SetAnswer>,
    pub plans: Vec<crate::plan::Plan>,
    pub trace: Trace,
    /// Frames on the air so far, responses included.
    pub frames_on_air: u64,
    /// A list with nobody in it, for signals that are not on the air yet.
    pub no_links: Rc<Neighbours>,
}

impl Core {
    pub fn new(config: &MediumConfig, seed: u64) -> Core {
        let detect = power::from_dbm(config.preamble_dbm);
        Core {
            now: 0,
            seed,
            queue: Queue::default(),
            adapters: Vec::new(),
            ears: Vec::new(),
            armed: Vec::new(),
            herds: Herds::default(),
            antennas: Vec::new(),
            channels: Vec::new(),
            links: Links::new(config.loss.clone(), config.floor_dbm, detect, seed),
            losses: Vec::new(),
            levels: Levels {
                noise_20: power::thermal_noise(20.0, config.noise_figure_db) as f64,
                noise_40: power::thermal_noise(40.0, config.noise_figure_db) as f64,
                energy: power::from_dbm(config.energy_dbm),
                preamble_ratio: power::db_to_ratio(config.preamble_sinr_db),
                preamble_detection: config.preamble_detection,
                capture: config.capture,
                capture_ratio: match config.capture {
                    Capture::FirstWins(db) | Capture::MessageInMessage { by_db: db, .. } => {
                        power::db_to_ratio(db)
                    }
                    Capture::Sinr | Capture::None => 1.0,
                },
            },
            reception: Reception::new(config.error.clone()),
            signals: Pool::default(),
            concerned: Vec::new(),
            on_air: Vec::new(),
            frames: Pool::default(),
            confirms: Pool::default(),
            indications: Pool::default(),
            nodes: Vec::new(),
            sources: Vec::new(),
            flows_count: 0..u64::MAX,
            answers: Pool::default(),
            plans: Vec::new(),
            trace: Trace::default(),
            frames_on_air: 0,
            no_links: Rc::default(),
        }
    }

    /// Adds an event.
    #[inline]
    pub fn at(&mut self, time: u64, event: Ev) -> crate::queue::Handle {
        self.queue.push(time.max(self.now), event.rank(), event)
    }

    /// Index of a channel, added if it is new; `None` if there are too many.
    pub fn channel_index(&mut self, mhz: u16) -> Option<u16> {
        if let Some(i) = self.channels.iter().position(|c| *c == mhz) {
            return Some(i as u16);
        }
        if self.channels.len() > usize::from(gate::CHANNEL) {
            return None;
        }
        self.channels.push(mhz);
        Some((self.channels.len() - 1) as u16)
    }

    /// One user of a frame less; the last one gives it back.
    #[inline]
    pub fn drop_frame(&mut self, frame: u32) {
        let f = &mut self.frames[frame];
        f.users -= 1;
        if f.users == 0 {
            self.frames.release(frame);
        }
    }

    /// Writes the frame as it was on the air: retry bit, Duration and, in beacons, the timestamp.
    pub fn frame_on_air(&self, frame: u32, retry: bool, duration_us: u32, tsf_us: u64, out: &mut Vec<u8>) {
        let f = &self.frames[frame];
        out.clear();
        out.extend_from_slice(&f.octets);
        let _ = frame::mac::header::set_retry(out, retry);
        let _ = frame::mac::header::set_duration(out, duration_us.min(32_767) as u16);
        if f.is_beacon
            && let Some(field) = out.get_mut(24..32)
        {
            field.copy_from_slice(&tsf_us.to_le_bytes());
        }
    }

    /// A received frame as the contract shows it.
    pub fn indication<'a>(&self, i: &PendingIndication, octets: &'a [u8]) -> Indication<'a> {
        Indication {
            frame: octets,
            rate: i.rate,
            signal_dbm: Some(i.signal_dbm),
            tsf: Some(radio::Tsf(i.tsf_us)),
            adapter: radio::AdapterId(self.adapters[i.adapter as usize].ordinal),
            stamps: i.stamps,
        }
    }
}
