//! How probable a shared slot is where nothing is certain to arrive.

use super::*;

/// What can follow a state: for each choice the indices of its ends in the next phase, with their shares.
type Ways = Vec<Vec<(usize, Share)>>;

/// All that can happen from one state on, by phase. A state in which a slot is shared has no way on.
struct Graph(Vec<Vec<Option<Ways>>>);

impl Graph {
    fn of<const H: usize, const S: usize>(explorer: &Explorer<H, S>, start: State<H, S>) -> Graph {
        let (mut layers, mut states) = (Vec::new(), vec![start]);
        for (round, phase) in explorer.phases() {
            let mut next: BTreeMap<State<H, S>, usize> = BTreeMap::new();
            let mut ways_on = |state: &State<H, S>| {
                let mut end = |(end, share)| {
                    let fresh = next.len();
                    (*next.entry(end).or_insert(fresh), share)
                };
                let choices = explorer.choices(state, round, phase).into_iter();
                choices.map(|c| c.into_iter().map(&mut end).collect()).collect()
            };
            let shared = |state: &State<H, S>| explorer.shared(state, round, phase).is_some();
            let layer = states.iter().map(|s| (!shared(s)).then(|| ways_on(s))).collect();
            layers.push(layer);
            states = vec![start; next.len()];
            next.into_iter().for_each(|(state, i)| states[i] = state);
        }
        Graph(layers)
    }

    /// The probability that a slot is shared within the rounds if each frame is lost at each host with probability `per`, and
    /// whoever decides what neither loss nor chance decides (who comes and goes, what is captured) wants it to be.
    fn odds(&self, per: f64) -> f64 {
        let mut values = None;
        for layer in self.0.iter().rev() {
            // behind the last phase nothing is shared any more
            let worth = |i: usize| values.as_ref().map_or(0.0, |v: &Vec<f64>| v[i]);
            let mean = |way: &Vec<(usize, Share)>| -> f64 {
                way.iter().map(|(i, share)| share.of(per) * worth(*i)).sum()
            };
            let worst = |ways: &Ways| ways.iter().map(mean).fold(0.0, f64::max);
            let value = |ways: &Option<Ways>| ways.as_ref().map_or(1.0, worst);
            values = Some(layer.iter().map(value).collect());
        }
        values.map_or(0.0, |v| v[0])
    }

    /// The sums of all shares of a choice, least and most.
    fn sums(&self, per: f64) -> (f64, f64) {
        let ways = self.0.iter().flatten().flatten().flatten();
        let sums = ways.map(|way| way.iter().map(|(_, share)| share.of(per)).sum::<f64>());
        sums.fold((1.0, 1.0), |(least, most), sum| (sum.min(least), sum.max(most)))
    }
}

impl Share {
    fn of(&self, per: f64) -> f64 {
        self.chance * per.powi(self.lost.into()) * (1.0 - per).powi(self.heard.into())
    }
}

/// Four rounds of three hosts, of which so many own slots and the others ask.
fn start(owners: usize, failures: u8, leaves: u8) -> (Explorer<3, 3>, State<3, 3>) {
    let explorer = Explorer::new(Losses::Any, 0, 4);
    let budget = Budget {
        failures,
        leaves,
        losses: 0,
    };
    let settled = explorer.settled(owners, 3);
    (explorer, State { budget, ..settled })
}

fn graph(owners: usize, failures: u8, leaves: u8) -> Graph {
    let (explorer, start) = start(owners, failures, leaves);
    Graph::of(&explorer, start)
}

/// Where a host may lose everything, a slot can be shared. The way there is a cell that is not heard at all for
/// [`LISTEN_ROUNDS`](super::super::LISTEN_ROUNDS), and so claimed: three losses for each member that is there all the time, besides those of
/// frames of members that came or left meanwhile. Unanimity alone would ask for one loss for each.
#[test]
fn a_shared_slot_is_as_rare_as_its_losses() {
    // members, failures and leaves among them; members that stay; losses that it takes, in how many ways
    for (owners, failures, leaves, stay, losses, ways) in [
        (1, 0, 0, 1, 4, 3.5),
        (2, 0, 0, 2, 6, 1.0),
        (2, 0, 1, 1, 4, 1.0),
        (2, 1, 0, 1, 3, 1.0),
    ] {
        let graph = graph(owners, failures, leaves);
        let (least, most) = graph.sums(0.3);
        assert!(1.0 - least < 1e-12 && most - 1.0 < 1e-12, "{least} {most}");
        let name = std::format!("{owners} members, {failures} fail, {leaves} leave");
        for per in [0.5, 0.3, 0.1, 0.01] {
            let odds = graph.odds(per);
            std::eprintln!("{name}: {odds:.2e} at {per}");
            assert!(0.0 < odds && odds <= per.powi(3 * stay), "{name}, {per}: {odds}");
        }
        let rare = graph.odds(1e-4) / 1e-4_f64.powi(losses);
        assert!((rare / ways - 1.0).abs() < 1e-3, "{name}: {rare}");
    }
    // who asks hears neither of two owners for three rounds, whatever else it is that happens
    assert!((graph(2, 0, 0).odds(0.2) - 0.2_f64.powi(6)).abs() < 1e-15);
}

/// Three owners who keep their slots share none, whatever is lost.
#[test]
fn owners_do_not_come_to_share() {
    assert_eq!(graph(3, 0, 0).odds(0.5), 0.0);
}

/// Whatever is lost, three hosts are not granted one slot twice by promises: what is shared has been claimed.
#[test]
fn only_what_is_claimed_is_shared() {
    for (owners, failures, leaves, shared) in [
        (1, 0, 0, 132),
        (1, 1, 0, 178),
        (1, 0, 1, 458),
        (2, 0, 0, 64),
        (2, 1, 0, 186),
        (2, 0, 1, 320),
    ] {
        let (explorer, start) = start(owners, failures, leaves);
        let (found, _) = explorer.run(start);
        assert_eq!(
            (found.shared, found.claimed),
            (shared, shared),
            "{owners} {failures} {leaves}"
        );
    }
}
