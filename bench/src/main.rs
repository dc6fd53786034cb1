//! What ATP over UDP costs next to the kernel's TCP and to QUIC, on this computer with itself, and how well it keeps its pacing:
//! `cargo xtask compare quic`. Prints ratios and distributions, and judges nothing.

mod atp;
mod pacing;
mod quic;
mod tcp;

use std::net::Ipv4Addr;

use pacing::Asked;

const LOCAL: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);
/// What each of them moves that is not paced.
const OCTETS: usize = 256 << 20;
const BLOCK: usize = 1 << 14;
/// Rounds, in which they take turns; the least of each counts.
const ROUNDS: usize = 5;

/// CPU of the two ends, ns: of the thread that sends, and of the one that receives.
type Cost = [u64; 2];

/// CPU of this thread so far, user and kernel, ns (schedstat of proc(5)).
fn thread_ns() -> u64 {
    let all = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a kernel with schedstat");
    let first = all.split(' ').next().and_then(|n| n.parse().ok());
    first.expect("a number")
}

/// CPU of this thread for what is done.
fn cost(what: impl FnOnce()) -> u64 {
    let before = thread_ns();
    what();
    thread_ns() - before
}

/// One of those that are compared.
struct Row {
    name: &'static str,
    run: Run,
    /// Of its rounds the one with the least, ns per octet, which is seconds per gigabyte.
    least: [f64; 2],
    /// The rate that its sender reached in each round, over the one that was asked.
    reached: Vec<f64>,
}

enum Run {
    Tcp,
    Quic,
    Atp { asked: Asked, sealed: bool },
}

impl Row {
    fn new(name: &'static str, run: Run) -> Row {
        Row {
            name,
            run,
            least: [f64::INFINITY; 2],
            reached: Vec::new(),
        }
    }

    /// One round.
    fn turn(&mut self) {
        let (cost, octets) = match self.run {
            Run::Tcp => (tcp::tcp(), OCTETS),
            Run::Quic => (quic::quic(), OCTETS),
            Run::Atp { asked, sealed } => {
                let key = sealed.then(|| transfer::secure::Key::random().expect("random numbers"));
                let seen = atp::atp(asked.spacing_us, asked.octets, key);
                if asked.spacing_us > pacing::NONE.spacing_us {
                    self.reached.push(asked.reached(&seen.sent));
                }
                (seen.cost, asked.octets)
            }
        };
        let cost = cost.map(|ns| ns as f64 / octets as f64);
        if cost[0] + cost[1] < self.both() {
            self.least = cost;
        }
    }

    fn both(&self) -> f64 {
        self.least[0] + self.least[1]
    }
}

fn costs() {
    let atp = |asked, sealed| Run::Atp { asked, sealed };
    let mut rows = [
        Row::new("the kernel's TCP", Run::Tcp),
        Row::new("QUIC (quinn, TLS 1.3)", Run::Quic),
        Row::new("ATP, not paced", atp(pacing::NONE, false)),
        Row::new("ATP, 100,000 packets/s", atp(pacing::FAST, false)),
        Row::new("ATP, 10,000 packets/s", atp(pacing::ASKED, false)),
        Row::new("with a key, not paced", atp(pacing::NONE, true)),
        Row::new("with a key, 100,000/s", atp(pacing::FAST, true)),
        Row::new("with a key, 10,000/s", atp(pacing::ASKED, true)),
    ];
    for round in 1..=ROUNDS {
        for row in &mut rows {
            eprintln!("round {round} of {ROUNDS}: {}", row.name);
            row.turn();
        }
    }
    println!(
        "CPU, s/GB, of the round of {ROUNDS} with the least; both ends over those of TCP and of QUIC; and the rate that the sender \
         reached over the one asked, median of the rounds:"
    );
    println!(
        "  {:24} {:>6} {:>8} {:>5} {:>6} {:>6} {:>7}",
        "", "sender", "receiver", "both", "/ TCP", "/ QUIC", "reached"
    );
    let (tcp, quic) = (rows[0].both(), rows[1].both());
    for row in &mut rows {
        let ([sends, receives], both) = (row.least, row.both());
        let (to_tcp, to_quic) = (both / tcp, both / quic);
        print!(
            "  {:24} {sends:6.2} {receives:8.2} {both:5.2} {to_tcp:6.1} {to_quic:6.2}",
            row.name
        );
        row.reached.sort_by(f64::total_cmp);
        match row.reached.get(ROUNDS / 2) {
            Some(reached) => println!(" {reached:7.3}"),
            None => println!(),
        }
    }
}

fn main() {
    costs();
    pacing::pacing();
}
