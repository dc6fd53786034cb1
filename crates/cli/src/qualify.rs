//! `sdmac qualify`: will my control loop hold on Wi-Fi?

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;

use lab::qualify::question::{self, default_rate, per_split};
use lab::qualify::{Answer, Interference, Link, Question, Scheme, Setting, Stage};
use lab::stats::Verdict;

use crate::ui::{self, Failure, Ui};

/// Will my control loop hold on Wi-Fi? N nodes send a payload to a controller in every cycle and get one back
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:
  sdmac qualify --nodes 8 --cycle 4ms --payload 50 --miss 1e-4
  sdmac qualify --nodes 8 --cycle 4ms --payload 50 --miss 1e-4 --host host.toml --interference load=20%
  sdmac qualify --nodes 8 --cycle 4ms --payload 50 --miss 1e-4 --offsets even
  sdmac qualify --nodes 8 --cycle 4ms --payload 50 --miss 1e-4 --interference probes=50/s --scheme tdma,tdma-reception-carrier_sense
  sdmac qualify --nodes 8 --cycle 10ms --payload 50 --miss 1e-4 --scheme tdma,tdma+join
  sdmac qualify --nodes 8 --cycle 4ms --payload 50 --miss 1e-4 --scheme tdma --guard-probability 0.99
  sdmac qualify --nodes 2 --cycle 20ms --payload 50 --miss 1e-2 --rate 24M --scheme roam,roam+second
  sdmac qualify --nodes 20 --cycle 10ms --payload 50 --miss 1e-3 --phy g --rate 24M --out sdmac-out/plant

Exit code: 0 if one of the schemes holds, 1 if none does or none is decided, 2 if the question makes no sense.")]
pub struct Args {
    /// Nodes besides the controller, 1 to 250
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    nodes: u64,
    /// Cycle: every node has a message each way in it, which must arrive within one cycle
    #[arg(long, value_name = "TIME", value_parser = question::parse_time, allow_hyphen_values = true)]
    cycle: u64,
    /// When the nodes release their messages: none (all at the start of the cycle, the hardest case for
    /// EDCA), even (node i of N at (i - 1)/N of the cycle), random (each node at an instant drawn from the seed, the
    /// same in all cycles)
    #[arg(long, value_name = "HOW", default_value = "none", value_parser = question::parse_offsets)]
    offsets: question::Offsets,
    /// Octets of each payload
    #[arg(long, value_name = "OCTETS", allow_negative_numbers = true)]
    payload: u64,
    /// Largest acceptable share of messages that come too late
    #[arg(long, value_name = "PROBABILITY", allow_negative_numbers = true)]
    miss: f64,
    /// Host profile: a file that `sdmac measure --host` has written, or a built-in name
    #[arg(long, value_name = "FILE|NAME", default_value = "table5")]
    host: String,
    /// Probability that an exchange is lost, split into data and ACK as in the paper; or two, DATA,ACK [default: 2.04e-4]
    #[arg(long, value_name = "P|P,P", value_parser = question::parse_per, conflicts_with = "snr")]
    per: Option<Link>,
    /// Signal-to-noise ratio at all receivers in dB, instead of --per
    #[arg(long, value_name = "DB", value_parser = question::parse_snr)]
    snr: Option<Link>,
    /// Others on the channel: none, load=20%, probes=50/s, noise=5%, several with commas
    #[arg(long, value_name = "WHO", default_value = "none", value_parser = question::parse_interference)]
    interference: Interference,
    /// PHY: a, b, g, n (5 GHz) or n2.4
    #[arg(long, default_value = "a", value_parser = question::parse_phy)]
    phy: question::Phy,
    /// Rate of data frames [default: 54M, 11M for b, mcs7/20 for n]
    #[arg(long, value_parser = question::parse_rate)]
    rate: Option<question::Rate>,
    /// Everything random follows from it
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    seed: u64,
    /// Of TDMA: probability with which the guard of a slot covers the release of a frame, and the clocks, 0.5 to 0.99999. A
    /// lower one makes slots shorter, and more frames miss theirs [default: 0.9999]
    #[arg(long, value_name = "PROBABILITY", allow_negative_numbers = true)]
    guard_probability: Option<f64>,
    /// What to compare: edca (voice queue, retries by the adapter), edf (the controller polls), tdma (a slot for every message),
    /// tbmac (slots that nodes agree on), slotted (a slot of its own for each node), roam (nodes walk from one access point to another
    /// while the loop runs, over EDCA; roam+second: with a second adapter). Before edca and roam: minstrel+ and rsin+ (rate control;
    /// alone they are above edca). Before all but roam: redundancy+ (two adapters as one, both copies at once), reactive+ (an ACK
    /// takes the other copy back), proactive+ (the second copy waits; without slots only). Behind tdma: +join (nodes ask for their
    /// slots on the air), +backoff (a contention window in slots), +rts (RTS and CTS ahead of each frame, in longer slots), -reception,
    /// -carrier_sense, -virtual_carrier_sense, -acks (switched off at the adapters). At the end of all but edf: +edf (one frame
    /// at a time within a node, behind tdma one for each receiver, that with the earliest deadline), and without slots +edf+pool (its retries have a tenth of the channel)
    #[arg(long, value_parser = Scheme::parse, value_delimiter = ',', value_name = "SCHEME", default_value = "edca,edf,tdma")]
    scheme: Vec<Scheme>,
    /// Worker threads [default: all cores]; the result does not depend on it
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Cycles of the verdict on a scheme at most [default: 8 million messages, at most 400,000 cycles]; those of the search for the
    /// shortest cycle follow from --miss
    #[arg(long, value_name = "N")]
    max_cycles: Option<u64>,
    /// Write result.json and report.html to this folder; without it nothing is written
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write to the folder even if other files are in it
    #[arg(long, requires = "out")]
    force: bool,
    /// A tenth of the cycles; no search for the margin of what passes
    #[arg(long)]
    quick: bool,
}

