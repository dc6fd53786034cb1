//! What is carried over a chain: files, by `sdmac atp` with `sdmac hop` at each node, or by the kernel's TCP.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_tcp_congestion;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::line::Line;
use super::place::address;
use super::{Case, ChainError, Feedback, Hop, MOST_SECONDS, Outcome, STAGGER_NS, Transport, content};
use crate::mesh::Kind;
use crate::mesh::chain::idle_multiplier;
use crate::testbed::group::Group;

/// UDP port of ATP, and the first TCP port.
pub(super) const PORT: u16 = 7_800;
/// Until a program of ours is ready.
const READY: Duration = Duration::from_secs(30);
const GLANCE: Duration = Duration::from_millis(20);
/// Without anything new for so long, a TCP connection of the kernel's has failed.
const SILENCE: Duration = Duration::from_secs(120);
/// Time between two packets while no hop tells its delay: that of the simulator, and of the authors.
const SPACING: &str = "10ms";

/// What came of it.
#[derive(Default)]
pub(super) struct Carried {
    pub outcome: Outcome,
    pub hops: Vec<Hop>,
    pub failures: Vec<String>,
}

/// Carries the files of a case.
pub(super) fn carry(
    line: &Line,
    case: &Case,
    seed: u64,
    sdmac: &Path,
    stop: &AtomicBool,
) -> Result<Carried, ChainError> {
    match case.transport {
        Transport::Cubic | Transport::Bbr => {
            line.greet()?;
            by_kernel(line, case, seed)
        }
        _ => {
            let folder = std::env::temp_dir().join(format!("sdmac-chain-{}", std::process::id()));
            fs::create_dir_all(folder.join("in")).map_err(cannot(0, "make a folder for files"))?;
            let carried = by_atp(line, case, seed, sdmac, &folder, stop);
            let _ = fs::remove_dir_all(&folder);
            carried
        }
    }
}

fn cannot(node: u32, what: &'static str) -> impl Fn(io::Error) -> ChainError {
    move |error| ChainError::Node { node, what, error }
}

/// The goodput of content that arrived as it was sent, kb/s.
fn goodput_kbps(octets: u64, took: Duration) -> f64 {
    octets as f64 * 8.0 / 1e3 / took.as_secs_f64().max(1e-9)
}

/// A program of ours at a node.
struct Program {
    name: &'static str,
    node: u32,
    group: Group,
}

/// What a program has said: exit code, output, the last line of its complaints.
struct Said {
    good: bool,
    out: Value,
    why: String,
}

impl Program {
    fn start(
        line: &Line,
        node: u32,
        sdmac: &Path,
        name: &'static str,
        args: &[String],
    ) -> Result<Program, ChainError> {
        let mut command = Command::new(sdmac);
        command.args(args).arg("--json");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started = line.places[node as usize].run(move || Group::spawn(&mut command));
        let group = started.map_err(cannot(node, "start sdmac"))?;
        Ok(Program { name, node, group })
    }

    fn has_ended(&mut self) -> Result<bool, ChainError> {
        let ended = self.group.try_wait();
        Ok(ended.map_err(cannot(self.node, "wait for a program"))?.is_some())
    }

    /// As Ctrl-C does.
    fn interrupt(&mut self) {
        // one that has ended is fine
        let _ = kill_process(Pid::from_child(self.group.child()), Signal::INT);
    }

    /// Waits for its end.
    fn said(mut self) -> Result<Said, ChainError> {
        let read = |pipe: Option<&mut dyn Read>| {
            let mut text = String::new();
            if let Some(pipe) = pipe {
                // what cannot be read is not there
                let _ = pipe.read_to_string(&mut text);
            }
            text
        };
        let child = self.group.child();
        let out = read(child.stdout.as_mut().map(|p| p as &mut dyn Read));
        let err = read(child.stderr.as_mut().map(|p| p as &mut dyn Read));
        let status = self
            .group
            .wait()
            .map_err(cannot(self.node, "wait for a program"))?;
        let why = err.lines().last().unwrap_or("it ended without a word");
        Ok(Said {
            good: status.success(),
            out: serde_json::from_str(out.lines().last().unwrap_or("")).unwrap_or_default(),
            why: why.trim_start_matches("sdmac: ").to_owned(),
        })
    }

