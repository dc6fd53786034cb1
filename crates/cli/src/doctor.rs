//! `sdmac doctor`: what of this computer costs determinism, and what to do.

use std::process::ExitCode;

use linux::machine::Tree;
use linux::machine::doctor::{Finding, State, examine};
use linux::machine::network::Network;
use serde_json::json;

use crate::ui::{Failure, Ui};

/// Say what of this computer costs determinism, and what to do about it; change nothing
///
/// Looks at preemption, isolated CPUs, frequency and sleep states, real-time throttling, the clock source, interrupts
/// and rights. Root sees more. How large the cost is on this computer only a measurement tells: sdmac measure --host.
/// Exit code: 0 if nothing costs, 1 if something does.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac doctor
  sdmac doctor --iface wlan1
  sdmac doctor --json | jq '.findings[] | select(.state == \"costs\")'")]
pub struct Args {
    /// The network interface whose adapter counts: its bus and its interrupts
    #[arg(long, value_name = "IFACE")]
    iface: Option<String>,
}

/// Finds the interface that was asked for.
pub fn network(tree: &Tree, iface: Option<&str>) -> Result<Option<Network>, Failure> {
    let Some(iface) = iface else { return Ok(None) };
    let found = Network::read(tree, iface);
    match found {
        Some(network) => Ok(Some(network)),
        None => {
            let names = tree.names("/sys/class/net").join(", ");
            Err(Failure::input(format!(
                "--iface {iface}: there is no such interface: this computer has {names}"
            )))
        }
    }
}

/// Runs the command.
pub fn main(args: &Args, ui: &Ui) -> Result<ExitCode, Failure> {
    let tree = Tree::default();
    let network = network(&tree, args.iface.as_deref())?;
    let mut findings = examine(&tree, network.as_ref());
    findings.sort_by_key(|f| f.state);
    ui.say(text(&findings))?;
    let rows: Vec<_> = findings
        .iter()
        .map(|f| json!({ "name": f.name, "state": f.state.name(), "seen": f.seen, "cost": f.cost, "advice": f.advice }))
        .collect();
    let costs = findings.iter().filter(|f| f.state == State::Costs).count();
    ui.answer(&json!({ "format": "sdmac-doctor/1", "costs": costs, "findings": rows }))?;
    Ok(ExitCode::from(u8::from(costs > 0)))
}

fn text(findings: &[Finding]) -> String {
    let mut lines = Vec::new();
    for f in findings {
        lines.push(format!("{:<8} {:<19} {}", f.state.name(), f.name, f.seen));
        for more in [f.cost, f.advice.as_str()] {
            if f.state != State::Good && !more.is_empty() {
                lines.push(format!("{:28} {more}", ""));
            }
        }
    }
    let count = |state| findings.iter().filter(|f| f.state == state).count();
    lines.push(String::new());
    lines.push(format!(
        "{} cost determinism, {} cannot be seen, {} are good. `sdmac tune --dry-run` shows what can be changed at once; `sdmac measure --host` measures what it is worth.",
        count(State::Costs),
        count(State::Unknown),
        count(State::Good)
    ));
    lines.join("\n")
}
