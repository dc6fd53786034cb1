//! What frames go over, by its name: `simulator:2`, `ar9170:2`, `usb:any@2412`, `linux:phy0@5180`.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use ar9170::codec::{Eeprom, Firmware, firmware};
use ar9170::driver::{Config, Hybrid};
use ar9170::emulated::{Knobs, Plugged};
use ar9170::usb::{UsbBus, UsbError, UsbHost, firmware_for};
use frame::{MacAddr, Phy};
use linux::wifi;
use radio::{Duration, Event, Instant, Protocol, Radio};
use sim::medium::{LossModel, MediumConfig};
use sim::{AdapterConfig, LinkLoss, NodeConfig, Position, Process, World};

use crate::agent::{Agent, Mailbox, Shared};

/// Stations of a simulated host at most.
const STATIONS: usize = 64;
/// How long a look at Linux takes that is not to wait.
const LOOK: Duration = Duration::from_us(100);
/// How long a stick may take to come up.
const PATIENCE: Duration = Duration::from_ms(20_000);

/// A computer with an emulated stick: 32 requests of up to 2400 octets, four transfers of received frames. That is a lot for
/// the stack of a thread, so it has a place of its own.
pub(crate) struct Computer(Box<Plugged<'static, Agent, Hybrid<4, 8_192>, 32, 2_400>>);

impl Protocol for Computer {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        self.0.handle(now, event, radio);
    }

    fn deadline(&self) -> Option<Instant> {
        self.0.deadline()
    }
}