    fn failed(self) -> ChainError {
        let (program, node) = (self.name, self.node);
        match self.said() {
            Ok(said) => ChainError::Program {
                program,
                node,
                why: said.why,
            },
            Err(error) => error,
        }
    }
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

/// `sdmac hop` at every node, ready.
fn hops(line: &Line, sdmac: &Path, folder: &Path) -> Result<Vec<Program>, ChainError> {
    let eta = idle_multiplier(line.last()).to_string();
    let mut hops = Vec::new();
    for (node, interface) in (0..).zip(&line.interfaces) {
        let file = folder.join(format!("delay-{node}"));
        let args = words(&["hop", interface, "--idle-multiplier", &eta, "--file"]);
        let args = [args, vec![file.display().to_string()]].concat();
        let mut hop = Program::start(line, node, sdmac, "sdmac hop", &args)?;
        let begun = Instant::now();
        while !file.exists() {
            if hop.has_ended()? || begun.elapsed() > READY {
                return Err(hop.failed());
            }
            thread::sleep(GLANCE);
        }
        hops.push(hop);
    }
    // the file is there a moment before the first packet is waited for
    thread::sleep(GLANCE);
    Ok(hops)
}

fn by_atp(
    line: &Line,
    case: &Case,
    seed: u64,
    sdmac: &Path,
    folder: &Path,
    stop: &AtomicBool,
) -> Result<Carried, ChainError> {
    let hops = hops(line, sdmac, folder)?;
    line.greet()?;
    let last = line.last();
    let to = format!("{}:{PORT}", address(last));
    let common = words(&["--variant", case.transport.name(), "--spacing", SPACING]);
    let incoming = folder.join("in").display().to_string();
    let flows = case.flows.to_string();
    let listens = words(&[
        "atp", "recv", "--listen", &to, "--dir", &incoming, "--count", &flows,
    ]);
    let listens = [&listens[..], &common].concat();
    let mut receiver = Program::start(line, last, sdmac, "sdmac atp recv", &listens)?;
    thread::sleep(GLANCE);
    let mut senders = Vec::new();
    for flow in 0..case.flows {
        let file: PathBuf = folder.join(format!("file-{flow}"));
        fs::write(&file, content(seed, flow, case.octets)).map_err(cannot(0, "write a file"))?;
        let path = file.display().to_string();
        let trace = folder.join(format!("trace-{flow}")).display().to_string();
        let args = [
            &words(&["atp", "send", &path, &to, "--trace", &trace])[..],
            &common,
        ]
        .concat();
        senders.push(Program::start(line, 0, sdmac, "sdmac atp send", &args)?);
        thread::sleep(Duration::from_nanos(STAGGER_NS));
    }
    let late = |since: Instant| since.elapsed() > Duration::from_secs(MOST_SECONDS);
    let begun = Instant::now();
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(ChainError::Stopped);
        }
        let mut all = true;
        for sender in &mut senders {
            all &= sender.has_ended()?;
        }
        if late(begun) || all && (receiver.has_ended()? || begun.elapsed() > READY) {
            break;
        }
        thread::sleep(GLANCE);
    }
    let mut carried = Carried::default();
    // it ends by itself when all have arrived
    receiver.interrupt();
    let received = receiver.said()?.out;
    for (flow, mut sender) in (0..).zip(senders) {
        sender.interrupt();
        let said = sender.said()?;
        carried.outcome.resent += said.out["resent"].as_u64().unwrap_or(0);
        if case.transport.simulated().and_then(Kind::atp).is_some() {
            let rows = fs::read_to_string(folder.join(format!("trace-{flow}"))).unwrap_or_default();
            carried
                .outcome
                .feedback
                .push(rows.lines().filter_map(traced).collect());
        }
        let name = format!("file-{flow}");
        let mut transfers = received["transfers"].as_array().into_iter().flatten();
        let ended = transfers.any(|t| t["name"] == name.as_str() && t["failed"].is_null());
        let same =
            fs::read(folder.join("in").join(&name)).is_ok_and(|got| got == content(seed, flow, case.octets));
        // from the call on, which may have been lost: the receiver knows nothing of that
        let took = said.out["seconds"]
            .as_f64()
            .filter(|_| said.good && ended && same);
        carried.outcome.goodputs_kbps.push(match took {
            Some(took) => goodput_kbps(case.octets, Duration::from_secs_f64(took)),
            None => {
                let why = if said.good {
                    "it did not arrive as it was sent"
                } else {
                    &said.why
                };
                carried.failures.push(format!("{name}: {why}"));
                0.0
            }
        });
    }
    for mut hop in hops {
        hop.interrupt();
        let (node, said) = (hop.node, hop.said()?);
        let told = serde_json::from_value(said.out.clone());
        carried.hops.push(told.map_err(|_| ChainError::Program {
            program: "sdmac hop",
            node,
            why: said.why,
        })?);
    }
    Ok(carried)
}

