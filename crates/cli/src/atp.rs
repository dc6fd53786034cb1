//! `sdmac atp`: files and streams over ATP, between computers.

mod ended;
mod key;
mod proxy;
mod show;

use std::fs::OpenOptions;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use lab::qualify::question::parse_time;
use radio::Duration;
use transfer::call::{Done, Seen};
use transfer::flow::{FlowConfig, Variant};
use transfer::send::{Content, Sending};
use transfer::serve::{Told, Until, serve};
use transfer::sink::{Place, safe_name};
use transfer::socket::{Socket, addresses, resolve};
use transfer::source::Source;
use transfer::{Progress, TransferError};

use crate::ui::{self, Failure, Ui};
use ended::Ended;
use show::{Alike, End, Line, Trace, document, summary};

/// Carry files, streams and connections of TCP over ATP, a transport whose rate follows the delays that the hops measure
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac atp recv --dir incoming                  # on the computer at 192.0.2.7
  sdmac atp send video.bin 192.0.2.7:7800        # on the other one; again after a break: it goes on from there
  tar c folder | sdmac atp send - 192.0.2.7:7800
  sdmac atp recv --stdout | tar x
  sdmac atp recv --dir incoming --once && ./use-it        # ends after one file, with 0 if it is whole
  sdmac atp proxy atp:0.0.0.0:7800 tcp:127.0.0.1:80          # TCP over ATP, on the computer with the web server
  sdmac atp proxy tcp:127.0.0.1:8080 atp:192.0.2.7:7800      # and on the one with the browser
  sdmac atp key shared.key                       # then --key shared.key at both ends

Exit code: 0 everything arrived and has the right checksum, 1 something did not, 2 the input makes no sense.
Without --key nothing is encrypted or authenticated: whoever sees the packets can read them, and steer or end the connection.")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    Send(SendArgs),
    Recv(RecvArgs),
    Proxy(proxy::Args),
    Key(key::Args),
}

/// What both ends must agree on, or may.
#[derive(clap::Args, Clone, Debug)]
struct Common {
    /// Transport: default, aggressive, adaptive, sdmac (ATP), tahoe, newreno (TCP behind the same header); the same at both ends
    #[arg(long, default_value = "sdmac", value_name = "NAME")]
    variant: Variant,
    /// Time between two packets at first, and at most, while no hop on the way tells its delay; less as long as little is lost. Never less than
    /// 200us, which is 58 Mb/s, or than this if it is shorter; 1s at most
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = parse_time, allow_hyphen_values = true)]
    spacing: u64,
    /// How long the other end may be silent
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_time, allow_hyphen_values = true)]
    patience: u64,
    /// File with a key of 64 hexadecimal digits; the other end needs the same. Encrypts and authenticates everything
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

impl Common {
    fn config(&self, ui: &Ui) -> Result<FlowConfig, Failure> {
        let key = match &self.key {
            None => None,
            Some(path) => Some(key::read(path, ui.stop())?),
        };
        let spacing = Duration::from_ns(self.spacing);
        if spacing > MOST_SPACING {
            return Err(Failure::input(format!(
                "--spacing {} s: no packet waits for longer than 1 s after the one before; give 1s at most",
                self.spacing as f64 / 1e9
            )));
        }
        Ok(FlowConfig {
            variant: self.variant,
            spacing: Some(spacing),
            patience: Duration::from_ns(self.patience),
            key,
            ..FlowConfig::default()
        })
    }
}

/// The slowest rate of the transport, a packet each second.
const MOST_SPACING: Duration = Duration::from_ms(1_000);

/// Listens at the first of these addresses that lets it.
fn listen<T>(at: &[SocketAddr], bind: impl Fn(SocketAddr) -> io::Result<T>) -> Result<T, Failure> {
    let mut why = String::new();
    for at in at {
        match bind(*at) {
            Ok(listening) => return Ok(listening),
            Err(e) => why = format!("cannot listen at {at}: {e}"),
        }
    }
    Err(Failure::input(why))
}

/// Send a file, or what comes on standard input
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac atp send video.bin 192.0.2.7:7800
  sdmac atp send - '[2001:db8::7]:7800' --name log.txt < /var/log/syslog
  sdmac atp send video.bin 192.0.2.7:7800 --trace feedback.csv")]
