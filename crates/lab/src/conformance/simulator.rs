//! The simulator as a host under test: two nodes in one place.

use frame::{MacAddr, Phy};
use radio::{Duration, Protocol};
use sim::adapter::AdapterConfig;
use sim::fault::HostFaults;
use sim::medium::{LossModel, MediumConfig, Position};
use sim::{NodeConfig, World};

use super::{Node, Point, Scene, Subject};

/// 802.11a on channel 36, with the host latencies of `profile`, if there is one.
#[derive(Clone, Default)]
pub struct Simulator {
    /// Of the hosts; `None`: they take no time.
    pub profile: Option<std::rc::Rc<sim::host::HostModel>>,
}

/// Until all has ended that is open when the time is over: a few times what the slowest host has patience for.
const REST_NS: u64 = 1_000_000_000;

impl Subject for Simulator {
    fn name(&self) -> String {
        match self.profile {
            Some(_) => "simulator, hosts with latencies".into(),
            None => "simulator, ideal hosts".into(),
        }
    }

    fn cannot(&self, _: Point) -> Option<&'static str> {
        None
    }

    fn addresses(&self) -> [MacAddr; 2] {
        [MacAddr::local(1), MacAddr::local(2)]
    }

    fn run(&mut self, scene: Scene, nodes: [Node; 2], time: Duration) -> Result<[Node; 2], String> {
        let idle = || Node::new(super::Script::default());
        Ok(self.world(scene, nodes, idle, time))
    }
}

impl Simulator {
    /// Runs any two protocols; `idle` makes one to be put in the place of those that are given back.
    pub(super) fn world<P: Protocol>(
        &self,
        scene: Scene,
        nodes: [P; 2],
        idle: impl Fn() -> P,
        time: Duration,
    ) -> [P; 2] {
        let medium = MediumConfig {
            loss: LossModel::FixedPower(-50.0),
            ..MediumConfig::default()
        };
        let mut world = World::new(&medium, 1);
        for (address, node) in self.addresses().into_iter().zip(nodes) {
            let mut adapter = AdapterConfig::station(address, Phy::A, 5180, true);
            adapter.queue_limit = scene.outstanding.unwrap_or(adapter.queue_limit);
            let config = NodeConfig {
                host: self.profile.clone(),
                faults: HostFaults {
                    lost_confirm: if scene.loses_statuses { 1.0 } else { 0.0 },
                    ..HostFaults::default()
                },
                ..NodeConfig::ideal(Position::default(), adapter)
            };
            world.add_node(config, node);
        }
        world.run_until(time.as_ns() + REST_NS);
        let mut take = |node| std::mem::replace(world.protocol_mut(node), idle());
        [take(0), take(1)]
    }
}
