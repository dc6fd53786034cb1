//! This program once more, inside a guest in virtual time, for an answer.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use lab::testbed::cache::Cache;
use lab::testbed::job::How;
use lab::testbed::run::{self, RunError, Time};
use serde::de::DeserializeOwned;

use super::{LAB_FAILED, kernel, this_program};
use crate::ui::{Failure, Ui};

/// Memory of the guest: the air, the stacks, and what measures.
const MEMORY: u64 = 512 << 20;

/// What a line of progress begins with, on the guest's stderr.
const PROGRESS: &str = "progress: ";

/// Inside: tells that so much of so much is done.
pub(super) fn tell(done: u64, total: u64) {
    // nobody who hears it is no reason to fail
    let _ = writeln!(io::stderr(), "{PROGRESS}{done} {total}");
}

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

/// Stderr of the guest: complaints, and progress between them.
#[derive(Default)]
struct Complaints {
    text: String,
    /// A line that has not ended.
    rest: Vec<u8>,
}

impl Complaints {
    fn add(&mut self, octets: &[u8], progress: &dyn Fn(u64, u64)) {
        self.rest.extend_from_slice(octets);
        while let Some(end) = self.rest.iter().position(|octet| *octet == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let numbers = line
                .trim_end()
                .strip_prefix(PROGRESS)
                .and_then(|n| n.split_once(' '));
            match numbers.and_then(|(done, total)| Some((done.parse().ok()?, total.parse().ok()?))) {
                Some((done, total)) => progress(done, total),
                None => self.text += &line,
            }
        }
    }

    /// The last of them.
    fn last(&mut self) -> &str {
        self.text += &String::from_utf8_lossy(&std::mem::take(&mut self.rest));
        let last = self.text.lines().last().unwrap_or("it ended without a word");
        last.trim_start_matches("sdmac: ")
    }
}

/// Its answer; `None` if it was stopped. `progress` is told how much of how much is done.
pub(super) fn answer<T: DeserializeOwned>(
    what: Inside,
    cache: &Cache,
    ui: &Ui,
    progress: &dyn Fn(u64, u64),
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
    let (mut said, mut complaints) = (Vec::new(), Complaints::default());
    let mut output = |stream: usize, octets: &[u8]| -> io::Result<()> {
        match stream {
            0 => said.extend_from_slice(octets),
            _ => complaints.add(octets, progress),
        }
        Ok(())
    };
    let end = match run::run(&kernel, &options, &mut output, ui.stop()) {
        Ok(end) => end,
        Err(RunError::Stopped) => return Ok(None),
        Err(error) => return Err(lab_failed(Failure::on_the_way(error))),
    };
    if end.how != How::Exited(0) {
        let last = complaints.last();
        return Err(lab_failed(Failure::on_the_way(format!("in the guest: {last}"))));
    }
    let answer =
        serde_json::from_slice(&said).map_err(|e| Failure::on_the_way(format!("in the guest: {e}")))?;
    Ok(Some(answer))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn progress_is_told_apart_from_complaints() {
        let (mut complaints, told) = (Complaints::default(), RefCell::new(Vec::new()));
        let progress = |done, total| told.borrow_mut().push((done, total));
        for piece in [
            "progress: 1 1",
            "0\nsdmac: a wo",
            "rd\nprogress: 10 10\nprogress: of what?\n",
            "sdmac: the end",
        ] {
            complaints.add(piece.as_bytes(), &progress);
        }
        assert_eq!(*told.borrow(), [(1, 10), (10, 10)]);
        assert_eq!(complaints.last(), "the end");
        assert_eq!(complaints.text.lines().count(), 3, "{}", complaints.text);
        assert_eq!(Complaints::default().last(), "it ended without a word");
    }
}
