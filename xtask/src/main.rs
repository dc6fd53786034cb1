//! Everything CI runs, as a program: `cargo xtask test`, and the habits of the tree: `cargo xtask tidy`.
//!
//! What belongs here: checks that look at the repository from outside and run other programs.
//! This crate depends on no room of the project, so that it still builds when one of them does not.

mod c;
mod compare;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

use workspace::Workspace;

/// Everything CI runs, as a program.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Command {
    /// Run everything CI runs: each step named and timed, a table at the end, exit code 1 if one failed.
    Test(test::Options),
    /// Run the lab: build its kernel once, and check it from outside and from inside. A step of `test`, too.
    Lab,
    /// Check the habits that a program can check: layers, sizes, forbidden things, links, licences.
    Tidy(tidy::Options),
    /// Run others and sdmac on the same work and compare them: ns-3, TCP and QUIC.
    Compare(compare::Options),
    /// Headers of the C bindings, and their library installed.
    C(c::Options),
}

fn main() -> ExitCode {
    let command = Command::parse();
    let done = Workspace::read().and_then(|workspace| match command {
        Command::Test(options) => test::run(&workspace, &options),
        Command::Lab => test::lab(&workspace),
        Command::Tidy(options) => tidy::run(&workspace, &options),
        Command::Compare(options) => compare::run(&workspace, &options),
        Command::C(options) => c::run_it(&workspace, &options),
    });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