pub(crate) enum Engine {
    Simulator(Box<World<Agent>>),
    Ar9170(Box<World<Computer>>),
    Usb(Box<UsbHost<'static, Agent, ()>>),
    Linux(Box<wifi::Host>, Agent, Rc<AtomicBool>),
}

/// What a host is made of, as its name says.
#[derive(Debug, PartialEq)]
enum Wanted {
    Simulated {
        sticks: bool,
        stations: usize,
        seed: u64,
        loss: f64,
    },
    /// Which stick, its channel in MHz, and a file of its firmware other than the usual one.
    Usb(String, u16, Option<PathBuf>),
    Linux(Vec<(String, u16)>),
}

const NAMES: &str = "a host is `simulator:STATIONS[,seed=N][,loss=P]`, `ar9170:STATIONS[,seed=N][,loss=P]`, `usb:STICK@MHZ[,firmware=FILE]` or `linux:RADIO@MHZ[,RADIO@MHZ]`";

fn wanted(name: &str) -> Result<Wanted, String> {
    let wrong = |what: &str, why: &str| format!("`{what}`: {why}; {NAMES}");
    let (kind, rest) = name
        .split_once(':')
        .ok_or_else(|| wrong(name, "there is no colon"))?;
    let radio = |part: &str| {
        let (radio, mhz) = part.split_once('@')?;
        (!radio.is_empty()).then_some((radio.to_owned(), mhz.parse().ok()?))
    };
    let mut parts = rest.split(',').map(str::trim);
    match kind {
        "simulator" | "ar9170" => {
            let first = parts.next().unwrap_or_default();
            let stations = first.parse().ok().filter(|n| (1..=STATIONS).contains(n));
            let stations = stations.ok_or_else(|| wrong(first, "the stations are 1 to 64"))?;
            let (mut seed, mut loss) = (1, 0.0);
            for part in parts {
                match part.split_once('=') {
                    Some(("seed", n)) => {
                        seed = n
                            .parse()
                            .map_err(|_| wrong(part, "a seed is a number from 0 on"))?;
                    }
                    Some(("loss", p)) => {
                        let p = p.parse().ok().filter(|p| (0.0..=1.0).contains(p));
                        loss = p.ok_or_else(|| wrong(part, "a loss is a probability, 0 to 1"))?;
                    }
                    _ => return Err(wrong(part, "there is no such option")),
                }
            }
            Ok(Wanted::Simulated {
                sticks: kind == "ar9170",
                stations,
                seed,
                loss,
            })
        }
        "usb" => {
            // a path may have commas
            let (stick, option) = rest.split_once(',').map_or((rest, None), |(s, o)| (s, Some(o)));
            let why = "a stick is `any` or its place, @ and its channel in MHz";
            let (stick, mhz) = radio(stick).ok_or_else(|| wrong(stick, why))?;
            let firmware = option.map(|option| {
                let file = option.strip_prefix("firmware=").filter(|file| !file.is_empty());
                file.map(PathBuf::from)
                    .ok_or_else(|| wrong(option, "there is no such option"))
            });
            Ok(Wanted::Usb(stick, mhz, firmware.transpose()?))
        }
        "linux" => {
            let radios = parts.map(|part| {
                radio(part).ok_or_else(|| wrong(part, "a radio is its name, @ and its channel in MHz"))
            });
            Ok(Wanted::Linux(radios.collect::<Result<_, _>>()?))
        }
        _ => Err(wrong(kind, "there is no such kind")),
    }
}

/// A world of stations that all hear each other, some metres apart; `make` makes the protocol of each.
fn world<P: Protocol>(
    stations: usize,
    seed: u64,
    loss: f64,
    phy: Phy,
    mhz: u16,
    mut make: impl FnMut(usize) -> P,
) -> Box<World<P>> {
    let medium = MediumConfig {
        loss: LossModel::FixedPower(-50.0),
        ..MediumConfig::default()
    };
    let mut world = World::new(&medium, seed);
    for i in 0..stations {
        let adapter = AdapterConfig::station(address(i), phy, mhz, true);
        let position = Position::new(i as f64, 0.0);
        world.add_node(NodeConfig::ideal(position, adapter), make(i));
    }
    let all = 0..stations as u32;
    for (from, to) in all.clone().flat_map(|a| all.clone().map(move |b| (a, b))) {
        if loss > 0.0 && from != to {
            let lost = LinkLoss {
                data: Some(Process::Fixed(loss)),
                ..LinkLoss::default()
            };
            world.set_link_loss(from, to, lost);
        }
    }
    Box::new(world)
}

/// Of a simulated station: 02:00:00:00:00:01, :02...
fn address(station: usize) -> MacAddr {
    MacAddr::local(station as u32 + 1)
}

fn computer(i: usize, agent: Agent, file: &'static [u8]) -> Result<Computer, String> {
    let firmware = Firmware::parse(file).map_err(|e| format!("the stick's firmware: {e:?}"))?;
    let eeprom = Eeprom {
        ghz5: true,
        ghz2_4: true,
        domain: 0,
        address: address(i),
        receive_chains: 1,
        transmit_chains: 1,
    };
    let buffers = Hybrid::default();
    let plugged = Plugged::new(
        firmware,
        Config::default(),
        eeprom,
        Knobs::default(),
        agent,
        buffers,
    );
    Ok(Computer(Box::new(plugged)))
}

/// A stick of this computer, which is brought up. Its firmware is borrowed for as long as the program runs.
fn plugged_in(
    stick: &str,
    mhz: u16,
    firmware: Option<&Path>,
    agent: Agent,
) -> Result<Box<UsbHost<'static, Agent, ()>>, String> {
    let file: &'static [u8] = firmware_for(stick, firmware)
        .map_err(|e| match e {
            UsbError::NoFirmware { tried } => format!(
                "no firmware for the stick ({tried} is not there): install Debian's firmware-linux-free, or name a file: usb:{stick}@{mhz},firmware=FILE"
            ),
            e => e.to_string(),
        })?
        .leak();
    let firmware = Firmware::parse(file).map_err(|e| e.to_string())?;
    let bus = UsbBus::open(stick).map_err(|e| e.to_string())?;
    let config = Config {
        mhz,
        ..Config::default()
    };
    let mut host = Box::new(UsbHost::new(bus, firmware, config, agent, ()));
    let never = AtomicBool::new(false);
    host.bring_up(PATIENCE, &never).map_err(|e| e.to_string())?;
    Ok(host)
}

impl Engine {
    /// The host of this name, and the mailbox of its interfaces.
    pub fn open(name: &str) -> Result<(Engine, Shared), String> {
        let wanted = wanted(name)?;
        let lanes = match &wanted {
            Wanted::Simulated { stations, .. } => *stations,
            Wanted::Usb(..) => 1,
            Wanted::Linux(radios) => radios.len(),
        };
        let mailbox = Rc::new(RefCell::new(Mailbox::new(lanes)));
        let agent = |first, count| Agent {
            mailbox: Rc::clone(&mailbox),
            first,
            count,
        };
        let engine = match wanted {
            Wanted::Simulated {
                sticks: false,
                stations,
                seed,
                loss,
            } => Engine::Simulator(world(stations, seed, loss, Phy::A, 5_180, |i| agent(i, 1))),
            Wanted::Simulated {
                stations, seed, loss, ..
            } => {
                static FILE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
                let file = FILE.get_or_init(firmware::blank);
                let computers = (0..stations).map(|i| computer(i, agent(i, 1), file));
                let mut computers = computers.collect::<Result<Vec<_>, _>>()?.into_iter();
                let next = |_| computers.next().expect("one for each station");
                Engine::Ar9170(world(stations, seed, loss, Phy::G, 2_412, next))
            }
            Wanted::Usb(stick, mhz, firmware) => {
                Engine::Usb(plugged_in(&stick, mhz, firmware.as_deref(), agent(0, 1))?)
            }
            Wanted::Linux(radios) => {
                let open = |(radio, mhz): &(String, u16)| {
                    wifi::Adapter::open(wifi::AdapterConfig::new(radio, *mhz)).map_err(|e| e.to_string())
                };
                let adapters = radios.iter().map(open).collect::<Result<Vec<_>, _>>()?;
                let host = wifi::Host::new(adapters, wifi::HostConfig::default());
                let host = Box::new(host.map_err(|e| e.to_string())?);
                let stir = Rc::clone(&mailbox.borrow().stir);
                Engine::Linux(host, agent(0, lanes), stir)
            }
        };
        Ok((engine, mailbox))
    }

