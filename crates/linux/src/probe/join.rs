//! Which frame a hit of a probe is about.
//!
//! A frame gets the address of its socket buffer at t2: there the thread that sends it is in the kernel, between two times
//! that it has noted. From then on the address names it, until the next frame that begins has the same. What has no address
//! is found by thread (the return of a call) or by CPU (the last interrupt before the status). Such stamps are only
//! kept if they fit between those that are sure.

use radio::{Instant, Plane, Stamps};

use super::places::Key;

/// A probe was hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hit {
    pub plane: Plane,
    pub key: Key,
    pub cpu: usize,
    pub thread: u32,
    pub at: Instant,
    /// Address of the socket buffer; 0 where it is not known.
    pub buffer: u64,
}

/// One frame on its way.
#[derive(Debug, Clone, Copy)]
struct Track {
    /// When it was handed to the kernel, from before until after the call.
    from: Instant,
    to: Instant,
    /// 0: not known yet.
    buffer: u64,
    /// Thread of t3, and calls of the same function within that of this frame.
    inside: Option<(u32, u32)>,
    stamps: Stamps,
    /// Planes that were found without an address, as bits.
    unsure: u16,
}

const BLANK: Track = Track {
    from: Instant::ZERO,
    to: Instant::MAX,
    buffer: 0,
    inside: None,
    stamps: Stamps::NONE,
    unsure: 0,
};

/// The last hits on one CPU.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    interrupt: Option<Instant>,
    /// Of the tasklet, with the interrupt before it.
    tasklet: Option<(Instant, Option<Instant>)>,
}

/// All frames on their way.
#[derive(Debug)]
pub(super) struct Tracks {
    tracks: Vec<Track>,
    /// Indices of those in use, the oldest first.
    used: Vec<usize>,
    last: Vec<Last>,
}

impl Tracks {
    /// Room for frames numbered from 0 up to `room`, on CPUs numbered up to `cpus`.
    pub fn new(room: usize, cpus: usize) -> Tracks {
        Tracks {
            tracks: vec![BLANK; room],
            used: Vec::with_capacity(room),
            last: vec![Last::default(); cpus],
        }
    }

    /// A frame is about to be handed to the kernel.
    pub fn begin(&mut self, index: usize, at: Instant) {
        self.used.retain(|i| *i != index);
        self.used.push(index);
        self.tracks[index] = Track { from: at, ..BLANK };
    }

    /// The kernel has it.
    pub fn handed(&mut self, index: usize, at: Instant) {
        self.tracks[index].to = at;
    }

    /// The planes of a frame that has ended; it is forgotten.
    pub fn end(&mut self, index: usize) -> Stamps {
        self.used.retain(|i| *i != index);
        let track = std::mem::replace(&mut self.tracks[index], BLANK);
        fitting(&track)
    }

    /// Takes in a hit. `thread` is the one that sends.
    pub fn hit(&mut self, hit: &Hit, thread: u32) {
        match hit.key {
            Key::Entry(_) => {
                let ours = |t: &Track| t.buffer == 0 && (t.from..=t.to).contains(&hit.at);
                let (all, tracks) = (&self.used, &mut self.tracks);
                let index = all.iter().copied().find(|i| ours(&tracks[*i]));
                let Some(index) = index.filter(|_| hit.thread == thread) else {
                    // The address belongs to somebody else's frame now.
                    return self.forget(hit.buffer);
                };
                self.forget(hit.buffer);
                let track = &mut self.tracks[index];
                track.buffer = hit.buffer;
                track.stamps.host(hit.plane, hit.at);
            }
            Key::Buffer(_) => {
                let index = self.of(hit.buffer);
                if hit.plane == Plane::T3 {
                    self.nest(hit.thread);
                    if let Some(index) = index {
                        self.tracks[index].inside = Some((hit.thread, 0));
                    }
                }
                let Some(index) = index else { return };
                let last = self.last.get(hit.cpu).copied().unwrap_or_default();
                let track = &mut self.tracks[index];
                if track.stamps.get(hit.plane).is_some() {
                    return; // The first time counts.
                }
                track.stamps.host(hit.plane, hit.at);
                if hit.plane == Plane::T7
                    && let Some((tasklet, interrupt)) = last.tasklet
                {
                    track.find(Plane::T6, Some(tasklet));
                    track.find(Plane::T5, interrupt);
                }
            }
            Key::Return => {
                let inside = |t: &Track| t.inside.is_some_and(|(thread, _)| thread == hit.thread);
                let index = self.used.iter().copied().rfind(|i| inside(&self.tracks[*i]));
                let Some(track) = index.map(|i| &mut self.tracks[i]) else {
                    return;
                };
                match &mut track.inside {
                    Some((_, within)) if *within > 0 => *within -= 1,
                    _ => {
                        track.inside = None;
                        track.find(hit.plane, Some(hit.at));
                    }
                }
            }
            Key::Last => {
                let Some(last) = self.last.get_mut(hit.cpu) else {
                    return;
                };
                match hit.plane {
                    Plane::T5 => last.interrupt = Some(hit.at),
                    _ => last.tasklet = Some((hit.at, last.interrupt)),
                }
            }
        }
    }