/// A row of `sdmac atp send --trace`; the first one has names.
fn traced(row: &str) -> Option<Feedback> {
    let mut cells = row.split(',');
    Some(Feedback {
        seconds: cells.next()?.parse().ok()?,
        delay_us: cells.next()?.parse().ok()?,
        spacing_us: cells.next()?.parse().ok()?,
    })
}

/// Segments that the TCP of this thread's network namespace has sent again (RFC 1213, tcpRetransSegs).
fn resent_segments() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/thread-self/net/snmp")?;
    let mut lines = text.lines().filter(|l| l.starts_with("Tcp:"));
    let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let mut both = names.split(' ').zip(values.split(' '));
    let found = both.find(|(name, _)| *name == "RetransSegs");
    found
        .and_then(|(_, value)| value.parse().ok())
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn by_kernel(line: &Line, case: &Case, seed: u64) -> Result<Carried, ChainError> {
    let last = line.last();
    let [head, tail] = [0, last].map(|n| &line.places[n as usize]);
    let count = || head.run(resent_segments).map_err(cannot(0, "read its counters"));
    let before = count()?;
    let congestion = case.transport.name();
    let mut flows = Vec::new();
    for flow in 0..case.flows {
        let port = PORT + flow as u16;
        let listener = tail
            .run(move || TcpListener::bind((address(last), port)))
            .map_err(cannot(last, "listen"))?;
        let Case { octets, .. } = *case;
        let receives = thread::spawn(move || receive(&listener, &content(seed, flow, octets)));
        // a thread that is started there has its sockets there
        let sends = head
            .run(move || thread::spawn(move || send(last, port, congestion, &content(seed, flow, octets))));
        flows.push((sends, receives));
        thread::sleep(Duration::from_nanos(STAGGER_NS));
    }
    let mut carried = Carried::default();
    for (flow, (sends, receives)) in flows.into_iter().enumerate() {
        let sent = sends.join().expect("no panic");
        if sent.is_err() {
            // wakes the other end, whom nobody has called
            let wake = tail.run(move || TcpStream::connect((address(last), PORT + flow as u16)));
            drop(wake);
        }
        let received = receives.join().expect("no panic");
        let result = sent.and_then(|called| Ok((called, received?)));
        carried.outcome.goodputs_kbps.push(match result {
            Ok((called, ended)) => goodput_kbps(case.octets, ended - called),
            Err(error) => {
                carried
                    .failures
                    .push(format!("file-{flow} by {congestion}: {error}"));
                0.0
            }
        });
    }
    carried.outcome.resent = count()? - before;
    Ok(carried)
}

/// Sends all of it; tells when it called.
fn send(last: u32, port: u16, congestion: &str, content: &[u8]) -> io::Result<Instant> {
    let called = Instant::now();
    let mut stream = TcpStream::connect((address(last), port))?;
    set_tcp_congestion(&stream, congestion)?;
    stream.write_all(content)?;
    stream.shutdown(Shutdown::Write)?;
    Ok(called)
}

/// Reads to the end; tells when that came.
fn receive(listener: &TcpListener, content: &[u8]) -> io::Result<Instant> {
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(SILENCE))?;
    let mut got = Vec::with_capacity(content.len());
    stream.read_to_end(&mut got)?;
    let ended = Instant::now();
    if got == content {
        Ok(ended)
    } else {
        Err(io::Error::other("it did not arrive as it was sent"))
    }
}
