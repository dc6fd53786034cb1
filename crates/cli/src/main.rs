//! The `sdmac` command line: one module for each command, and [`ui`] for what they share.

mod completions;
mod qualify;
mod run;
mod schema;
mod ui;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Wi-Fi medium access as software: simulate it, measure it, and tell whether a control loop will hold
#[derive(Parser, Debug)]
#[command(name = "sdmac", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    options: ui::Options,
}

#[derive(Subcommand, Debug)]
enum Command {
    Qualify(qualify::Args),
    Run(run::Args),
    Schema(schema::Args),
    Completions(completions::Args),
}

fn main() -> ExitCode {
    // wrong arguments end here with exit code 2
    let cli = Cli::parse();
    let ui = ui::Ui::new(cli.options);
    let done = match &cli.command {
        Command::Qualify(args) => qualify::main(args, &ui),
        Command::Run(args) => run::main(args, &ui),
        Command::Schema(args) => schema::main(args),
        Command::Completions(args) => completions::main(args),
    };
    done.unwrap_or_else(|failure| failure.report())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn commands_are_consistent_and_help_has_examples() {
        let mut command = Cli::command();
        command.build();
        command.clone().debug_assert();
        for sub in command.get_subcommands().filter(|c| c.get_name() != "help") {
            let help = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(
                help.contains("Examples:\n  sdmac "),
                "{} has no examples",
                sub.get_name()
            );
        }
    }
}
