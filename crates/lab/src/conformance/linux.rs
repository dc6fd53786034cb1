//! The 802.11 stack of Linux as a host under test: two simulated radios of this computer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use ::linux::hwsim::Medium;
use ::linux::wifi::{AdHoc, Adapter, AdapterConfig, Carrier, Control, Error, Host, HostConfig, Interface};
use frame::{MacAddr, Rate};
use radio::{Duration, TxHow};

use super::{ABSENT, Node, Point, Scene, Subject};
use crate::scenario::Scenario;
use crate::testbed::air;

/// Patience of a host whose statuses are lost. All that comes within a run has come by then.
const PATIENCE: Duration = Duration::from_ms(100);

/// Through an ordinary interface there is no one shot.
const TRIES: u8 = 4;

/// What is between the radios.
#[derive(Debug)]
pub enum Air {
    /// The medium within mac80211_hwsim, which tries once.
    Kernel,
    /// Two nodes of a scenario, which make all tries.
    Scenario(Box<Scenario>),
}

/// A station that is known, and not there.
#[derive(Debug)]
struct Gone {
    control: Control,
    interface: Interface,
    network: AdHoc<'static>,
    /// When it went last.
    since: Option<std::time::Instant>,
}

impl Gone {
    /// Linux forgets a station of an ad hoc network after a minute (IEEE80211_IBSS_PEER_INACTIVITY_LIMIT): in time before that it
    /// comes, is heard, and goes.
    fn show_up(&mut self) -> Result<(), Error> {
        const KNOWN: std::time::Duration = std::time::Duration::from_secs(30);
        const BEACONS: std::time::Duration = std::time::Duration::from_secs(3);
        if self.since.is_none_or(|since| since.elapsed() > KNOWN) {
            self.control.join_ad_hoc(&self.interface, &self.network)?;
            std::thread::sleep(BEACONS);
            self.control.set_down(&self.interface)?;
            self.since = Some(std::time::Instant::now());
        }
        Ok(())
    }
}

/// Two radios in reach of each other. They are opened for each case, and closed after it.
///
/// A status is lost where a medium takes the frame and never tells what became of it: then the kernel has none to pass on.
#[derive(Debug)]
pub struct LinuxWifi {
    radios: [AdapterConfig; 2],
    addresses: [MacAddr; 2],
    air: Air,
    config: HostConfig,
    gone: Option<Gone>,
}

impl LinuxWifi {
    /// With these, which are the first two nodes of a scenario, and hosts that work like this.
    ///
    /// # Errors
    /// [`Error`] if they cannot be opened.
    pub fn new(radios: [AdapterConfig; 2], air: Air, config: HostConfig) -> Result<LinuxWifi, Error> {
        let address = |config: &AdapterConfig| Adapter::open(config.clone()).map(|adapter| adapter.address());
        let addresses = [address(&radios[0])?, address(&radios[1])?];
        Ok(LinuxWifi {
            radios,
            addresses,
            air,
            config,
            gone: None,
        })
    }

    /// The same, with an interface that comes into the ad hoc network and goes again, so that both know its station and it does
    /// not answer. Through an ordinary interface nothing is sent to one that Linux does not know.
    ///
    /// # Errors
    /// [`Error`] if there is no nl80211.
    pub fn with_gone(self, interface: Interface, network: AdHoc<'static>) -> Result<LinuxWifi, Error> {
        let gone = Gone {
            control: Control::open()?,
            interface,
            network,
            since: None,
        };
        Ok(LinuxWifi {
            gone: Some(gone),
            ..self
        })
    }

    /// The one rate of ordinary interfaces, if that is what carries the frames.
    fn ordinary(&self) -> Option<Rate> {
        match self.radios[0].carrier {
            Carrier::Monitor(_) => None,
            Carrier::Ordinary(rate) => Some(rate),
        }
    }

