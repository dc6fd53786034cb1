//! The timeline: for each node the rows "air", "adapter", "host" (planes t1 to t9) and "protocol", on true time.

use std::collections::BTreeMap;

use frame::MacAddr;
use frame::mac::FrameControl;
use radio::{Confirm, Msdu, Plane};
use sim::clock::Clock;
use sim::trace::{OnAir, ReceptionEnd, Transmission};

use super::{Limits, NodeAbout, RecordError, outcome_word};
use crate::report::folder::{Folder, FolderError, TIMELINE};
use crate::report::timeline::{NodeId, Note, RowId, Timeline};

/// What happens from one plane to the next, as in SDMAC (Cena et al. 2018), Table II.
const PARTS: [(Plane, Plane, &str); 7] = [
    (Plane::T1, Plane::T2, "t1-t2 API"),
    (Plane::T2, Plane::T3, "t2-t3 driver, independent"),
    (Plane::T3, Plane::T4, "t3-t4 driver, dependent"),
    (Plane::T5, Plane::T6, "t5-t6 interrupt"),
    (Plane::T6, Plane::T7, "t6-t7 driver, dependent"),
    (Plane::T7, Plane::T8, "t7-t8 driver, independent"),
    (Plane::T8, Plane::T9, "t8-t9 API"),
];

#[derive(Clone, Copy)]
struct Rows {
    air: RowId,
    adapter: RowId,
    host: RowId,
    protocol: RowId,
}

pub(super) struct Planes {
    timeline: Timeline,
    rows: Vec<Rows>,
    clocks: Vec<Clock>,
    /// Node of each adapter.
    node_of: Vec<u32>,
    names: BTreeMap<MacAddr, String>,
    noise: Option<(NodeId, RowId)>,
    until_ns: u64,
    left_out: u64,
}

impl Planes {
    pub(super) fn new(nodes: &[NodeAbout], limits: Limits) -> Planes {
        let mut timeline = Timeline::new(limits.timeline_items);
        let mut rows = Vec::with_capacity(nodes.len());
        let mut names = BTreeMap::new();
        let mut node_of = Vec::new();
        for (n, about) in nodes.iter().enumerate() {
            let node = timeline.node(&about.name);
            rows.push(Rows {
                air: timeline.row(node, "air"),
                adapter: timeline.row(node, "adapter"),
                host: timeline.row(node, "host planes"),
                protocol: timeline.row(node, "protocol"),
            });
            names.extend(about.addresses.iter().map(|a| (*a, about.name.clone())));
            node_of.extend(about.addresses.iter().map(|_| n as u32));
        }
        Planes {
            timeline,
            rows,
            clocks: nodes.iter().map(|n| n.clock).collect(),
            node_of,
            names,
            noise: None,
            until_ns: limits.timeline_ns,
            left_out: 0,
        }
    }

    /// The rows of a node, while there is something to note.
    fn rows(&mut self, at_ns: u64, node: u32) -> Option<Rows> {
        if at_ns >= self.until_ns {
            self.left_out += 1;
            return None;
        }
        self.rows.get(node as usize).copied()
    }

    pub(super) fn transmission(&mut self, t: &Transmission<'_>) {
        if t.what == OnAir::Noise {
            if t.start_ns < self.until_ns {
                let (_, row) = *self.noise.get_or_insert_with(|| {
                    let node = self.timeline.node("noise");
                    (node, self.timeline.row(node, "air"))
                });
                self.timeline.slice(row, t.start_ns, t.end_ns, "noise", &[]);
            }
            return;
        }
        let Some(rows) = self.rows(t.start_ns, t.node) else {
            return;
        };
        let kind = match t.what {
            OnAir::Ack => Some("ACK"),
            OnAir::Cts => Some("CTS"),
            OnAir::Rts => Some("RTS"),
            OnAir::Frame | OnAir::Noise => kind(t.frame),
        };
        let rate = t.rate.to_string();
        let to = t
            .frame
            .get(4..10)
            .and_then(|a| Some(MacAddr(a.try_into().ok()?)))
            .unwrap_or(MacAddr::ZERO);
        let to = self.names.get(&to).cloned().unwrap_or_else(|| to.to_string());
        let notes = [
            ("to", Note::Text(&to)),
            ("rate", Note::Text(&rate)),
            ("octets", Note::Unsigned(t.octets.into())),
            ("attempt", Note::Unsigned(t.attempt.into())),
        ];
        self.timeline
            .slice(rows.air, t.start_ns, t.end_ns, kind.unwrap_or("frame"), &notes);
    }

