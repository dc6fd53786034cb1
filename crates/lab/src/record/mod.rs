//! Writes what happens in a simulated run into its folder: a capture of the air, a timeline, tables of samples.
//!
//! [`Recorder::observer`] goes into the world, [`Recorder::finish`] puts the files in their places. The capture and
//! the timeline keep the beginning of a run, as much as [`Limits`] allows; the tables keep everything. A file that
//! cannot be written is given up, the run goes on, and [`Recorder::finish`] tells what happened.

mod air;
mod planes;
mod tables;

use std::cell::RefCell;
use std::rc::Rc;

use frame::MacAddr;
use frame::radiotap::Radiotap;
use radio::{Confirm, Msdu};
use sim::Observer;
use sim::clock::Clock;
use sim::trace::{ReceptionEnd, Transmission};

use crate::report::folder::{Folder, FolderError};
use crate::report::pcapng::{Origin, PcapngError};
use crate::report::samples::SamplesError;

use air::Air;
use planes::Planes;
use tables::Tables;

/// Name of the table of confirms inside the folder.
pub const CONFIRMS: &str = "confirms.parquet";
/// Name of the table of deliveries inside the folder.
pub const DELIVERIES: &str = "deliveries.parquet";

/// How much of a run is kept in files that grow with the frames on the air.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The capture ends at this simulated time, ns.
    pub air_ns: u64,
    /// ... and at this size, MiB.
    pub air_mib: u32,
    /// The timeline ends at this simulated time, ns.
    pub timeline_ns: u64,
    /// ... and at this number of slices and instants; they stay in memory until the end, some 200 octets each.
    pub timeline_items: usize,
}

impl Default for Limits {
    /// 60 s and 64 MiB of air, 10 s and 200,000 items of timeline.
    fn default() -> Self {
        Limits {
            air_ns: 60_000_000_000,
            air_mib: 64,
            timeline_ns: 10_000_000_000,
            timeline_items: 200_000,
        }
    }
}

/// What the recorder must know of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeAbout {
    /// Name, shown in every file.
    pub name: String,
    /// Addresses of its adapters, in their order.
    pub addresses: Vec<MacAddr>,
    /// Its clock, to bring stamps to true time.
    pub clock: Clock,
}

/// What was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Recorded {
    /// Frames in the capture.
    pub frames: u64,
    /// Frames that came after its limits.
    pub frames_left_out: u64,
    /// Slices and instants that came after the timeline's limits.
    pub items_left_out: u64,
    /// Rows in the table of confirms.
    pub confirms: u64,
    /// Rows in the table of deliveries.
    pub deliveries: u64,
}

/// Why a file is missing in the folder. The text is one sentence for the command line.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The folder, or a file in it, cannot be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The capture cannot be encoded.
    #[error("cannot write the capture: {0}")]
    Air(PcapngError),
    /// A table cannot be encoded.
    #[error("cannot write the samples: {0}")]
    Samples(SamplesError),
}

/// One file in the making, until it fails.
struct Part<T> {
    inner: Option<T>,
    error: Option<RecordError>,
}

impl<T> Part<T> {
    fn new(inner: T) -> Part<T> {
        Part {
            inner: Some(inner),
            error: None,
        }
    }

    /// Does something to it; gives it up when that fails.
    fn with(&mut self, work: impl FnOnce(&mut T) -> Result<(), RecordError>) {
        if let Some(inner) = &mut self.inner
            && let Err(error) = work(inner)
        {
            self.inner = None;
            self.error = Some(error);
        }
    }

    fn finish<R: Default>(self, work: impl FnOnce(T) -> Result<R, RecordError>) -> (R, Option<RecordError>) {
        match (self.inner, self.error) {
            (Some(inner), None) => match work(inner) {
                Ok(done) => (done, None),
                Err(error) => (R::default(), Some(error)),
            },
            (_, error) => (R::default(), error),
        }
    }
}

struct Parts {
    air: Part<Air>,
    planes: Planes,
    tables: Part<Tables>,
}

/// See the [module](self).
pub struct Recorder(Rc<RefCell<Parts>>);

impl Recorder {
    /// Opens the files. `nodes` are in the order in which the world numbers them, and sources of noise come after
    /// them. `about` goes to the metadata of the tables: scenario, seed.
    pub fn new(
        folder: &Folder,
        nodes: &[NodeAbout],
        about: &[(&str, &str)],
        limits: Limits,
    ) -> Result<Recorder, RecordError> {
        Recorder::start(folder, nodes, about, limits, air::SIMULATED)
    }