    fn meet(&self, scene: Scene, nodes: [Node; 2], time: Duration) -> Result<[Node; 2], String> {
        let mut config = self.config;
        config.outstanding = scene.outstanding.unwrap_or(config.outstanding);
        if scene.loses_statuses {
            config.confirm_timeout = PATIENCE;
        }
        let open = |radio: &AdapterConfig| {
            Adapter::open(radio.clone()).and_then(|adapter| Host::new(vec![adapter], config))
        };
        let hosts = [open(&self.radios[0]), open(&self.radios[1])];
        let [first, second] = hosts.map(|host| host.map_err(|e| e.to_string()));
        let (hosts, stop) = ([first?, second?], AtomicBool::new(false));
        let until = Host::now() + time;
        let drive = |mut host: Host, mut node: Node| -> Result<Node, String> {
            host.run(&mut node, &mut (), Some(until), &stop)
                .and_then(|()| host.finish(&mut node, &mut ()))
                .map_err(|e| e.to_string())?;
            match host.counters().late_statuses {
                0 => Ok(node),
                late => Err(format!("{late} statuses came after all, later than {PATIENCE:?}")),
            }
        };
        let ([host_a, host_b], [a, b]) = (hosts, nodes);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| drive(host_b, b));
            let first = drive(host_a, a);
            let second = other.join().map_err(|_| "the second node panicked".to_owned())?;
            Ok([first?, second?])
        })
    }
}

impl Subject for LinuxWifi {
    fn name(&self) -> String {
        let [a, b] = &self.radios;
        let air = match self.air {
            Air::Kernel => "the kernel's own air",
            Air::Scenario(_) => "the air of a scenario",
        };
        let probes = self
            .config
            .probes
            .map_or(String::new(), |way| format!(", probes: {way:?}"));
        format!(
            "Linux, {} and {}, {air}, outcomes by {}{probes}",
            a.radio,
            b.radio,
            self.config.confirm.name()
        )
    }

    fn cannot(&self, point: Point) -> Option<&'static str> {
        if self.ordinary().is_some() {
            return match point {
                Point::AllTries => {
                    Some("the tries are chosen by Linux, which does not tell how many there were")
                }
                Point::Header => Some("the header is made by Linux, and the interface has one rate"),
                Point::NoAck => {
                    Some("Linux asks each station for an ACK, and tells nothing of a frame to a group")
                }
                Point::Beacon => Some("an ordinary interface sends data alone; beacons are its network's"),
                _ => None,
            };
        }
        let once = point == Point::AllTries && matches!(self.air, Air::Kernel);
        once.then_some("this medium tries once, whatever is asked")
    }

    fn addresses(&self) -> [MacAddr; 2] {
        self.addresses
    }

    fn how(&self) -> TxHow {
        match self.ordinary() {
            None => TxHow::one_shot(Rate::OFDM_6),
            Some(rate) => TxHow::multi_shot(rate, TRIES),
        }
    }

    fn absent(&self) -> MacAddr {
        self.gone.as_ref().map_or(ABSENT, |gone| gone.interface.address)
    }

    fn run(&mut self, scene: Scene, nodes: [Node; 2], time: Duration) -> Result<[Node; 2], String> {
        if let Some(gone) = &mut self.gone {
            gone.show_up().map_err(|e| e.to_string())?;
        }
        match &self.air {
            _ if scene.loses_statuses => {
                let mut silent = Medium::open().map_err(|e| e.to_string())?;
                silent.register().map_err(|e| e.to_string())?;
                self.meet(scene, nodes, time)
            }
            Air::Kernel => self.meet(scene, nodes, time),
            Air::Scenario(scenario) => under(scenario, || self.meet(scene, nodes, time)),
        }
    }
}

/// Does something while the scenario is the air.
fn under<T>(scenario: &Scenario, body: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let stop = AtomicBool::new(false);
    let (ready, is_ready) = mpsc::channel();
    std::thread::scope(|scope| {
        let stop = &stop;
        let air = scope.spawn(move || {
            air::run(scenario, 1, stop, |_| {
                let _ = ready.send(()); // Who does not wait any more does not need to know.
            })
        });
        let done = is_ready.recv().map_err(|_| String::new()).and_then(|()| {
            // its time begins with an interframe space
            std::thread::sleep(std::time::Duration::from_millis(1));
            body()
        });
        stop.store(true, Ordering::Relaxed);
        match air.join() {
            Ok(Ok(_)) => done,
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the air panicked".into()),
        }
    })
}
