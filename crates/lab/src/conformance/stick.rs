//! The AR9170 as a host under test: two computers with emulated sticks, in the simulator's air.

use ::ar9170::driver::Config;
use ::ar9170::emulated::Knobs;
use frame::MacAddr;
use radio::Duration;
use sim::World;
use sim::medium::{LossModel, MediumConfig, Position};

use super::{Node, Point, Scene, Subject};
use crate::testbed::ar9170::{computer, node};

/// Driver, USB and stick of each node; the USB behaves as these knobs say.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ar9170 {
    /// Of both sticks.
    pub knobs: Knobs,
}

/// Until the sticks are up, and until all has ended that is open when the time is over.
const REST_NS: u64 = 2_000_000_000;
/// Patience with a stick that is to lose its statuses.
const SHORT: Duration = Duration::from_ms(50);

impl Subject for Ar9170 {
    fn name(&self) -> String {
        "AR9170, emulated sticks".into()
    }

    fn cannot(&self, _: Point) -> Option<&'static str> {
        None
    }

    fn addresses(&self) -> [MacAddr; 2] {
        [MacAddr::local(1), MacAddr::local(2)]
    }

    fn run(&mut self, scene: Scene, nodes: [Node; 2], time: Duration) -> Result<[Node; 2], String> {
        let medium = MediumConfig {
            loss: LossModel::FixedPower(-50.0),
            ..MediumConfig::default()
        };
        let defaults = Config::default();
        let config = Config {
            requests: scene.outstanding.unwrap_or(defaults.requests),
            status_timeout: if scene.loses_statuses {
                SHORT
            } else {
                defaults.status_timeout
            },
            ..defaults
        };
        let knobs = Knobs {
            lost_status: if scene.loses_statuses {
                1.0
            } else {
                self.knobs.lost_status
            },
            ..self.knobs
        };
        let both = self.addresses().into_iter().zip(nodes);
        let plugged = both.map(|(address, node)| computer(address, config, knobs, node));
        let mut computers: Vec<_> = plugged.collect();
        let mut world = World::new(&medium, 1);
        for (address, computer) in self.addresses().into_iter().zip(&mut computers) {
            world.add_node(node(address, Position::default()), computer);
        }
        world.run_until(time.as_ns() + REST_NS);
        drop(world);
        let nodes: Vec<Node> = computers.into_iter().map(|c| c.into_protocol()).collect();
        <[Node; 2]>::try_from(nodes).map_err(|_| "two sticks, two nodes".into())
    }
}