    fn of(&self, buffer: u64) -> Option<usize> {
        let known = |i: &usize| buffer != 0 && self.tracks[*i].buffer == buffer;
        self.used.iter().copied().find(known)
    }

    fn forget(&mut self, buffer: u64) {
        if let Some(index) = self.of(buffer) {
            self.tracks[index].buffer = u64::MAX; // No address, and not to be found again.
        }
    }

    /// The function of t3 is called on this thread, perhaps on top of a call for one of our frames.
    fn nest(&mut self, thread: u32) {
        for index in &self.used {
            if let Some((inside, within)) = &mut self.tracks[*index].inside
                && *inside == thread
            {
                *within += 1;
            }
        }
    }
}

impl Track {
    /// Notes a stamp that was found without an address.
    fn find(&mut self, plane: Plane, at: Option<Instant>) {
        if let (None, Some(at)) = (self.stamps.get(plane), at) {
            self.stamps.host(plane, at);
            self.unsure |= 1 << plane.index();
        }
    }
}

/// The stamps of a track, without those found without an address that are out of the order of the others.
fn fitting(track: &Track) -> Stamps {
    let sure = |p: &Plane| track.unsure & 1 << p.index() == 0;
    let mut stamps = Stamps::NONE;
    for plane in Plane::ALL {
        let Some(at) = track.stamps.get_host(plane) else {
            continue;
        };
        let all = Plane::ALL.into_iter().filter(sure);
        let fits = all
            .filter_map(|p| Some((p, track.stamps.get_host(p)?)))
            .all(|(p, t)| if p < plane { t <= at } else { t >= at });
        if sure(&plane) || fits {
            stamps.host(plane, at);
        }
    }
    stamps
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: u32 = 7;

    fn hit(plane: Plane, key: Key, us: u64, buffer: u64) -> Hit {
        Hit {
            plane,
            key,
            cpu: 0,
            thread: ME,
            at: Instant::from_us(us),
            buffer,
        }
    }

    fn feed(tracks: &mut Tracks, hits: &[Hit]) {
        for hit in hits {
            tracks.hit(hit, ME);
        }
    }

    fn us(stamps: &Stamps) -> Vec<(usize, u64)> {
        let one = |p: Plane| Some((p.index() + 1, stamps.get_host(p)?.as_ns() / 1_000));
        Plane::ALL.into_iter().filter_map(one).collect()
    }

    /// A frame at `us`, with a medium that answers 100 us later.
    fn way(us: u64, buffer: u64) -> [Hit; 7] {
        use Key::*;
        [
            hit(Plane::T2, Entry(0), us + 1, buffer),
            hit(Plane::T3, Buffer(2), us + 2, buffer),
            hit(Plane::T4, Return, us + 3, 0),
            hit(Plane::T5, Buffer(1), us + 104, buffer),
            hit(Plane::T6, Last, us + 105, 0),
            hit(Plane::T7, Buffer(1), us + 106, buffer),
            hit(Plane::T8, Buffer(1), us + 107, buffer),
        ]
    }

    #[test]
    fn frames_of_one_address_after_the_other_have_their_own_stamps() {
        let mut tracks = Tracks::new(4, 1);
        for (index, from) in [(0, 1_000), (3, 2_000), (0, 3_000)] {
            tracks.begin(index, Instant::from_us(from));
            feed(&mut tracks, &way(from, 0xa0));
            tracks.handed(index, Instant::from_us(from + 4));
            let found: Vec<u64> = us(&tracks.end(index)).iter().map(|(_, t)| t - from).collect();
            assert_eq!(found, [1, 2, 3, 104, 105, 106, 107]);
        }
    }

    #[test]
    fn frames_between_each_other_are_told_apart() {
        let mut tracks = Tracks::new(4, 1);
        tracks.begin(0, Instant::from_us(1_000));
        tracks.handed(0, Instant::from_us(1_004));
        tracks.begin(1, Instant::from_us(1_010));
        tracks.handed(1, Instant::from_us(1_014));
        let mut hits = [way(1_000, 0xa0), way(1_010, 0xb0)].concat();
        hits.sort_by_key(|h| h.at);
        feed(&mut tracks, &hits);
        let first = tracks.end(0);
        assert_eq!(first.count(), 7, "{first:?}");
        assert_eq!(first.get_host(Plane::T2), Some(Instant::from_us(1_001)));
        assert_eq!(tracks.end(1).get_host(Plane::T8), Some(Instant::from_us(1_117)));
    }

    #[test]
    fn other_threads_and_times_and_addresses_are_not_ours() {
        let mut tracks = Tracks::new(1, 1);
        tracks.begin(0, Instant::from_us(1_000));
        tracks.handed(0, Instant::from_us(1_004));
        feed(&mut tracks, &way(500, 0xa0));
        feed(&mut tracks, &way(1_200, 0xb0));
        for hit in way(1_000, 0xc0) {
            tracks.hit(&hit, ME + 1);
        }
        assert_eq!(tracks.end(0).count(), 0);
        // Another's frame gets the address of ours: what follows is about that one.
        tracks.begin(0, Instant::from_us(2_000));
        tracks.handed(0, Instant::from_us(2_004));
        feed(&mut tracks, &way(2_000, 0xa0)[..3]);
        feed(&mut tracks, &way(2_050, 0xa0));
        assert_eq!(us(&tracks.end(0)), [(2, 2_001), (3, 2_002), (4, 2_003)]);
    }

    #[test]
    fn a_call_on_top_of_ours_returns_first() {
        let mut tracks = Tracks::new(1, 1);
        tracks.begin(0, Instant::from_us(1_000));
        let mut hits = way(1_000, 0xa0).to_vec();
        // A beacon in an interrupt, between our t3 and t4.
        hits.insert(2, hit(Plane::T3, Key::Buffer(2), 1_002, 0xe0));
        hits.insert(3, hit(Plane::T4, Key::Return, 1_002, 0));
        feed(&mut tracks, &hits);
        assert_eq!(us(&tracks.end(0))[2], (4, 1_003));
    }

    #[test]
    fn what_contradicts_is_left_out() {
        // With hwsim's own medium the frame has ended before the function returns.
        let mut tracks = Tracks::new(1, 1);
        tracks.begin(0, Instant::from_us(1_000));
        let mut hits = way(1_000, 0xa0);
        hits[2].at = Instant::from_us(1_200);
        hits.sort_by_key(|h| h.at);
        feed(&mut tracks, &hits);
        let planes: Vec<usize> = us(&tracks.end(0)).iter().map(|(p, _)| *p).collect();
        assert_eq!(planes, [2, 3, 5, 6, 7, 8]);
        // The last interrupt on this CPU was before the frame.
        tracks.begin(0, Instant::from_us(2_000));
        let mut hits = way(2_000, 0xa0);
        hits[3] = hit(Plane::T5, Key::Last, 1_500, 0);
        feed(&mut tracks, &hits);
        let planes: Vec<usize> = us(&tracks.end(0)).iter().map(|(p, _)| *p).collect();
        assert_eq!(planes, [2, 3, 4, 6, 7, 8]);
    }
}