    /// The host's clock, ns.
    pub fn now_ns(&self) -> u64 {
        match self {
            Engine::Simulator(world) => world.now_ns(),
            Engine::Ar9170(world) => world.now_ns(),
            Engine::Usb(_) => UsbHost::<Agent, ()>::now().as_ns(),
            Engine::Linux(..) => wifi::Host::now().as_ns(),
        }
    }

    /// Goes on until something has come for the program, or until then. False: nothing will ever come by itself.
    pub fn go_on(&mut self, until_ns: u64, stir: &AtomicBool) -> Result<bool, String> {
        stir.store(false, Ordering::Relaxed);
        match self {
            Engine::Simulator(world) => Ok(simulate(world, until_ns, stir)),
            Engine::Ar9170(world) => Ok(simulate(world, until_ns, stir)),
            Engine::Usb(host) => {
                let until = Instant::from_ns(until_ns).max(UsbHost::<Agent, ()>::now() + LOOK);
                host.run(Some(until), stir);
                Ok(true)
            }
            Engine::Linux(host, agent, stir) => {
                let until = Instant::from_ns(until_ns).max(wifi::Host::now() + LOOK);
                host.run(agent, &mut (), Some(until), stir)
                    .map_err(|e| e.to_string())?;
                Ok(true)
            }
        }
    }
}

fn simulate<P: Protocol>(world: &mut World<P>, until_ns: u64, stir: &AtomicBool) -> bool {
    for node in 0..world.nodes() {
        // there may be something for it to do
        world.act(node, |_, _, _| ());
    }
    while !stir.load(Ordering::Relaxed) {
        match world.next_ns() {
            Some(next) if next <= until_ns => world.run_until(next),
            Some(_) => {
                world.run_until(until_ns);
                return true;
            }
            None => {
                if until_ns < Instant::MAX.as_ns() {
                    world.run_until(until_ns);
                }
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts_are_read() {
        let simulated = |sticks, stations, seed, loss| Wanted::Simulated {
            sticks,
            stations,
            seed,
            loss,
        };
        assert_eq!(wanted("simulator:2"), Ok(simulated(false, 2, 1, 0.0)));
        assert_eq!(wanted("ar9170:3,seed=9,loss=0.5"), Ok(simulated(true, 3, 9, 0.5)));
        let radios = vec![("phy0".to_owned(), 5_180), ("wlan1".to_owned(), 2_412)];
        assert_eq!(
            wanted("usb:any@2412"),
            Ok(Wanted::Usb("any".to_owned(), 2_412, None))
        );
        assert_eq!(
            wanted("usb:1-2@2412,firmware=/a,b.fw"),
            Ok(Wanted::Usb("1-2".to_owned(), 2_412, Some("/a,b.fw".into())))
        );
        assert_eq!(wanted("linux:phy0@5180, wlan1@2412"), Ok(Wanted::Linux(radios)));
    }

    #[test]
    fn other_names_get_a_sentence() {
        for (name, part) in [
            ("", "no colon"),
            ("mars:2", "no such kind"),
            ("simulator:", "1 to 64"),
            ("simulator:0", "1 to 64"),
            ("simulator:65", "1 to 64"),
            ("simulator:2,loss=2", "a probability"),
            ("simulator:2,loss=NaN", "a probability"),
            ("simulator:2,seed=-1", "from 0 on"),
            ("simulator:2,gain=3", "no such option"),
            ("usb:any", "channel in MHz"),
            ("usb:any@2412,firmware=", "no such option"),
            ("usb:any@2412,file=x", "no such option"),
            ("linux:phy0", "channel in MHz"),
            ("linux:@5180", "channel in MHz"),
        ] {
            let error = wanted(name).unwrap_err();
            assert!(error.contains(part) && error.ends_with(NAMES), "{name}: {error}");
        }
    }
}
