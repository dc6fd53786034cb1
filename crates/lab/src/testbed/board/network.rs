//! Boards and a station of this computer in one air.

use std::path::Path;

use ::ar9170::codec::Eeprom;
use ::ar9170::driver::Config;
use ::ar9170::emulated::{Faults, Knobs, Remote};
use frame::mac::{Flags, FrameControl, Kind};
use frame::{MacAddr, Rate};
use node::{Answer, Setup, Station, Storage};
use protocols::mac::ibss::Network as Cell;
use radio::{Event, Instant, Msdu, Protocol, Radio, TxHow};
use sim::World;
use sim::medium::{LossModel, MediumConfig, Position};

use super::qemu::{Board, BoardError};
use crate::testbed::ar9170::{Computer, computer, node};

/// Boards at most: the routes of a node hold 16 others.
pub const MAX_BOARDS: u32 = 15;
/// How strong everybody is who is heard at all, dBm.
const STRENGTH_DBM: f64 = -50.0;
const MS: u64 = 1_000_000;

/// Which network.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The firmware.
    pub firmware: &'a Path,
    /// Boards, 1 to [`MAX_BOARDS`].
    pub boards: u32,
    /// Each hears only those before and behind it; this computer is at the front. Otherwise all hear all.
    pub chain: bool,
    /// ATIM window of 100 TU, in TU; 0: no power save.
    pub window_tu: u16,
    /// ATIMs are handed on along the routes, so that packets cross several hops in one interval.
    pub multi_hop: bool,
    /// What goes wrong on the sticks of the boards; each has a seed of its own.
    pub knobs: Knobs,
    /// Everything random follows from it.
    pub seed: u64,
}

/// What a board has answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Heard {
    /// Class and detail of the response, such as 205; `None`: none came.
    pub code: Option<u16>,
    /// What it says.
    pub text: String,
    /// From the question to the answer, in the time of the air, ns.
    pub took_ns: u64,
}

/// The station of this computer: the same protocols, on a stick of its own.
type Here = Computer<Station<'static, 8, { node::net::MTU }>>;

enum Node {
    Here(Box<Here>),
    Board(Box<Remote<Board>>),
}

impl Protocol for Node {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match self {
            Node::Here(here) => here.handle(now, event, radio),
            Node::Board(board) => board.handle(now, event, radio),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match self {
            Node::Here(here) => here.deadline(),
            Node::Board(board) => board.deadline(),
        }
    }
}

/// A network of boards.
pub struct Network {
    world: World<Node>,
    boards: u32,
}

/// The address of a node: 0 is this computer.
pub fn address(node: u32) -> MacAddr {
    MacAddr::local(node + 1)
}

/// They look for a network for times of their own, this computer for the shortest: it creates it.
fn setup(node: u32, options: &Options<'_>) -> Setup {
    Setup {
        address: address(node),
        scan_ms: 300 + 400 * node as u16,
        interval_tu: 100,
        window_tu: options.window_tu,
        multi_hop: options.multi_hop,
    }
}

fn here(setup: &Setup, seed: u64) -> Here {
    // one for each network, for as long as the program runs
    let storage: &'static mut Storage<'static> = Box::leak(Box::default());
    let station = Station::new(Instant::ZERO, setup, storage, node::Board::default);
    let knobs = Knobs {
        seed,
        ..Knobs::default()
    };
    computer(setup.address, Config::default(), knobs, station)
}

impl Network {
    /// Starts the boards. Nothing has happened yet.
    ///
    /// # Errors
    /// A board that does not start.
    pub fn new(options: &Options<'_>) -> Result<Network, BoardError> {
        let medium = MediumConfig {
            loss: LossModel::FixedPower(STRENGTH_DBM),
            ..MediumConfig::default()
        };
        let mut world = World::new(&medium, options.seed);
        let boards = options.boards.clamp(1, MAX_BOARDS);
        for i in 0..=boards {
            let setup = setup(i, options);
            let seed = options.seed ^ u64::from(i) << 32;
            let protocol = if i == 0 {
                Node::Here(Box::new(here(&setup, seed)))
            } else {
                let board = Board::start(i, options.firmware, &setup)?;
                let eeprom = Eeprom {
                    ghz5: true,
                    ghz2_4: true,
                    domain: 0,
                    address: setup.address,
                    receive_chains: 1,
                    transmit_chains: 1,
                };
                let knobs = Knobs {
                    seed,
                    ..options.knobs
                };
                Node::Board(Box::new(Remote::new(eeprom, knobs, board)))
            };
            world.add_node(node(setup.address, Position::new(f64::from(i), 0.0)), protocol);
        }
        for (a, b) in (0..=boards).flat_map(|a| (0..=boards).map(move |b| (a, b))) {
            if options.chain && a.abs_diff(b) > 1 {
                world.plan_loss(0, a, b, f64::INFINITY);
            }
        }
        Ok(Network { world, boards })
    }

