//! A world that is led step by step from outside: by a program that has a clock of its own, and whose nodes act when
//! it says so.

use crate::adapter::key;
use crate::node::NodeRadio;
use crate::world::World;
use frame::MacAddr;
use radio::{Instant, Protocol, Radio};

impl<P: Protocol> World<P> {
    /// True time of the next event, ns: until then nothing happens by itself. `None`: never again.
    pub fn next_ns(&mut self) -> Option<u64> {
        self.core.queue.next_time()
    }

    /// Lets the protocol of a node act now, as it does when it takes in an event, and reads its deadline again. The
    /// time that it is told is that of the node's clock.
    pub fn act<T>(&mut self, node: u32, action: impl FnOnce(&mut P, Instant, &mut dyn Radio) -> T) -> T {
        let now = self.core.nodes[node as usize].clock.show(self.core.now);
        let radio = &mut NodeRadio {
            core: &mut self.core,
            node,
        };
        let protocol = &mut self.protocols[node as usize];
        let value = action(protocol, Instant::from_ns(now), radio);
        self.rearm(node, false);
        value
    }

    /// From now on an adapter hands up frames that it has received before, too: whoever is above tells them apart.
    pub fn show_repetitions(&mut self, node: u32, adapter: u8) {
        let index = self.core.nodes[node as usize].adapters.0 + u32::from(adapter);
        self.core.adapters[index as usize].repetitions = true;
    }

    /// From now on an adapter answers to this address, too: it acknowledges what is sent to it, and ACKs to it are
    /// its own. False if it did before.
    pub fn add_address(&mut self, node: u32, adapter: u8, address: MacAddr) -> bool {
        let index = self.core.nodes[node as usize].adapters.0 + u32::from(adapter);
        let a = &mut self.core.adapters[index as usize];
        let new = !a.answers_to(key(address));
        if new {
            a.aliases.push(key(address));
        }
        new
    }

    /// An adapter does not answer to this further address any more. False if it did not before. Its own address
    /// stays.
    pub fn remove_address(&mut self, node: u32, adapter: u8, address: MacAddr) -> bool {
        let index = self.core.nodes[node as usize].adapters.0 + u32::from(adapter);
        let aliases = &mut self.core.adapters[index as usize].aliases;
        let before = aliases.len();
        aliases.retain(|a| *a != key(address));
        aliases.len() < before
    }
}

#[cfg(test)]
mod tests {
    use crate::adapter::AdapterConfig;
    use crate::host::{InterruptConfig, Other};
    use crate::medium::MediumConfig;
    use crate::{LinkLoss, NodeConfig, Position, Process, World};
    use frame::{MacAddr, Phy, Rate};
    use radio::{AdapterId, Attribute, Event, Instant, Outcome, Protocol, Radio, TxHow};

    /// Keeps what it is told.
    #[derive(Default)]
    struct Puppet {
        outcomes: Vec<(u64, Outcome)>,
        heard: u32,
        deadline: Option<Instant>,
    }

    impl Protocol for Puppet {
        fn handle(&mut self, now: Instant, event: Event<'_>, _: &mut dyn Radio) {
            match event {
                Event::Confirm(c) => self.outcomes.push((now.as_ns(), c.outcome)),
                Event::Indication(_) => self.heard += 1,
                Event::Timer => self.deadline = None,
                _ => {}
            }
        }

        fn deadline(&self) -> Option<Instant> {
            self.deadline
        }
    }

    fn two() -> World<Puppet> {
        let mut world = World::new(&MediumConfig::default(), 1);
        for i in 0..2u32 {
            let adapter = AdapterConfig::station(MacAddr::local(i), Phy::A, 5180, false);
            world.add_node(
                NodeConfig::ideal(Position::new(f64::from(i), 0.0), adapter),
                Puppet::default(),
            );
        }
        world
    }

    fn send(world: &mut World<Puppet>, to: MacAddr, from: MacAddr, tries: u8) {
        send_as(world, to, from, tries, (0, false));
    }

    /// With this sequence number and retry bit.
    fn send_as(
        world: &mut World<Puppet>,
        to: MacAddr,
        from: MacAddr,
        tries: u8,
        (number, retry): (u8, bool),
    ) {
        let mut frame = vec![0x08, u8::from(retry) << 3, 0, 0];
        for address in [to, from, MacAddr::ZERO] {
            frame.extend(address.0);
        }
        frame.extend([number << 4, 0]);
        frame.extend([0; 58]);
        world.act(0, |_, _, radio| {
            let token = radio.token();
            radio.request(token, &frame, &TxHow::multi_shot(Rate::OFDM_54, tries));
        });
    }

    #[test]
    fn a_world_led_from_outside_is_as_fast_as_the_air() {
        let mut world = two();
        assert_eq!(world.next_ns(), Some(0), "both nodes start");
        world.run_until(1_000_000);
        assert_eq!(world.next_ns(), None);
        send(&mut world, MacAddr::local(1), MacAddr::local(0), 1);
        assert_eq!(world.next_ns(), Some(1_000_000), "an idle medium is used at once");
        while let Some(next) = world.next_ns() {
            assert!(next < 2_000_000);
            world.run_until(next);
        }
        // 36 us of data, SIFS, 28 us of ACK, and twice the way of a metre
        let (at, outcome) = world.protocol(0).outcomes[0];
        assert_eq!(outcome, Outcome::Acked);
        assert!((1_080_000..=1_080_010).contains(&at), "{at}");
    }

