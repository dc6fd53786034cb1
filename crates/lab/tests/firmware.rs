//! The firmware for microcontrollers, in QEMU, as it was built in its folder. Run with `--ignored`; `cargo xtask test`
//! builds it first. Time is that of the simulator, so each run is the same.

use lab::testbed::ar9170::Knobs;
use lab::testbed::board::{FIRMWARE, Heard, Network, Options, counts};
use std::path::{Path, PathBuf};

/// Octets of stack that a board may use; there are 60 KB.
const STACK: u64 = 16 << 10;

fn at_root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn network(boards: u32, chain: bool) -> Network {
    network_of(boards, chain, false)
}

fn network_of(boards: u32, chain: bool, multi_hop: bool) -> Network {
    network_with(boards, |options| Options {
        chain,
        multi_hop,
        ..options
    })
}

/// Boards that all hear each other, with power save and sticks without faults, or as `change` has it.
fn network_with(boards: u32, change: impl FnOnce(Options<'_>) -> Options<'_>) -> Network {
    let firmware = at_root(FIRMWARE);
    let options = change(Options {
        firmware: &firmware,
        boards,
        chain: false,
        window_tu: 20,
        multi_hop: false,
        knobs: Knobs::default(),
        seed: 1,
    });
    Network::new(&options).unwrap_or_else(|e| panic!("{e}"))
}

fn get(network: &mut Network, board: u32, path: &str) -> Heard {
    let heard = network.get(board, path).unwrap_or_else(|e| panic!("{e}"));
    println!("{board} {path}: {heard:?}");
    assert_eq!(heard.code, Some(205), "{path} of {board}");
    heard
}

/// All of it is within what there is, and the stack within a bound of its own.
fn memory_suffices(network: &mut Network, board: u32) {
    let memory = get(network, board, "/memory").text;
    let (used, stack) = (number(&memory, "used"), number(&memory, "of"));
    assert!(number(&memory, "link") < 24 << 10);
    assert!(number(&memory, "fixed") + stack <= 96 << 10);
    // what is built at the start takes most; a quarter is left for what did not happen here
    assert!(used > 1_000 && used <= STACK, "{memory}");
}

/// The number behind a word.
fn number(text: &str, word: &str) -> u64 {
    let mut words = text.split([' ', ';']);
    words
        .find(|w| *w == word)
        .unwrap_or_else(|| panic!("no `{word}` in `{text}`"));
    words
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or_else(|| panic!("no number behind `{word}` in `{text}`"))
}

/// Two boards and this computer form a network with power save, and both answer CoAP through the air.
#[test]
#[ignore = "needs the firmware, and qemu-system-arm"]
fn two_boards_answer() {
    let mut network = network(2, false);
    assert!(network.form(20_000).unwrap());
    assert_eq!(network.cell().unwrap().atim_window_tu, 20);
    network.pass(5_000).unwrap();
    for board in 1..=2 {
        assert_eq!(network.hops(board), Some(1));
        let link = get(&mut network, board, "/link").text;
        assert_eq!(number(&link, "neighbours"), 2);
        assert!(
            number(&link, "intervals") > 40 && number(&link, "dozed") > 5,
            "{link}"
        );
        // each is asked in a window and answers in one: some intervals of 102.4 ms
        let core = get(&mut network, board, "/.well-known/core");
        assert!(core.text.contains("</memory>") && core.took_ns < 800_000_000);
        memory_suffices(&mut network, board);
    }
    println!(
        "{:?} {:?} {} ms",
        network.air(),
        network.traffic(1),
        network.now_ns() / 1_000_000
    );
}

/// The same without power save: nobody dozes.
#[test]
#[ignore = "needs the firmware, and qemu-system-arm"]
fn two_boards_answer_without_power_save() {
    let mut network = network_with(2, |options| Options {
        window_tu: 0,
        ..options
    });
    assert!(network.form(10_000).unwrap());
    for board in 1..=2 {
        let link = get(&mut network, board, "/link").text;
        assert_eq!(number(&link, "dozed"), 0, "{link}");
    }
}

/// Three boards in a chain: the last answers over the first and the second.
#[test]
#[ignore = "needs the firmware, and qemu-system-arm"]
fn a_chain_answers_over_several_hops() {
    let mut network = network(3, true);
    assert!(network.form(40_000).unwrap());
    // until all know the way back, too
    network.pass(5_000).unwrap();
    for board in 1..=3 {
        assert_eq!(network.hops(board), Some(board as u8));
        get(&mut network, board, "/link");
        memory_suffices(&mut network, board);
    }
    let routes = get(&mut network, 1, "/routes").text;
    // a question and an answer each of the second and the third at least
    assert!(number(&routes, "forwarded") >= 4, "{routes}");
}

/// The same chain with ATIMs that are handed on: a question and its answer cross three hops in a few intervals less.
#[test]
#[ignore = "needs the firmware, and qemu-system-arm"]
fn a_chain_with_multi_hop_power_save_answers_sooner() {
    let took_ns = |multi_hop: bool| -> u64 {
        let mut network = network_of(3, true, multi_hop);
        assert!(network.form(60_000).unwrap());
        network.pass(5_000).unwrap();
        let asked = (0..5).map(|_| get(&mut network, 3, "/link").took_ns);
        let mean = asked.sum::<u64>() / 5;
        (1..=3).for_each(|board| memory_suffices(&mut network, board));
        mean
    };
    let (plain, multi_hop) = (took_ns(false), took_ns(true));
    println!("{} and {} ms", plain / 1_000_000, multi_hop / 1_000_000);
    assert!(multi_hop * 2 < plain, "{multi_hop} ns, and {plain} ns without");
}

/// Sticks that skip numbers, lose completions, group what they say and come late: the boards form their network, keep it, and answer.
#[test]
#[ignore = "needs the firmware, and qemu-system-arm"]
fn two_boards_answer_while_their_sticks_do_everything_wrong() {
    let knobs = Knobs {
        transfer_ns: 500_000,
        skipped_sequence: 0.002,
        lost_completion: 0.02,
        late_interrupt: 0.1,
        late_ns: 3_000_000,
        ..Knobs::default()
    };
    let mut network = network_with(2, |options| Options { knobs, ..options });
    assert!(network.form(60_000).unwrap());
    network.pass(30_000).unwrap();
    for board in 1..=2 {
        get(&mut network, board, "/.well-known/core");
        let link = get(&mut network, board, "/link").text;
        assert_eq!(number(&link, "neighbours"), 2);
        memory_suffices(&mut network, board);
        let stick = get(&mut network, board, "/stick").text;
        let faults = network.faults(board);
        println!("{faults:?}");
        let met = [
            faults.skipped_sequences,
            faults.grouped_transfers,
            faults.lost_completions,
            faults.late_interrupts,
        ];
        assert!(met.iter().all(|n| *n > 0), "{faults:?}");
        // one is not found out that was skipped before the driver knows any, and one restart can be for several
        let (restarts, lost) = (number(&stick, "restarts"), number(&stick, "lost"));
        assert!(restarts > 0 && restarts <= faults.skipped_sequences, "{stick}");
        assert!(lost > 0 && lost <= faults.lost_completions, "{stick}");
    }
    println!("{} ms", network.now_ns() / 1_000_000);
}

/// Frames that together are longer than the buffer of the USB: the board is told of the front, counts it, and answers as before.
#[test]
#[ignore = "needs the firmware, and qemu-system-arm"]
fn a_board_counts_transfers_for_which_it_has_no_room() {
    let knobs = Knobs {
        transfer_ns: 2_000_000,
        ..Knobs::default()
    };
    let mut network = network_with(2, |options| Options { knobs, ..options });
    assert!(network.form(20_000).unwrap());
    let before = get(&mut network, 1, "/stick").text;
    assert_eq!((number(&before, "cut"), number(&before, "restarts")), (0, 0));
    network.shout(20, 1_400);
    network.pass(500).unwrap();
    let after = get(&mut network, 1, "/stick").text;
    assert!(number(&after, "cut") > 0, "{after}");
    // responses are at the front: none was lost
    assert_eq!(number(&after, "restarts"), 0);
    let link = get(&mut network, 1, "/link").text;
    assert_eq!(number(&link, "neighbours"), 2);
}

/// The instructions in `papers` are those of this driver, within 2 %. With `INSTA_UPDATE=always`, as for snapshots, the file is
/// written anew.
#[test]
#[ignore = "needs the firmware, and qemu-system-arm"]
fn instructions_are_those_of_the_papers() {
    let found = counts::count(&at_root(counts::FIRMWARE)).unwrap_or_else(|e| panic!("{e}"));
    let path = at_root("papers/contiki80211/instructions.toml");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    if std::env::var("INSTA_UPDATE").as_deref() == Ok("always") {
        let comment: String = text
            .lines()
            .take_while(|l| l.starts_with('#'))
            .map(|l| format!("{l}\n"))
            .collect();
        let numbers = toml::to_string(&found).unwrap();
        std::fs::write(&path, format!("{comment}\n{numbers}")).unwrap();
        return;
    }
    let known: counts::Counts = toml::from_str(&text).unwrap();
    let names = |all: &counts::Counts| -> Vec<String> {
        all.iter()
            .flat_map(|(what, of)| of.keys().map(move |which| format!("{what} {which}")))
            .collect()
    };
    assert_eq!(names(&found), names(&known));
    for (what, which, count) in found
        .iter()
        .flat_map(|(what, of)| of.iter().map(move |(which, count)| (what, which, *count)))
    {
        let known = known[what][which];
        assert!(
            count.abs_diff(known) * 50 <= known,
            "{what} {which}: {count}, and the file says {known}"
        );
    }
}
