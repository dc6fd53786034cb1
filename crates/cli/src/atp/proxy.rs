//! `sdmac atp proxy`: one end of a way for TCP connections over ATP.

use std::net::TcpListener;
use std::process::ExitCode;
use std::time::Instant;

use serde_json::json;
use transfer::TransferError;
use transfer::flow::FlowConfig;
use transfer::proxy::{BUFFER_OCTETS, Ended, enter, leave};
use transfer::socket::{Socket, addresses, resolve};

use super::show::Alike;
use super::{Common, listen};
use crate::ui::{Failure, Ui};

/// Carry TCP connections over ATP: one end where they enter, one where they leave
///
/// Each connection is a flow of its own. An end of one direction is passed on, so is a reset, and a slow reader slows its
/// writer. When the other end vanishes, connections are reset after --patience, or if its computer says that nobody listens there any
/// more: after 3 s, and where nothing goes after five eighths of --patience. So are they when the computer of a program vanishes: after --patience, 3 s
/// at least; a program that only does not read stays. Ctrl-C resets all of them; they count as ended early. Of a name with several
/// addresses all are tried, one after the other, for each connection: all but the last for 5 s at most.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac atp proxy atp:0.0.0.0:7800 tcp:127.0.0.1:80        # where they leave: on the computer with the server, 192.0.2.7
  sdmac atp proxy tcp:127.0.0.1:8080 atp:192.0.2.7:7800    # where they enter: then http://127.0.0.1:8080
  sdmac atp proxy 'tcp:[::1]:2222' 'atp:[2001:db8::7]:7800' --key shared.key")]
pub struct Args {
    /// Where it listens: tcp:ADDRESS:PORT or atp:ADDRESS:PORT
    from: String,
    /// Where it calls, the other one of the two: atp:HOST:PORT or tcp:HOST:PORT
    to: String,
    #[command(flatten)]
    common: Common,
}

/// Which end this is.
enum End {
    Enter,
    Leave,
}

/// The two places, without what they begin with.
fn ends<'a>(from: &'a str, to: &'a str) -> Result<(End, &'a str, &'a str), String> {
    let tcp = |text: &'a str| text.strip_prefix("tcp:");
    let atp = |text: &'a str| text.strip_prefix("atp:");
    match (tcp(from), atp(from), tcp(to), atp(to)) {
        (Some(from), _, _, Some(to)) => Ok((End::Enter, from, to)),
        (_, Some(from), Some(to), _) => Ok((End::Leave, from, to)),
        _ => Err(format!(
            "'{from}' and '{to}' make no proxy: one begins with tcp: and the other with atp:, as in \
             `tcp:127.0.0.1:8080 atp:192.0.2.7:7800`"
        )),
    }
}

/// Runs the command.
pub fn main(args: &Args, ui: &Ui) -> Result<ExitCode, Failure> {
    let (end, from, to) = ends(&args.from, &args.to).map_err(Failure::input)?;
    let (from, to) = (
        addresses(from).map_err(Failure::input)?,
        resolve(to).map_err(Failure::input)?,
    );
    let config = FlowConfig {
        buffer_octets: BUFFER_OCTETS,
        ..args.common.config(ui)?
    };
    let (mut connections, mut failed, mut octets) = (0_u64, 0_u64, (0_u64, 0_u64));
    let mut alike = Alike::default();
    let tell = |ended: Ended| {
        connections += 1;
        octets.0 += ended.octets.0;
        octets.1 += ended.octets.1;
        if let Err(why) = ended.result {
            failed += 1;
            // who has stopped it knows why
            if !matches!(why, TransferError::Stopped) {
                let why = why.to_string();
                let sentence = format!("connection of {}: {why}", ended.peer);
                if let Some(told) = alike.told(Instant::now(), why, sentence) {
                    ui.tell(&told);
                }
            }
        }
    };
    match end {
        End::Enter => {
            let listener = listen(&from, TcpListener::bind)?;
            ui.tell(&format!(
                "connections enter at {}",
                listener.local_addr().unwrap_or(from[0])
            ));
            enter(&listener, &to, &config, ui.stop(), tell)
                .map_err(|e: TransferError| Failure::on_the_way(e))?;
        }
        End::Leave => {
            let socket = listen(&from, |at| Socket::bind(at, config.variant))?;
            ui.tell(&format!(
                "connections leave at {}",
                socket.address().unwrap_or(from[0])
            ));
            leave(socket, &to, &config, ui.stop(), tell);
        }
    }
    ui.say(format!(
        "{connections} connection{}, {failed} of them ended early; {} octets to the other end, {} from there",
        if connections == 1 { "" } else { "s" },
        octets.0,
        octets.1
    ))?;
    ui.answer(&json!({
        "connections": connections,
        "failed": failed,
        "octets_sent": octets.0,
        "octets_received": octets.1,
    }))?;
    // Ctrl-C is how it ends
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_each() {
        assert!(matches!(
            ends("tcp:127.0.0.1:1", "atp:h:2"),
            Ok((End::Enter, "127.0.0.1:1", "h:2"))
        ));
        assert!(matches!(
            ends("atp:[::]:1", "tcp:h:2"),
            Ok((End::Leave, "[::]:1", "h:2"))
        ));
        for (from, to) in [
            ("tcp:a:1", "tcp:b:2"),
            ("atp:a:1", "atp:b:2"),
            ("a:1", "b:2"),
            ("udp:a:1", "tcp:b:2"),
        ] {
            assert!(ends(from, to).is_err());
        }
    }
}