    /// The same for what one node has seen on a computer of its own.
    pub fn of_station(
        folder: &Folder,
        nodes: &[NodeAbout],
        about: &[(&str, &str)],
        limits: Limits,
    ) -> Result<Recorder, RecordError> {
        Recorder::start(folder, nodes, about, limits, air::OF_LINUX)
    }

    fn start(
        folder: &Folder,
        nodes: &[NodeAbout],
        about: &[(&str, &str)],
        limits: Limits,
        origin: Origin<'static>,
    ) -> Result<Recorder, RecordError> {
        Ok(Recorder(Rc::new(RefCell::new(Parts {
            air: Part::new(Air::new(folder, nodes, limits, origin)?),
            planes: Planes::new(nodes, limits),
            tables: Part::new(Tables::new(folder, about)?),
        }))))
    }

    /// Payloads of a flow come from this node, which is not recorded itself.
    pub fn expect_flow(&self, flow: u32, from: u32) {
        let parts = &mut *self.0.borrow_mut();
        parts.tables.with(|t| {
            t.expect(flow, from);
            Ok(())
        });
    }

    /// Writes a frame that a node has sent or heard into the capture.
    pub fn captured(&self, at_ns: u64, node: u32, head: &Radiotap, frame: &[u8], comment: &str) {
        let parts = &mut *self.0.borrow_mut();
        parts.air.with(|a| a.captured(at_ns, node, head, frame, comment));
    }

    /// What the world shows its steps to.
    pub fn observer(&self) -> Box<dyn Observer> {
        Box::new(Watch(Rc::clone(&self.0)))
    }

    /// Writes what is left and puts the files in their places, also after a run that was stopped.
    ///
    /// # Errors
    /// The first file that is missing, and why; the others are there.
    ///
    /// # Panics
    /// While an observer is still in a world: take it back before.
    pub fn finish(self, folder: &Folder) -> Result<Recorded, RecordError> {
        let parts = Rc::try_unwrap(self.0).ok().expect("the observer was taken back");
        let Parts { air, planes, tables } = parts.into_inner();
        let ((frames, frames_left_out), air_error) = air.finish(|a| a.finish(folder));
        let (items_left_out, planes_error) = Part::new(planes).finish(|p| p.finish(folder));
        let ((confirms, deliveries), tables_error) = tables.finish(|t| t.finish(folder));
        match air_error.or(planes_error).or(tables_error) {
            Some(error) => Err(error),
            None => Ok(Recorded {
                frames,
                frames_left_out,
                items_left_out,
                confirms,
                deliveries,
            }),
        }
    }
}

struct Watch(Rc<RefCell<Parts>>);

impl Observer for Watch {
    fn transmission(&mut self, t: &Transmission<'_>) {
        let parts = &mut *self.0.borrow_mut();
        parts.air.with(|a| a.transmission(t));
        parts.planes.transmission(t);
    }

    fn reception(&mut self, r: &ReceptionEnd) {
        self.0.borrow_mut().planes.reception(r);
    }

    fn submitted(&mut self, now_ns: u64, node: u32, msdu: &Msdu<'_>) {
        let parts = &mut *self.0.borrow_mut();
        parts.planes.submitted(now_ns, node, msdu);
        parts.tables.with(|t| {
            t.submitted(node, msdu);
            Ok(())
        });
    }

    fn delivered(&mut self, now_ns: u64, node: u32, msdu: &Msdu<'_>) {
        let parts = &mut *self.0.borrow_mut();
        parts.planes.delivered(now_ns, node, msdu);
        parts.tables.with(|t| t.delivered(now_ns, node, msdu));
    }

    fn confirmed(&mut self, now_ns: u64, node: u32, confirm: &Confirm, exchange_ns: Option<(u64, u64)>) {
        let parts = &mut *self.0.borrow_mut();
        parts.planes.confirmed(now_ns, node, confirm, exchange_ns);
        parts
            .tables
            .with(|t| t.confirmed(now_ns, node, confirm, exchange_ns));
    }
}

/// One word for an outcome, as in the tables and the timeline.
pub fn outcome_word(outcome: radio::Outcome) -> &'static str {
    match outcome {
        radio::Outcome::Acked => "acked",
        radio::Outcome::NotAcked => "not acked",
        radio::Outcome::Refused(_) => "refused",
        radio::Outcome::Aborted => "aborted",
        radio::Outcome::Expired => "expired",
        radio::Outcome::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests;