/// Runs the command.
pub fn main(args: &Args, ui: &Ui) -> Result<ExitCode, Failure> {
    let question = args.question()?;
    question.check().map_err(Failure::input)?;
    if let Some(warning) = lab::qualify::warning(&question) {
        ui.tell(&warning);
    }
    // a folder that cannot be written is better known before the work
    let folder = args
        .out
        .as_ref()
        .map(|path| lab::qualify::folder::open(path, args.force))
        .transpose()
        .map_err(Failure::input)?;
    let answer = run(&question, args.jobs, ui)?;
    ui.say(lab::qualify::table::table(&answer, width()))?;
    ui.answer(&answer)?;
    if let Some(folder) = folder {
        let command = std::env::args().collect::<Vec<_>>().join(" ");
        lab::qualify::folder::write(&folder, &answer, &question, &command).map_err(Failure::on_the_way)?;
        ui.say(format!(
            "\nReport: {}",
            folder.path().join("report.html").display()
        ))?;
    }
    if answer.interrupted {
        return Ok(ui.exit_code());
    }
    let holds = answer.schemes.iter().any(|r| r.verdict == Verdict::Pass);
    Ok(ExitCode::from(u8::from(!holds)))
}

fn run(question: &Question, jobs: Option<usize>, ui: &Ui) -> Result<Answer, Failure> {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    // one bar at a time: for each scheme one until the verdict, and one for each try of a shorter or longer cycle
    let bar = Mutex::new(None);
    let progress = |p: lab::qualify::Progress| {
        let mut bar = bar.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let key = (p.scheme, p.stage, p.expected);
        if bar.as_ref().is_none_or(|(k, _)| *k != key) {
            let what = match p.stage {
                Stage::Deciding => format!("{}: cycles until the next look", p.scheme.word()),
                Stage::Searching => format!("{}: shortest cycle", p.scheme.word()),
            };
            if let Some((_, old)) = bar.replace((key, ui.progress(&what, p.expected))) {
                ui::Progress::finish(&old);
            }
        }
        if let Some((_, bar)) = bar.as_ref() {
            bar.set(p.cycles);
        }
    };
    let setting = Setting {
        jobs: jobs.unwrap_or_else(cores),
        stop: ui.stop(),
        progress: &progress,
    };
    let answer = lab::qualify::qualify(question, &setting).map_err(Failure::input);
    if let Some((_, bar)) = bar.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        bar.finish();
    }
    answer
}

/// Columns of the terminal, 100 if there is none.
fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    columns.unwrap_or(100)
}

impl Args {
    fn question(&self) -> Result<Question, Failure> {
        let small = |x: u64| u32::try_from(x).unwrap_or(u32::MAX);
        if self.jobs == Some(0) || self.jobs.is_some_and(|j| j > 1024) {
            return Err(Failure::input("--jobs: give 1 to 1024 workers"));
        }
        if self.guard_probability.is_some() && !self.scheme.iter().any(|s| s.has_guard()) {
            return Err(Failure::input(
                "--guard-probability: only tdma has a guard, and --scheme does not name it",
            ));
        }
        Ok(Question {
            nodes: small(self.nodes),
            cycle_ns: self.cycle,
            offsets: self.offsets,
            payload_octets: small(self.payload),
            miss: self.miss,
            link: self.per.or(self.snr).unwrap_or(per_split(question::PAPER_PER)),
            interference: self.interference,
            phy: self.phy,
            rate: self.rate.unwrap_or_else(|| default_rate(&self.phy)),
            host: lab::qualify::host(&self.host).map_err(Failure::input)?,
            seed: self.seed,
            guard_probability: self.guard_probability.unwrap_or(lab::guard::USUAL),
            schemes: self.scheme.clone(),
            max_cycles: self.max_cycles,
            quick: self.quick,
        })
    }
}
