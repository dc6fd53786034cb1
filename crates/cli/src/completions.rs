//! `sdmac completions`: what makes the shell complete commands and options.

use std::process::ExitCode;

use clap::CommandFactory;

use crate::ui::{self, Failure};

/// Print a script that completes commands and options
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac completions bash > ~/.local/share/bash-completion/completions/sdmac
  sdmac completions fish > ~/.config/fish/completions/sdmac.fish")]
pub struct Args {
    /// Shell
    shell: clap_complete::Shell,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "sdmac", &mut script);
    ui::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
