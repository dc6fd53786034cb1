//! AR9170 sticks at this computer as hosts under test.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ::ar9170::codec::Firmware;
use ::ar9170::driver::Config;
use ::ar9170::usb::{Stick, UsbBus, UsbError, UsbHost, sticks};
use frame::MacAddr;
use radio::{Duration, Instant};

use super::{Node, Point, Scene, Subject};

/// For a stick to come up, for the other one to be up as well, and for requests to end.
const PATIENCE: Duration = Duration::from_ms(30_000);

/// For some restarts of a stick in a guest.
const RESTARTS: Duration = Duration::from_ms(8_000);

/// Two sticks in reach of each other. They are opened for each case, and given back after it.
#[derive(Debug)]
pub struct UsbSticks {
    places: [String; 2],
    firmware: Vec<u8>,
}

impl UsbSticks {
    /// The first two that are plugged in, with this firmware's file.
    ///
    /// # Errors
    /// [`UsbError`] if there are fewer.
    pub fn new(firmware: Vec<u8>) -> Result<UsbSticks, UsbError> {
        let all: Vec<String> = sticks()?.iter().map(Stick::place).collect();
        let [first, second, ..] = &all[..] else {
            return Err(UsbError::NoStick);
        };
        Ok(UsbSticks {
            places: [first.clone(), second.clone()],
            firmware,
        })
    }

    /// One of the two, from its start to its end.
    fn drive(
        &self,
        which: usize,
        scene: Scene,
        node: Node,
        time: Duration,
        up: &AtomicUsize,
    ) -> Result<Node, String> {
        let firmware = Firmware::parse(&self.firmware).map_err(|e| e.to_string())?;
        let defaults = Config::default();
        let config = Config {
            address: Some(self.addresses()[which]),
            requests: scene.outstanding.unwrap_or(defaults.requests),
            status_timeout: match scene.loses_statuses {
                // none is in time
                true => Duration::from_ns(0),
                false => defaults.status_timeout,
            },
            ..defaults
        };
        let bus = UsbBus::open(&self.places[which]).map_err(|e| e.to_string())?;
        let mut host = UsbHost::new(bus, firmware, config, node, ());
        let stop = AtomicBool::new(false);
        let brought = host.bring_up(PATIENCE, &stop);
        // who fails does not let the other wait
        up.fetch_add(1, Ordering::SeqCst);
        brought.map_err(|e| e.to_string())?;
        let now = || -> Instant { UsbHost::<Node, ()>::now() };
        let until = now() + PATIENCE;
        while up.load(Ordering::SeqCst) < 2 && now() < until {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        // each status that is lost takes a restart of the stick, and what waits is not to be taken back meanwhile
        let rest = if scene.loses_statuses {
            RESTARTS
        } else {
            Duration::from_ns(0)
        };
        host.run(Some(now() + time + rest), &stop);
        host.finish(PATIENCE);
        Ok(host.into_parts().0)
    }
}

impl Subject for UsbSticks {
    fn name(&self) -> String {
        let [a, b] = &self.places;
        format!("AR9170, sticks at {a} and {b}")
    }

    fn cannot(&self, _: Point) -> Option<&'static str> {
        None
    }

    fn addresses(&self) -> [MacAddr; 2] {
        [MacAddr::local(0x9170_0801), MacAddr::local(0x9170_0802)]
    }

    fn run(&mut self, scene: Scene, nodes: [Node; 2], time: Duration) -> Result<[Node; 2], String> {
        let (this, up, [a, b]) = (&*self, AtomicUsize::new(0), nodes);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| this.drive(1, scene, b, time, &up));
            let first = this.drive(0, scene, a, time, &up);
            let second = other.join().map_err(|_| "the second node panicked".to_owned())?;
            Ok([first?, second?])
        })
    }
}
