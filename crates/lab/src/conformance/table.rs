//! Which host can do what with which attribute: as it was seen, and as the book has it.

use std::collections::BTreeMap;

use super::attributes::{NAMES, can_be_set};
use super::{Finding, Report};

/// First cell of the book's table.
const HEAD: &str = "attribute";

/// What was seen of each attribute: `read, set`, `read`, `set`, `set, then read`, or `cannot`.
pub(super) fn seen(report: &Report) -> BTreeMap<String, &'static str> {
    let notes: Vec<&str> = (report.findings.iter())
        .filter_map(|(_, finding)| match finding {
            Finding::Holds(notes) => Some(notes.iter().map(String::as_str)),
            _ => None,
        })
        .flatten()
        .collect();
    let names = NAMES.iter().map(|name| format!("{name:?}"));
    let adapter = names.map(|name| {
        let no = |verb: &str| notes.contains(&format!("{verb} {name}").as_str());
        let cell = match (!no("read"), can_be_set(&name) && !no("set")) {
            (true, true) => "read, set",
            (true, false) => "read",
            (false, true) => "set, then read",
            (false, false) => "cannot",
        };
        let plain = name.split_once('(').map_or(&*name, |(plain, _)| plain);
        (plain.to_owned(), cell)
    });
    let packet = [("Packet", "read"), ("PacketSeries", "set")].map(|(name, verb)| {
        let no = notes.contains(&format!("{verb} {name}").as_str());
        (name.to_owned(), if no { "cannot" } else { verb })
    });
    adapter.chain(packet).collect()
}

/// The column of `host` in the table of `page`; empty if there is none.
pub(super) fn documented<'a>(page: &'a str, host: &str) -> BTreeMap<String, &'a str> {
    let cells = |line: &'a str| -> Vec<&'a str> {
        let inner = line.trim().trim_matches('|');
        inner
            .split('|')
            .map(|cell| cell.trim().trim_matches('`'))
            .collect()
    };
    let mut rows = page.lines().map(cells).skip_while(|row| row[0] != HEAD);
    let head = rows.next().unwrap_or_default();
    let Some(column) = head.iter().position(|cell| *cell == host) else {
        return BTreeMap::new();
    };
    let body = rows.skip(1).take_while(|row| row.len() == head.len());
    body.map(|row| (row[0].to_owned(), row[column])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_of_a_host_is_found() {
        let page = "text\n\n| attribute | one | `two` |\n|---|---|---|\n| `Tsf` | read | cannot |\n| `Edca` | read, set | read |\n\n| a | b |";
        let of = |host| documented(page, host).into_iter().collect::<Vec<_>>();
        assert_eq!(
            of("two"),
            [("Edca".to_owned(), "read"), ("Tsf".to_owned(), "cannot")]
        );
        assert_eq!(of("one")[0].1, "read, set");
        assert!(of("three").is_empty());
    }
}
