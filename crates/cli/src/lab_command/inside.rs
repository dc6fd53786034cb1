//! This program once more, inside a guest in virtual time, for an answer.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use lab::testbed::cache::Cache;
use lab::testbed::job::How;
use lab::testbed::run::{self, RunError, Time};
use serde::de::DeserializeOwned;

use super::{LAB_FAILED, kernel, this_program};
use crate::ui::{Failure, Ui};

/// Memory of the guest: the air, the stacks, and what measures.
const MEMORY: u64 = 512 << 20;

/// What is run inside.
pub(super) struct Inside {
    /// Set in there, so that the program knows where it is.
    pub variable: &'static str,
    /// Its arguments; it is told `--json`, too.
    pub arguments: Vec<String>,
    /// Radios.
    pub radios: u32,
    /// Seconds of this computer after which the guest is killed; 0: never.
    pub limit: u64,
}

/// Its answer; `None` if it was stopped.
pub(super) fn answer<T: DeserializeOwned>(
    what: Inside,
    cache: &Cache,
    ui: &Ui,
) -> Result<Option<T>, Failure> {
    let lab_failed = |failure: Failure| failure.with_code(LAB_FAILED);
    let Some(kernel) = kernel(None, cache, ui)? else {
        return Ok(None);
    };
    let sdmac = this_program().map_err(lab_failed)?;
    let texts = std::env::vars_os().filter_map(|(n, v)| Some((n.into_string().ok()?, v.into_string().ok()?)));
    let mut environment: BTreeMap<_, _> = texts.collect();
    environment.insert(what.variable.to_owned(), "1".to_owned());
    let mut arguments = what.arguments;
    arguments.push("--json".to_owned());
    let options = run::Options {
        program: sdmac.display().to_string(),
        sdmac,
        memory: MEMORY,
        time: Time::Virtual,
        kvm: false,
        cpus: 1,
        sticks: Vec::new(),
        module: None,
        radios: what.radios,
        country: "US".to_owned(),
        parameters: Vec::new(),
        writable: Vec::new(),
        environment,
        limit: (what.limit > 0).then(|| Duration::from_secs(what.limit)),
        kernel_log: None,
        arguments,
    };
    let (mut said, mut complained) = (Vec::new(), Vec::new());
    let mut output = |stream: usize, octets: &[u8]| -> io::Result<()> {
        let place = if stream == 0 { &mut said } else { &mut complained };
        place.extend_from_slice(octets);
        Ok(())
    };
    let end = match run::run(&kernel, &options, &mut output, ui.stop()) {
        Ok(end) => end,
        Err(RunError::Stopped) => return Ok(None),
        Err(error) => return Err(lab_failed(Failure::on_the_way(error))),
    };
    if end.how != How::Exited(0) {
        let text = String::from_utf8_lossy(&complained);
        let last = text.lines().last().unwrap_or("it ended without a word");
        let last = last.trim_start_matches("sdmac: ");
        return Err(lab_failed(Failure::on_the_way(format!("in the guest: {last}"))));
    }
    let answer =
        serde_json::from_slice(&said).map_err(|e| Failure::on_the_way(format!("in the guest: {e}")))?;
    Ok(Some(answer))
}
