//! Instructions of our own code on the emulated microcontroller, beside the times of the paper's. They are counted by the program
//! `counts` of the firmware ([`testbed::board::counts`](crate::testbed::board::counts)) and kept in
//! `papers/contiki80211/instructions.toml`.

use super::super::estimate::Estimate;
use super::super::values::Values;
use crate::report::html::{Align, Section, Table};
use crate::testbed::board::counts::Counts;

/// Transfers, in the order of the table.
const TRANSFERS: [(&str, &str); 6] = [
    ("event", "an event"),
    ("beacon", "a beacon of 100 octets"),
    ("data100", "a data frame of 100 octets"),
    ("data500", "of 500 octets"),
    ("data1500", "of 1500 octets"),
    (
        "grouped",
        "an event, a beacon of 100, a data frame of 1500, an event",
    ),
];
/// What is counted over them.
const COLUMNS: [(&str, &str); 7] = [
    ("octets", "octets"),
    ("first", "head"),
    ("search", "search"),
    ("walk", "ours"),
    ("static", "interrupt, static"),
    ("dynamic", "dynamic"),
    ("hybrid", "hybrid"),
];

/// What was counted.
///
/// # Panics
/// Never: the file is part of the program, and its form is tested.
pub fn counts() -> Counts {
    let text = include_str!("../../../../../papers/contiki80211/instructions.toml");
    toml::from_str(text).expect("the file is part of the program")
}

/// Puts them beside the paper's numbers.
pub(super) fn put(values: &mut Values) {
    let counts = counts();
    let of = |what: &str, which: &str| f64::from(counts[what][which]);
    let mut put = |id: &str, name: &str, value: f64| values.put(id, name, Estimate::exact(value));
    put("4-3", "our copy", of("copy", "words"));
    put("4-3", "octet by octet", of("copy", "octets"));
    for policy in ["static", "dynamic", "hybrid"] {
        let name = format!("{policy} interrupt, 1500 octets");
        put("4-7", &name, of(policy, "data1500"));
    }
    let over = |a, b| of(a, "data1500") / of(b, "data1500");
    put("4-7", "hybrid over static, own code", over("hybrid", "static"));
    put("4-7", "dynamic over hybrid, own code", over("dynamic", "hybrid"));
    // what is the same for all lengths is not the parser's work on octets
    let slope = |what: &str| {
        let [short, long] = ["data100", "data1500"].map(|which| (of(what, which), of("octets", which)));
        (long.0 - short.0) / (long.1 - short.1)
    };
    put("4-8", "search, instructions per octet", slope("search"));
    put("4-8", "ours, instructions per octet", slope("walk"));
    put("4-9", "instructions", of("first", "data1500"));
    put("4-10", "instructions, 1500 octets", of("search", "data1500"));
    put("4-10", "ours, instructions", of("walk", "data1500"));
}

/// The table of the page.
pub(super) fn section() -> Section {
    let counts = counts();
    let columns = [("transfer", Align::Left)]
        .into_iter()
        .chain(COLUMNS.map(|(_, title)| (title, Align::Right)));
    let table = TRANSFERS
        .iter()
        .fold(Table::new(columns), |table, (name, about)| {
            let cells = COLUMNS.map(|(what, _)| counts[what][*name].to_string());
            table.row(std::iter::once(about.to_string()).chain(cells))
        });
    Section::new("Instructions of our own code on a Cortex-M3")
        .paragraph(
            "Counted in QEMU, where each instruction counts as one: by the parsers that look at the head and that search, and by that \
             of our driver; and by the driver's whole interrupt with each of its policies. At 84 MHz, 84 instructions take one \
             microsecond or more: the core takes one to three cycles for each, and more for those that wait for the flash.",
        )
        .table(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ours takes as long for any frame, and the search longer for each octet; copies by words are what makes interrupts long.
    #[test]
    fn a_walk_does_not_look_at_octets() {
        let counts = counts();
        let of = |what: &str, which: &str| counts[what][which];
        assert_eq!(of("walk", "data100"), of("walk", "data1500"));
        let octets = of("octets", "data1500") - of("octets", "data100");
        assert!(of("search", "data1500") - of("search", "data100") > 4 * octets);
        for policy in ["static", "dynamic", "hybrid"] {
            let more = of(policy, "data1500") - of(policy, "data100");
            assert!(more < 2 * octets, "{policy}: {more} for {octets} octets");
            assert!(of(policy, "data1500") < of("search", "data1500"), "{policy}");
        }
        for (what, _) in COLUMNS {
            assert_eq!(counts[what].len(), TRANSFERS.len(), "{what}");
        }
    }
}
