//! Whether a host that can be, and traffic of another kind, would meet Tables I and III at once. The wait that is fitted to 4.78 % of grouped
//! transfers takes 28 % of all time, which no host has. Here other interrupts take a tenth of it, in pieces of three lengths, with
//! data at a high and at a low rate, and commands as fitted or all in a row. Nothing here is fitted, and nothing is judged.

use ar9170::driver::Dynamic;

use super::super::estimate::Estimate;
use super::super::values::Values;
use super::bus::{self, Found, OtherInterrupts, Parser, Policy, Setting};
use super::values::percent;
use super::{FOLLOWS, Load, Measured, SEARCH_NS, air};
use crate::report::html::{Align, Section, Table};

/// Share of all time that other interrupts take.
const HELD: f64 = 0.1;

/// A host and what comes to it.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Host {
    kbps: u64,
    /// Other interrupts in a second; 0: none, as with the high priority.
    others_per_s: u32,
    follows: f64,
}

const fn host(kbps: u64, others_per_s: u32, follows: f64) -> Host {
    Host {
        kbps,
        others_per_s,
        follows,
    }
}

/// All that are tried.
const HOSTS: [Host; COUNT] = [
    host(24_000, 10, FOLLOWS),
    host(24_000, 128, FOLLOWS),
    host(24_000, 1_000, FOLLOWS),
    host(24_000, 0, FOLLOWS),
    host(2_000, 10, FOLLOWS),
    host(2_000, 128, FOLLOWS),
    host(2_000, 1_000, FOLLOWS),
    host(2_000, 0, FOLLOWS),
    host(24_000, 1_000, 1.0),
    host(24_000, 0, 1.0),
];
/// How many.
pub const COUNT: usize = 10;

/// What was seen of one: in interrupts of the search, and of the first parser.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Tried {
    search: Found,
    first: Found,
}

/// So many beacon intervals of the host of this number.
pub fn run(number: usize, intervals: u64, seed: u64) -> Tried {
    run_host(HOSTS[number], intervals, seed)
}

fn run_host(host: Host, intervals: u64, seed: u64) -> Tried {
    let per_s = f64::from(host.others_per_s);
    let mut load = Load::FITTED;
    load.bursts.kbps = host.kbps;
    let setting = Setting {
        load,
        networks: air::NETWORKS,
        others: (host.others_per_s > 0).then(|| OtherInterrupts {
            per_s,
            // gaps come between them
            ns: HELD / (1.0 - HELD) * 1e9 / per_s,
        }),
        follows: host.follows,
        parser: Parser::Search(SEARCH_NS),
        policy: Policy::Dynamic,
        filter: None,
    };
    let with = |parser| {
        let setting = Setting { parser, ..setting };
        bus::run(&setting, Dynamic::<32_768>::default(), intervals, seed)
    };
    Tried {
        search: with(setting.parser),
        first: with(Parser::First),
    }
}

impl Tried {
    fn grouped(&self) -> Option<Estimate> {
        percent(self.search.grouped, self.search.transfers)
    }

    fn lost(&self) -> Option<Estimate> {
        percent(self.first.lost[0], self.first.responses)
    }

    fn timeouts(&self) -> Option<Estimate> {
        percent(self.search.completions_lost, self.search.commands)
    }
}

/// The largest of all hosts whose other interrupts take a tenth of the time, with commands as fitted.
pub fn put(values: &mut Values, measured: &Measured) {
    let largest = |of: fn(&Tried) -> Option<Estimate>| {
        let hosts = HOSTS.iter().zip(&measured.hosts);
        let low = hosts.filter(|(host, _)| host.others_per_s > 0 && host.follows == FOLLOWS);
        low.filter_map(|(_, tried)| of(tried))
            .max_by(|a, b| a.value.total_cmp(&b.value))
    };
    values.put("4-9", "possible hosts, largest", largest(Tried::lost));
    values.put(
        "4-20",
        "grouped, possible hosts, largest",
        largest(Tried::grouped),
    );
    values.put(
        "4-20",
        "timeouts, possible hosts, largest",
        largest(Tried::timeouts),
    );
}

/// The table of the page.
pub fn section(measured: &Measured) -> Section {
    let columns = [
        "data, Mb/s",
        "others in a second",
        "commands that follow another at once, %",
        "grouped, %",
        "timeouts, %",
        "lost by the first parser, %",
    ];
    let table = HOSTS.iter().zip(&measured.hosts).fold(
        Table::new(columns.map(|title| (title, Align::Right))),
        |table, (host, tried)| {
            let shown =
                |value: Option<Estimate>| value.map_or("-".to_string(), |e| format!("{:.3}", e.value));
            table.row([
                (host.kbps / 1_000).to_string(),
                host.others_per_s.to_string(),
                format!("{:.0}", 100.0 * host.follows),
                shown(tried.grouped()),
                shown(tried.timeouts()),
                shown(tried.lost()),
            ])
        },
    );
    Section::new("Hosts that can be")
        .paragraph(
            "Other interrupts take a tenth of all time, or none (the high priority); nothing is fitted. The paper has 4.78 % grouped, 0.28 % \
             timeouts and 5.43 % lost at low priority, 0.22 % grouped at high priority.",
        )
        .table(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What waits for others is grouped with what comes meanwhile; in a row commands are so without any others.
    #[test]
    fn holds_group_what_comes_in_them() {
        let grouped = |host| run_host(host, 300, 3).grouped().unwrap().value;
        let [long, none] = [10, 0].map(|others| grouped(host(2_000, others, 0.0)));
        let row = grouped(host(24_000, 0, 1.0));
        assert!(long > 5.0 * none.max(0.05), "{long} {none}");
        assert!(row > 8.0, "{row}");
    }
}