    /// Boards that there are.
    pub fn boards(&self) -> u32 {
        self.boards
    }

    /// Time of the air, ns.
    pub fn now_ns(&self) -> u64 {
        self.world.now_ns()
    }

    /// Frames that were on the air, and a number that is another if anything on the air was.
    pub fn air(&self) -> (u64, u64) {
        (self.world.frames_on_air(), self.world.trace_hash())
    }

    fn station(&self) -> &Station<'static, 8, { node::net::MTU }> {
        match self.world.protocol(0) {
            Node::Here(here) => here.protocol(),
            Node::Board(_) => unreachable!("node 0 is this computer"),
        }
    }

    /// The network that this computer is in.
    pub fn cell(&self) -> Option<&Cell> {
        self.station().link().network()
    }

    /// Hops to a board, as far as this computer knows a way.
    pub fn hops(&self, board: u32) -> Option<u8> {
        let mut routes = self.station().net().routes().iter();
        routes.find(|r| r.to == address(board)).map(|r| r.hops)
    }

    /// Messages to a board, and octets both ways.
    pub fn traffic(&self, board: u32) -> (u64, u64) {
        match self.world.protocol(board) {
            Node::Board(board) => board.computer().traffic(),
            Node::Here(_) => (0, 0),
        }
    }

    /// What has gone wrong on the stick of a board.
    pub fn faults(&self, board: u32) -> Faults {
        match self.world.protocol(board) {
            Node::Board(board) => board.faults(),
            Node::Here(_) => Faults::default(),
        }
    }

    /// Sends frames of `octets` octets to everybody, one behind the other, from the adapter of this computer: they are of no network that anybody
    /// is in, and fill the transfers of the sticks that hear them.
    pub fn shout(&mut self, frames: u16, octets: usize) {
        let how = TxHow::one_shot(Rate::OFDM_54).no_ack();
        let mut frame = vec![0; octets.max(24)];
        frame[..2].copy_from_slice(&FrameControl::new(Kind::DATA, Flags::NONE).0);
        frame[4..10].copy_from_slice(&MacAddr::BROADCAST.0);
        frame[10..16].copy_from_slice(&address(0).0);
        frame[16..22].copy_from_slice(&address(MAX_BOARDS + 1).0);
        self.world.act(0, |_, _, radio| {
            for _ in 0..frames {
                let token = radio.token();
                radio.request(token, &frame, &how);
            }
        });
    }

    /// Lets `ms` pass on the air.
    ///
    /// # Errors
    /// A board that works no more.
    pub fn pass(&mut self, ms: u64) -> Result<(), BoardError> {
        // boards are looked after ten times a second
        let until = self.now_ns() + ms * MS;
        while self.now_ns() < until {
            self.world.run_until(until.min(self.now_ns() + 100 * MS));
            for i in 1..=self.boards {
                if let Node::Board(board) = self.world.protocol_mut(i)
                    && let Some(failure) = board.computer_mut().failure()
                {
                    return Err(failure);
                }
            }
        }
        Ok(())
    }

    /// Lets time pass until there are ways to all boards, at most `limit_ms`. False: there are not.
    ///
    /// # Errors
    /// A board that works no more.
    pub fn form(&mut self, limit_ms: u64) -> Result<bool, BoardError> {
        let until = self.now_ns() + limit_ms * MS;
        while self.now_ns() < until {
            self.pass(500)?;
            if (1..=self.boards).all(|i| self.hops(i).is_some()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Asks a board for what it has at `path`, and waits for the answer or its end: four repetitions, 77.5 s.
    ///
    /// # Errors
    /// A board that works no more.
    pub fn get(&mut self, board: u32, path: &str) -> Result<Heard, BoardError> {
        self.world.act(0, |here, now, radio| {
            here.handle(
                now,
                Event::Submit(Msdu::new(address(board), path.as_bytes())),
                radio,
            );
        });
        let until = self.now_ns() + 90_000 * MS;
        while self.now_ns() < until {
            self.pass(10)?;
            if let Some(answer) = self.station().net().answer() {
                return Ok(heard(answer));
            }
        }
        Ok(Heard {
            code: None,
            text: String::new(),
            took_ns: 0,
        })
    }
}

fn heard(answer: &Answer) -> Heard {
    Heard {
        code: answer
            .code
            .map(|code| u16::from(code >> 5) * 100 + u16::from(code & 31)),
        text: String::from_utf8_lossy(answer.payload()).into_owned(),
        took_ns: answer.took.as_ns(),
    }
}
