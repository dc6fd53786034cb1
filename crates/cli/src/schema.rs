//! `sdmac schema`: the JSON Schema of scenario files.

use std::process::ExitCode;

use crate::ui::{self, Failure};

/// Print the JSON Schema of scenario files, for editors that check and complete them
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac schema > scenario.schema.json
Then let the editor know, with a first line in the scenario (Taplo, VS Code's \"Even Better TOML\"):
  #:schema scenario.schema.json")]
pub struct Args {}

/// Runs the command.
pub fn main(_: &Args) -> Result<ExitCode, Failure> {
    let text = serde_json::to_string_pretty(&lab::scenario::schema())
        .map_err(|e| Failure::on_the_way(format!("the schema cannot be written: {e}")))?;
    ui::print(&format!("{text}\n"))?;
    Ok(ExitCode::SUCCESS)
}
