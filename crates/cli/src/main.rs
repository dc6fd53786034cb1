//! The `sdmac` command line: one module for each command, and [`ui`] for what they share.

mod air;
mod ar9170;
mod atp;
mod certify;
mod completions;
mod deploy;
mod doctor;
mod hop;
mod lab_command;
mod measure;
mod qualify;
mod reproduce;
mod run;
mod schema;
mod timers;
mod tune;
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
    Measure(measure::Args),
    Timers(timers::Args),
    Certify(certify::Args),
    Run(run::Args),
    Deploy(deploy::Args),
    Reproduce(reproduce::Args),
    Schema(schema::Args),
    Doctor(doctor::Args),
    Tune(tune::Args),
    Lab(lab_command::Args),
    Air(air::Args),
    Ar9170(ar9170::Args),
    Atp(atp::Args),
    Hop(hop::Args),
    Completions(completions::Args),
    #[command(name = lab::testbed::guest::COMMAND, hide = true)]
    LabInit,
    #[command(name = lab::testbed::guard::COMMAND, hide = true)]
    LabGuard(lab_command::GuardArgs),
    #[command(name = linux::netfilter::holder::COMMAND, hide = true)]
    HopRules,
}

fn main() -> ExitCode {
    // wrong arguments end here with exit code 2
    let cli = Cli::parse();
    // these are processes of the lab and of the hop: no terminal, and no Ctrl-C to answer
    match &cli.command {
        Command::LabInit => return lab_command::init(),
        Command::LabGuard(args) => return lab_command::guard(args),
        Command::HopRules => return hop::hold(),
        _ => {}
    }
    let ui = ui::Ui::new(cli.options);
    let done = match &cli.command {
        Command::Measure(args) => measure::main(args, &ui),
        Command::Timers(args) => timers::main(args, &ui),
        Command::Certify(args) => certify::main(args, &ui),
        Command::Run(args) => run::main(args, &ui),
        Command::Deploy(args) => deploy::main(args, &ui),
        Command::Reproduce(args) => reproduce::main(args, &ui),
        Command::Schema(args) => schema::main(args),
        Command::Qualify(args) => qualify::main(args, &ui),
        Command::Doctor(args) => doctor::main(args, &ui),
        Command::Tune(args) => tune::main(args, &ui),
        Command::Air(args) => air::main(args, &ui),
        Command::Ar9170(args) => ar9170::main(args, &ui),
        Command::Atp(args) => atp::main(args, &ui),
        Command::Hop(args) => hop::main(args, &ui),
        Command::Lab(args) => lab_command::main(args, &ui),
        Command::Completions(args) => completions::main(args),
        Command::LabInit | Command::LabGuard(_) | Command::HopRules => unreachable!("done above"),
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
        for sub in command
            .get_subcommands()
            .filter(|c| c.get_name() != "help" && !c.is_hide_set())
        {
            let help = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(
                help.contains("Examples:\n  sdmac "),
                "{} has no examples",
                sub.get_name()
            );
        }
    }
}