    pub(super) fn reception(&mut self, r: &ReceptionEnd) {
        if r.ok {
            return; // the sender's slice shows it
        }
        let (Some(&node), from) = (
            self.node_of.get(r.adapter as usize),
            self.node_of.get(r.from as usize),
        ) else {
            return;
        };
        let from = u64::from(from.copied().unwrap_or(u32::MAX));
        if let Some(rows) = self.rows(r.at_ns, node) {
            let notes = [
                ("from node", Note::Unsigned(from)),
                ("dBm", Note::Signed(r.signal_dbm.into())),
            ];
            self.timeline
                .instant(rows.adapter, r.at_ns, "received with errors", &notes);
        }
    }

    pub(super) fn submitted(&mut self, now_ns: u64, node: u32, msdu: &Msdu<'_>) {
        if let Some(rows) = self.rows(now_ns, node) {
            let octets = Note::Unsigned(msdu.payload.len() as u64);
            self.timeline
                .instant(rows.protocol, now_ns, "submit", &[("octets", octets)]);
        }
    }

    pub(super) fn delivered(&mut self, now_ns: u64, node: u32, msdu: &Msdu<'_>) {
        if let Some(rows) = self.rows(now_ns, node) {
            let octets = Note::Unsigned(msdu.payload.len() as u64);
            self.timeline
                .instant(rows.protocol, now_ns, "deliver", &[("octets", octets)]);
        }
    }

    pub(super) fn confirmed(&mut self, now_ns: u64, node: u32, c: &Confirm, exchange_ns: Option<(u64, u64)>) {
        let Some(rows) = self.rows(now_ns, node) else {
            return;
        };
        let word = outcome_word(c.outcome);
        let clock = self.clocks[node as usize];
        let at = |plane| c.stamps.get_host(plane).map(|t| clock.when(t.as_ns()));
        let notes = [
            ("token", Note::Unsigned(c.token.0)),
            ("attempts", Note::Unsigned(c.attempts.into())),
        ];
        let mut chain = Vec::with_capacity(2);
        if let (Some(t1), Some(t9)) = (at(Plane::T1), at(Plane::T9))
            && t1 <= t9
        {
            chain.extend(self.timeline.slice(rows.protocol, t1, t9, word, &notes));
        } else {
            self.timeline.instant(rows.protocol, now_ns, word, &notes);
        }
        if let Some((begin, end)) = exchange_ns.filter(|(begin, end)| begin <= end) {
            chain.extend(self.timeline.slice(rows.adapter, begin, end, word, &notes));
        }
        self.timeline.flow(&chain);
        for (from, to, name) in PARTS {
            if let (Some(begin), Some(end)) = (at(from), at(to))
                && begin < end
            {
                self.timeline.slice(rows.host, begin, end, name, &[]);
            }
        }
    }

    /// Items left out.
    pub(super) fn finish(self, folder: &Folder) -> Result<u64, RecordError> {
        let file = folder.file(TIMELINE)?;
        let written = self.timeline.write(file);
        let file = written.map_err(|source| FolderError::io(folder.path().join(TIMELINE), source))?;
        folder.commit(file)?;
        Ok(self.left_out + self.timeline.left_out())
    }
}

fn kind(frame: &[u8]) -> Option<&'static str> {
    FrameControl(*frame.first_chunk()?).kind().name()
}
