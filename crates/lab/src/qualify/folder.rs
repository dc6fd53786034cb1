//! The output folder: `result.json` and `report.html`, and for each scheme a folder of its own with what happened in
//! its first cycles.

use super::answer::Answer;
use super::bench::{Bench, Ready};
use super::engine::seed_of;
use super::question::Question;
use crate::record::{Limits, NodeAbout, RecordError, Recorder};
use crate::report::folder::{Folder, FolderError, REPORT, Status};
use crate::stats::Verdict;
use std::path::Path;

/// Cycles that are recorded of each scheme; of nodes that roam a whole walk, as far as the limits of a recording go.
const RECORDED_CYCLES: u32 = 100;

/// Why the folder is not complete. The text is one sentence for the command line.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A file cannot be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A recording cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// No model can be made of the host profile.
    #[error(transparent)]
    Profile(#[from] sim::host::ProfileError),
}

/// Opens the folder, before the work; `force`: even if other files are in it.
///
/// # Errors
/// It cannot be written, or holds other files.
pub fn open(path: &Path, force: bool) -> Result<Folder, FolderError> {
    Folder::create(path, force)
}

/// Writes everything. `command` is how to get it again.
///
/// # Errors
/// The first file that is missing, and why.
pub fn write(folder: &Folder, answer: &Answer, question: &Question, command: &str) -> Result<(), WriteError> {
    let status = if answer.interrupted {
        Status::Interrupted
    } else {
        Status::Complete
    };
    folder.publish(status, answer)?;
    folder.write(REPORT, super::page::page(answer, command).html().as_bytes())?;
    if answer.interrupted {
        return Ok(());
    }
    let bench = Bench::new(question)?;
    for result in &answer.schemes {
        let ran = result.messages > 0 || result.verdict != Verdict::Fail;
        if ran {
            let name = result.scheme.to_string();
            let inner = Folder::create(folder.path().join(name), true)?;
            record(&inner, &bench, result.scheme)?;
            inner.publish(status, result)?;
        }
    }
    Ok(())
}

/// The first cycles of the first replication once more, this time with everything written down.
fn record(folder: &Folder, bench: &Bench, scheme: super::Scheme) -> Result<(), WriteError> {
    let q = &bench.question;
    let cycles = match scheme.walks() {
        true => super::roaming::cycles(q.cycle_ns),
        false => RECORDED_CYCLES,
    };
    let Ready {
        mut world,
        clocks,
        span,
        ..
    } = bench.world(scheme, seed_of(q.seed, 0), q.cycle_ns, cycles);
    let about = |node: u32| NodeAbout {
        name: match node {
            0 => "controller".to_owned(),
            n if n <= q.nodes => format!("node {n}"),
            n if n == q.nodes + 1 && scheme.walks() => "second access point".to_owned(),
            _ => "foreign".to_owned(),
        },
        addresses: vec![Question::address(node)],
        clock: clocks.get(node as usize).copied().unwrap_or_default(),
    };
    let nodes: Vec<_> = (0..world.nodes()).map(about).collect();
    let seed = q.seed.to_string();
    let recorder = Recorder::new(
        folder,
        &nodes,
        &[("seed", &seed), ("scheme", &scheme.word())],
        Limits::default(),
    )?;
    world.set_observer(recorder.observer());
    world.run_until(span.end_ns() + span.cycle_ns);
    drop(world);
    recorder.finish(folder)?;
    Ok(())
}