struct SendArgs {
    /// The file; `-` is standard input
    file: PathBuf,
    /// Who receives it, HOST:PORT
    to: String,
    /// Its name at the other end, of 255 octets at most [default: that of the file; stdin for standard input]
    #[arg(long)]
    name: Option<String>,
    /// Write each feedback of the other end into this file, as CSV: seconds since the call, delay and spacing in us, hops, packets sent
    /// again until then
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// Receive files from whoever sends them
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac atp recv --dir incoming
  sdmac atp recv --listen '[::]:7800' --count 0
  sdmac atp recv --dir incoming --once --patience 10s    # in a script: 0 if one file has come and is whole, 1 if it has not

Without --once a transfer that breaks off is waited for: whoever sends the file again goes on from there. When the last one that
is waited for has ended, nobody else is taken in: other transfers are reset, and can be sent again to go on from there.")]
struct RecvArgs {
    /// Address, or name, and port to be called at; of several addresses, the first that lets it
    #[arg(long, default_value = "0.0.0.0:7800", value_name = "HOST:PORT")]
    listen: String,
    /// For who gives it an address as `send` has one
    #[arg(hide = true)]
    address: Option<String>,
    /// Folder for the files; parts of them wait there as .NAME.sdmac-part
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Replace files that are there already
    #[arg(long)]
    replace: bool,
    /// Write the content to standard output, and end after one. The document of --json goes to standard error then
    #[arg(long, conflicts_with_all = ["dir", "count", "replace"])]
    stdout: bool,
    /// End after one transfer, whole or not: exit code 0 if it is, 1 with the reason if it is not
    #[arg(long, conflicts_with = "count")]
    once: bool,
    /// Transfers to wait for that come through whole; 0: no end
    #[arg(long, default_value_t = 1, value_name = "N", allow_negative_numbers = true)]
    count: u64,
    #[command(flatten)]
    common: Common,
}

/// Runs the command.
pub fn main(args: &Args, ui: &Ui) -> Result<ExitCode, Failure> {
    match &args.what {
        What::Send(args) => send(args, ui),
        What::Recv(args) => receive(args, ui),
        What::Proxy(args) => proxy::main(args, ui),
        What::Key(args) => key::main(args, ui),
    }
}

fn send(args: &SendArgs, ui: &Ui) -> Result<ExitCode, Failure> {
    let peers = resolve(&args.to).map_err(Failure::input)?;
    let stdin = args.file == Path::new("-");
    let name = match &args.name {
        Some(name) => name.clone(),
        None if stdin => "stdin".into(),
        None => args
            .file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
    };
    let content = if stdin {
        if std::io::stdin().is_terminal() {
            ui.tell("reading from the terminal; end with Ctrl-D");
        }
        Content::Stream(Source::new(std::io::stdin()))
    } else {
        open(&args.file, ui)?
    };
    if safe_name(&name).is_none() {
        return Err(Failure::input(format!(
            "{name:?} is no name for a file: give one without slashes and control characters, and without a dot in front, with --name"
        )));
    }
    let config = args.common.config(ui)?;
    let mut sending = Sending::new(&name, content).map_err(Failure::input)?;
    if args.name.is_none() && args.file.file_name().is_some_and(|of| of.to_str().is_none()) {
        ui.tell(&format!(
            "the name of the file is no UTF-8, and goes as '{name}': give another one with --name"
        ));
    }
    let trace = args.trace.as_deref();
    let mut trace = trace
        .map(|path| Trace::create(path, &args.file, ui.stop()))
        .transpose()?;
    let mut line = Line::new(ui, End::Sends);
    let begun = Instant::now();
    let elapsed = || begun.elapsed().as_secs_f64();
    let mut last = Progress::default();
    let mut failures = Vec::new();
    // a name may have addresses where nobody is
    for to in peers {
        let show = |seen| match seen {
            Seen::Progress(p) => {
                last = p;
                line.show(None, &name, elapsed(), &p);
            }
            Seen::Feedback(feedback) => {
                if let Some(trace) = &mut trace {
                    trace.add(&feedback);
                }
            }
        };
        let result = transfer::call::send(to, &config, &mut sending, ui.stop(), show);
        line.clear();
        let begun_trace = trace.as_mut().filter(|_| sending.has_begun());
        let traced = begun_trace.map_or(Ok(()), Trace::flush);
        let why = match result {
            Ok(Done { progress: p, took }) => {
                let seconds = took.as_ns() as f64 / 1e9;
                ui.say(summary(End::Sends, &name, &p, seconds))?;
                ui.answer(&document(End::Sends, &name, &p, seconds, None))?;
                // what went well is told in any case
                return traced.map(|()| ExitCode::SUCCESS);
            }
            Err(why) => why,
        };
        let stopped = matches!(why, TransferError::Stopped);
        failures.push((format!("{name} to {to}: {why}"), if stopped { 130 } else { 1 }));
        if stopped || sending.has_begun() {
            break;
        }
    }
    let code = failures.last().map_or(1, |(_, code)| *code);
    let sentences: Vec<_> = failures.into_iter().map(|(sentence, _)| sentence).collect();
    let sentence = sentences.join("; ");
    ui.answer(&document(End::Sends, &name, &last, elapsed(), Some(&sentence)))?;
    Err(Failure::on_the_way(sentence).with_code(code))
}

/// A file that can be gone on with in the middle; pipes and devices as streams.
fn open(path: &Path, ui: &Ui) -> Result<Content, Failure> {
    let wrong = |e: std::io::Error| Failure::input(format!("{}: {e}", path.display()));
    let file = ui::open(OpenOptions::new().read(true), path, ui.stop())
        .map_err(|e| Failure::opening(path.display(), &e))?;
    let about = file.metadata().map_err(wrong)?;
    if about.is_dir() {
        return Err(Failure::input(format!(
            "{} is a folder: send it with `tar c {0} | sdmac atp send - HOST:PORT`",
            path.display()
        )));
    }
    // the kernel's files say that they are empty, and are not
    Ok(if about.is_file() && about.len() > 0 {
        Content::File(file)
    } else {
        Content::Stream(Source::new(file))
    })
}

fn receive(args: &RecvArgs, ui: &Ui) -> Result<ExitCode, Failure> {
    if let Some(address) = &args.address {
        return Err(Failure::input(format!(
            "recv calls nobody, it waits to be called: give the address and port of this computer as --listen {address}"
        )));
    }
    let place = if args.stdout {
        Place::Stdout
    } else {
        if !args.dir.is_dir() {
            return Err(Failure::input(format!(
                "{} is no folder: make it, or name another one with --dir",
                args.dir.display()
            )));
        }
        Place::Folder {
            path: args.dir.clone(),
            replace: args.replace,
        }
    };
    let config = args.common.config(ui)?;
    let listens = addresses(&args.listen).map_err(Failure::input)?;
    let socket = listen(&listens, |at| Socket::bind(at, config.variant))?;
    let address = socket.address().unwrap_or(listens[0]);
    ui.tell(&format!("waiting at {address}"));
    let until = match args.count {
        _ if args.once => Until::One,
        _ if args.stdout => Until::Whole(1),
        0 => Until::Stopped,
        n => Until::Whole(n),
    };
    let mut line = Line::new(ui, End::Receives);
    let (mut ended, mut strangers) = (Ended::new(ui.is_json()), Alike::default());
    let (mut broken, mut enough) = (None, false);
    let mut held: Option<String> = None;
    let tell = |told: Told<'_>| {
        if !matches!(told, Told::Enough)
            && let Some(sentence) = held.take()
        {
            // it has not ended with that one
            line.clear();
            ui.tell(&sentence);
        }
        match told {
            Told::TurnedAway { peer, why } => {
                line.clear();
                ui.tell(&format!("call of {peer}: {why}"));
            }
            Told::NoOffer { peer, why } => {
                let sentence = format!("a connection from {peer}: {why}");
                // whatever the reason, strangers fill no terminal
                if let Some(told) = strangers.told(Instant::now(), String::new(), sentence) {
                    line.clear();
                    ui.tell(&told);
                }
            }
            Told::Progress {
                peer,
                name,
                elapsed,
                progress,
            } => line.show(Some(peer), name, elapsed.as_ns() as f64 / 1e9, &progress),
            Told::Ended {
                peer,
                name,
                elapsed,
                progress,
                result,
            } => {
                line.ended(peer);
                let seconds = elapsed.as_ns() as f64 / 1e9;
                match &result {
                    // nobody waits for it
                    _ if enough => {}
                    // the one that was waited for
                    Ok(()) if args.once => ended.nothing_is_missing(),
                    // what is sent again has arrived in the end
                    Ok(()) => ended.came(name),
                    Err(_) => ended.broke_off(name),
                }
                let sentence = result.err().map(|why| format!("{name} from {peer}: {why}"));
                match &sentence {
                    None => ui.tell(&summary(End::Receives, name, &progress, seconds)),
                    // it may end with this one
                    Some(sentence) if args.once && !enough => held = Some(sentence.clone()),
                    Some(sentence) => ui.tell(sentence),
                }
                ended.add(|| document(End::Receives, name, &progress, seconds, sentence.as_deref()));
                if !enough {
                    broken = sentence.or(broken.take());
                }
            }
            // and is said last
            Told::Enough => (enough, held) = (true, None),
        }
    };
    let result = serve(socket, &config, &place, until, ui.stop(), tell);
    line.clear();
    let bad = ended.is_missing();
    let document = ended.document();
    if args.stdout {
        ui.answer_beside(&document)?;
    } else {
        ui.answer(&document)?;
    }
    match result {
        Ok(()) => match broken.filter(|_| bad && args.once) {
            Some(sentence) => Err(Failure::on_the_way(sentence)),
            None => Ok(ExitCode::from(u8::from(bad))),
        },
        Err(TransferError::Stopped) => {
            if let Some(sentence) = held {
                ui.tell(&sentence);
            }
            Ok(ui.exit_code())
        }
        Err(why) => Err(Failure::on_the_way(why)),
    }
}
