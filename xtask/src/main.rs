//! Everything CI runs, as a program.

mod compare;

use std::process::{Command, ExitCode};

use clap::Parser;

/// Everything CI runs, as a program.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Task {
    /// Run everything CI runs.
    Test,
    /// Run another simulator and sdmac on the same scenarios and compare them.
    Compare(compare::Options),
}

fn main() -> ExitCode {
    let done = match Task::parse() {
        Task::Test => Ok(Command::new("cargo")
            .args(["test", "--workspace"])
            .status()
            .is_ok_and(|s| s.success())),
        Task::Compare(options) => compare::run(&options),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
