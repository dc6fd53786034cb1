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
    way: Vec<Stage>,
    next: usize,
    ahead: Duration,
}

impl Walking {
    /// From `first` on along `way`, in cells of `radius_m`; all in one cell without.
    pub(super) fn new(
        config: TbmacConfig,
        inner: Sender<64>,
        radius_m: Option<f64>,
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
        let start = stages.first().copied();
        let mut host = Celled::new(
            TbmacConfig {
                cell: start.map_or(config.cell, |s| s.cell),
                ..config
            },
            inner,
        );
        host.set_near(start.map_or(0, |s| s.near));
        Walking {
            host,
            way: stages,
            next: 1,
            ahead,
        }
    }

    /// Its MAC.
    pub fn host(&self) -> &Celled {
        &self.host
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
