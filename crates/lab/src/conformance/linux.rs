//! The 802.11 stack of Linux as a host under test: two radios of this computer.

use std::sync::atomic::AtomicBool;

use ::linux::wifi::{Adapter, AdapterConfig, Error, Host, HostConfig};
use frame::MacAddr;
use radio::Duration;

use super::{Node, Point, Scene, Subject};

/// Two radios in reach of each other. They are opened for each case, and closed after it.
#[derive(Debug)]
pub struct LinuxWifi {
    radios: [AdapterConfig; 2],
    addresses: [MacAddr; 2],
    makes_all_tries: bool,
}

impl LinuxWifi {
    /// With these; `makes_all_tries` is false for a medium that tries once, as the one within mac80211_hwsim.
    ///
    /// # Errors
    /// [`Error`] if they cannot be opened.
    pub fn new(radios: [AdapterConfig; 2], makes_all_tries: bool) -> Result<LinuxWifi, Error> {
        let address = |config: &AdapterConfig| Adapter::open(config.clone()).map(|adapter| adapter.address());
        let addresses = [address(&radios[0])?, address(&radios[1])?];
        Ok(LinuxWifi {
            radios,
            addresses,
            makes_all_tries,
        })
    }
}

impl Subject for LinuxWifi {
    fn name(&self) -> String {
        let [a, b] = &self.radios;
        format!("Linux, {} and {}", a.radio, b.radio)
    }

    fn cannot(&self, point: Point) -> Option<&'static str> {
        let once = point == Point::AllTries && !self.makes_all_tries;
        once.then_some("this medium tries once, whatever is asked")
    }

    fn addresses(&self) -> [MacAddr; 2] {
        self.addresses
    }

    fn run(&mut self, scene: Scene, nodes: [Node; 2], time: Duration) -> Result<[Node; 2], String> {
        let mut config = HostConfig::default();
        config.outstanding = scene.outstanding.unwrap_or(config.outstanding);
        if scene.loses_statuses {
            config.confirm_timeout = Duration::from_ns(0);
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
            Ok(node)
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
