//! A host in a cell that knows where it goes.

use protocols::mac::sender::Sender;
use protocols::mac::tbmac::TbmacConfig;
use protocols::mac::tbmac::cell::Cell;
use radio::{Duration, Event, Instant, Protocol, Radio};
use sim::Position;

use super::program::Celled;

/// Who is nearer to a border than this share of the radius can be a gateway there.
const NEAR: f64 = 0.5;

/// From here on it is in this cell, near these borders.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Stage {
    at: Instant,
    cell: Cell,
    near: u8,
}

/// A host that tells its MAC a round ahead of each border that it will be in another cell.
#[derive(Clone, Debug)]
pub struct Walking {
    host: Celled,
    /// Its own start, after that of the scenario.
    start: Duration,
    /// Times are those of the scenario until it starts, and from then on those of its host.
    way: Vec<Stage>,
    next: usize,
    ahead: Duration,
}

impl Walking {
    /// From `first` on along `way`, in cells of `radius_m`; all in one cell without. It starts `start` after the scenario.
    pub(super) fn new(
        config: TbmacConfig,
        inner: Sender<64>,
        radius_m: Option<f64>,
        start: Duration,
        first: Position,
        way: &[(u64, Position)],
    ) -> Walking {
        let ahead = config.rounds.length();
        let mut stages = Vec::new();
        if let Some(radius) = radius_m {
            for (at, p) in [(0, first)].iter().chain(way) {
                let cell = Cell::at(p.x, p.y, radius);
                let stage = Stage {
                    at: Instant::from_ns(*at),
                    cell,
                    near: cell.near(p.x, p.y, radius, NEAR * radius),
                };
                let same = |s: &Stage| (s.cell, s.near) == (stage.cell, stage.near);
                if !stages.last().is_some_and(same) {
                    stages.push(stage);
                }
            }
        }
        let here = stages.first().copied();
        let mut host = Celled::new(
            TbmacConfig {
                cell: here.map_or(config.cell, |s| s.cell),
                ..config
            },
            inner,
        );
        host.set_near(here.map_or(0, |s| s.near));
        Walking {
            host,
            start,
            way: stages,
            next: 1,
            ahead,
        }
    }

    /// Its MAC.
    pub fn host(&self) -> &Celled {
        &self.host
    }

    /// It starts at `now` on the clock of its host, which may have been on for long.
    fn begin(&mut self, now: Instant) {
        let begun = now.as_ns().saturating_sub(self.start.as_ns());
        for stage in &mut self.way {
            stage.at = Instant::from_ns(begun.saturating_add(stage.at.as_ns()));
        }
    }

    /// When the next stage is told: that of another cell a round before it begins.
    fn due(&self) -> Option<Instant> {
        let stage = self.way.get(self.next)?;
        let moves = self.way[self.next - 1].cell != stage.cell;
        Some(match moves {
            true => Instant::from_ns(stage.at.as_ns().saturating_sub(self.ahead.as_ns())),
            false => stage.at,
        })
    }
}

impl Protocol for Walking {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        if matches!(event, Event::Start) {
            self.begin(now);
        }
        while self.due().is_some_and(|t| t <= now) {
            let stage = self.way[self.next];
            self.host.set_near(stage.near);
            self.host.go_to(stage.cell);
            self.next += 1;
        }
        self.host.handle(now, event, radio);
    }

    fn deadline(&self) -> Option<Instant> {
        [self.due(), self.host.deadline()].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Program, Scenario};
    use radio::Instant;

    const CELLS: &str = include_str!("../../../../scenarios/cells.toml");

    /// The robot crosses the first border 17.6 s after the scenario has begun, whatever the clock of its host says then.
    #[test]
    fn a_way_counts_from_the_beginning_of_the_scenario() {
        let text = CELLS.replacen("phy = \"b\"", "phy = \"b\"\nstart = \"2s\"", 1);
        let scenario = Scenario::parse(std::path::Path::new("c.toml"), &text, &[]);
        let scenario = scenario.unwrap_or_else(|e| panic!("{e}"));
        let crosses = |clock_s: u64| {
            let Program::Tbmac(mut robot) = scenario.station("hosts.8", 1).unwrap().program else {
                panic!("it is in a cell");
            };
            robot.begin(Instant::from_us(clock_s * 1_000_000));
            let border = robot.way.windows(2).find(|w| w[0].cell != w[1].cell).unwrap();
            border[1].at.as_ns() / 100_000_000
        };
        assert_eq!(
            crosses(2),
            177,
            "as in the simulator, whose clock begins with the scenario"
        );
        assert_eq!(crosses(3602), 36_177);
    }
}