    #[test]
    fn a_deadline_set_from_outside_comes() {
        let mut world = two();
        world.run_until(10);
        world.act(1, |p, now, _| {
            p.deadline = Some(now.after(radio::Duration::from_us(3)))
        });
        assert_eq!(world.next_ns(), Some(3_010));
        world.run_until(3_010);
        assert_eq!(world.protocol(1).deadline, None);
    }

    /// Who waited for a moment that is far away and then for a near one is not held up by what comes between.
    #[test]
    fn a_deadline_that_is_moved_forward_waits_for_what_came_before_it_alone() {
        let other = Other {
            every_ns: 1_000_000,
            random: false,
            from_ns: 10_000,
            to_ns: 10_000,
        };
        let interrupts = InterruptConfig {
            others: vec![other],
            ..InterruptConfig::default()
        };
        let adapter = AdapterConfig::station(MacAddr::local(0), Phy::A, 5180, false);
        let mut world = World::new(&MediumConfig::default(), 1);
        let node = NodeConfig {
            interrupts: Some(interrupts),
            ..NodeConfig::ideal(Position::default(), adapter)
        };
        world.add_node(node, Puppet::default());
        for wait_us in [1_000_000, 3] {
            world.run_until(10);
            world.act(0, |p, now, _| {
                p.deadline = Some(now.after(radio::Duration::from_us(wait_us)))
            });
        }
        world.run_until(3_010 + 10_000);
        assert_eq!(world.protocol(0).deadline, None);
        // there are not two of it
        world.act(0, |p, now, _| {
            p.deadline = Some(now.after(radio::Duration::from_us(5_000)))
        });
        world.run_until(1_100_000_000);
        assert_eq!((world.protocol(0).deadline, world.next_ns()), (None, None));
    }

    #[test]
    fn further_addresses_are_acknowledged_on_both_sides() {
        let (mine, theirs) = (MacAddr::local(77), MacAddr::local(78));
        let mut world = two();
        send(&mut world, theirs, mine, 1);
        world.run_until(10_000_000);
        assert_eq!(
            world.protocol(0).outcomes[0].1,
            Outcome::NotAcked,
            "nobody has it"
        );
        assert!(world.add_address(1, 0, theirs) && !world.add_address(1, 0, theirs));
        send(&mut world, theirs, mine, 1);
        world.run_until(20_000_000);
        assert_eq!(
            world.protocol(0).outcomes[1].1,
            Outcome::NotAcked,
            "the ACK is to a stranger"
        );
        assert_eq!(world.protocol(1).heard, 1);
        world.add_address(0, 0, mine);
        send(&mut world, theirs, mine, 1);
        world.run_until(30_000_000);
        assert_eq!(world.protocol(0).outcomes[2].1, Outcome::Acked);
        assert!(world.remove_address(1, 0, theirs) && !world.remove_address(1, 0, theirs));
        send(&mut world, theirs, mine, 1);
        world.run_until(40_000_000);
        assert_eq!(world.protocol(0).outcomes[3].1, Outcome::NotAcked);
    }

    /// The receiver learns within SIFS that nobody takes the frame.
    #[test]
    fn an_ack_that_is_due_can_be_withdrawn() {
        let mut world = two();
        send(&mut world, MacAddr::local(1), MacAddr::local(0), 1);
        while world.protocol(1).heard == 0 {
            let next = world.next_ns().unwrap();
            world.run_until(next);
        }
        world.act(1, |_, _, radio| {
            for on in [false, true] {
                let token = radio.token();
                radio.set(token, AdapterId::FIRST, Attribute::AckGeneration(on));
            }
        });
        world.run_until(10_000_000);
        assert_eq!(world.protocol(0).outcomes[0].1, Outcome::NotAcked);
        send(&mut world, MacAddr::local(1), MacAddr::local(0), 1);
        world.run_until(20_000_000);
        assert_eq!(world.protocol(0).outcomes[1].1, Outcome::Acked);
    }

    /// All ACKs are lost: the receiver hears the same frame seven times.
    #[test]
    fn repetitions_are_shown_on_request() {
        for (show, heard) in [(false, 1), (true, 7)] {
            let mut world = two();
            if show {
                world.show_repetitions(1, 0);
            }
            world.set_link_loss(
                1,
                0,
                LinkLoss {
                    response: Some(Process::Fixed(1.0)),
                    ..LinkLoss::default()
                },
            );
            send(&mut world, MacAddr::local(1), MacAddr::local(0), 7);
            world.run_until(100_000_000);
            assert_eq!(world.protocol(1).heard, heard);
            assert_eq!(world.protocol(0).outcomes[0].1, Outcome::NotAcked);
        }
    }

    /// A host that repeats a frame as a new request says so with the retry bit, and keeps the number.
    #[test]
    fn a_repetition_by_the_host_is_told_from_a_new_frame() {
        for (number, retry, heard) in [(0, true, 1), (0, false, 2), (1, true, 2)] {
            let mut world = two();
            send(&mut world, MacAddr::local(1), MacAddr::local(0), 1);
            world.run_until(10_000_000);
            send_as(
                &mut world,
                MacAddr::local(1),
                MacAddr::local(0),
                1,
                (number, retry),
            );
            world.run_until(20_000_000);
            assert_eq!(world.protocol(1).heard, heard, "{number} {retry}");
            assert_eq!(world.protocol(0).outcomes[1].1, Outcome::Acked);
        }
    }
}
