//! A trace of what each node did and when, in the protobuf format of Perfetto: drop the file on ui.perfetto.dev.
//!
//! Each node is a process, each of its rows ("air", "adapter", "host planes", "protocol") a track of it, in the
//! order in which they were made. Everything is kept in memory up to a limit, because a slice may become known
//! later than one that began after it; [`Timeline::write`] puts all in order of time.

mod field;
mod protobuf;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use field::*;
use protobuf::Message;

/// A node of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeId(usize);

/// A row of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowId(usize);

/// A slice, to tie others to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceId(usize);

/// A value shown when the slice is selected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Note<'a> {
    /// A count.
    Unsigned(u64),
    /// A number that may be negative.
    Signed(i64),
    /// A real number.
    Real(f64),
    /// Yes or no.
    Flag(bool),
    /// A word; each different one is stored once.
    Text(&'a str),
}

#[derive(Clone, Copy)]
enum Stored {
    Unsigned(u64),
    Signed(i64),
    Real(f64),
    Flag(bool),
    Text(usize),
}

struct Row {
    node: usize,
    name: usize,
}

struct Item {
    row: usize,
    name: usize,
    begin_ns: u64,
    /// `None` for an instant.
    end_ns: Option<u64>,
    /// Range in `notes`.
    notes: (usize, usize),
}

/// A trace in the making.
pub struct Timeline {
    limit: usize,
    left_out: u64,
    nodes: Vec<String>,
    rows: Vec<Row>,
    items: Vec<Item>,
    notes: Vec<(usize, Stored)>,
    /// Item and flow, in this order.
    flows: Vec<(usize, u64)>,
    words: Vec<String>,
    word_of: BTreeMap<String, usize>,
}

impl Timeline {
    /// An empty trace that keeps at most `limit` slices and instants, the first ones; about 100 octets each.
    pub fn new(limit: usize) -> Self {
        Timeline {
            limit,
            left_out: 0,
            nodes: Vec::new(),
            rows: Vec::new(),
            items: Vec::new(),
            notes: Vec::new(),
            flows: Vec::new(),
            words: Vec::new(),
            word_of: BTreeMap::new(),
        }
    }

    /// Adds a node.
    pub fn node(&mut self, name: &str) -> NodeId {
        self.nodes.push(name.into());
        NodeId(self.nodes.len() - 1)
    }

    /// Adds a row below the rows that the node has.
    ///
    /// # Panics
    /// When the node is of another trace.
    pub fn row(&mut self, node: NodeId, name: &str) -> RowId {
        assert!(node.0 < self.nodes.len(), "a node of another trace");
        let name = self.word(name);
        self.rows.push(Row { node: node.0, name });
        RowId(self.rows.len() - 1)
    }

    /// Adds a slice from `begin_ns` to `end_ns`. Slices of a row may overlap in any way. `None` when the trace is
    /// full.
    ///
    /// # Panics
    /// When it ends before it begins, or the row is of another trace.
    pub fn slice(
        &mut self,
        row: RowId,
        begin_ns: u64,
        end_ns: u64,
        name: &str,
        notes: &[(&str, Note<'_>)],
    ) -> Option<SliceId> {
        assert!(
            begin_ns <= end_ns,
            "slice {name:?} ends at {end_ns}, before it begins at {begin_ns}"
        );
        self.item(row, begin_ns, Some(end_ns), name, notes)
    }

    /// Adds an instant.
    ///
    /// # Panics
    /// When the row is of another trace.
    pub fn instant(
        &mut self,
        row: RowId,
        at_ns: u64,
        name: &str,
        notes: &[(&str, Note<'_>)],
    ) -> Option<SliceId> {
        self.item(row, at_ns, None, name, notes)
    }

    /// Draws an arrow through these slices, in the order of their begin: a frame and its ACK, a request and its
    /// confirm.
    ///
    /// # Panics
    /// When a slice is of another trace.
    pub fn flow(&mut self, slices: &[SliceId]) {
        let flow = self.flows.last().map_or(1, |(_, flow)| flow + 1);
        for slice in slices {
            assert!(slice.0 < self.items.len(), "a slice of another trace");
            self.flows.push((slice.0, flow));
        }
    }

    /// Slices and instants that came after the trace was full.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    fn item(
        &mut self,
        row: RowId,
        begin_ns: u64,
        end_ns: Option<u64>,
        name: &str,
        notes: &[(&str, Note<'_>)],
    ) -> Option<SliceId> {
        assert!(row.0 < self.rows.len(), "a row of another trace");
        if self.items.len() >= self.limit {
            self.left_out += 1;
            return None;
        }
        let first = self.notes.len();
        for (key, note) in notes {
            let stored = match *note {
                Note::Unsigned(x) => Stored::Unsigned(x),
                Note::Signed(x) => Stored::Signed(x),
                Note::Real(x) => Stored::Real(x),
                Note::Flag(x) => Stored::Flag(x),
                Note::Text(x) => Stored::Text(self.word(x)),
            };
            let key = self.word(key);
            self.notes.push((key, stored));
        }
        let item = Item {
            row: row.0,
            name: self.word(name),
            begin_ns,
            end_ns,
            notes: (first, self.notes.len()),
        };
        self.items.push(item);
        Some(SliceId(self.items.len() - 1))
    }

    fn word(&mut self, word: &str) -> usize {
        if let Some(&index) = self.word_of.get(word) {
            return index;
        }
        self.words.push(word.into());
        self.word_of.insert(word.into(), self.words.len() - 1);
        self.words.len() - 1
    }

    /// Writes the trace; hands the writer back, flushed. Give a buffered `out`.
    pub fn write<W: Write>(&self, mut out: W) -> io::Result<W> {
        let (lanes, steps) = self.in_order();
        let mut bytes = Vec::new();
        let mut trace = Message::new(&mut bytes);
        self.describe(&mut trace, &lanes);
        out.write_all(&bytes)?;

        let mut flows = self.flows.clone();
        flows.sort_unstable();
        for step in &steps {
            bytes.clear();
            Message::new(&mut bytes).message(TRACE_PACKET, |packet| {
                packet.unsigned(PACKET_TIMESTAMP, step.at_ns);
                packet.unsigned(PACKET_SEQUENCE, SEQUENCE);
                packet.unsigned(PACKET_FLAGS, NEEDS_STATE);
                packet.message(PACKET_TRACK_EVENT, |event| self.event(event, step, &flows));
            });
            out.write_all(&bytes)?;
        }
        out.flush()?;
        Ok(out)
    }

    fn event(&self, event: &mut Message<'_>, step: &Step, flows: &[(usize, u64)]) {
        event.unsigned(EVENT_TYPE, step.kind);
        event.unsigned(EVENT_TRACK, self.lane_uuid(step.lane));
        if step.kind == SLICE_END {
            return;
        }
        let item = &self.items[step.item];
        event.unsigned(EVENT_NAME_IID, item.name as u64 + 1);
        for (key, note) in &self.notes[item.notes.0..item.notes.1] {
            event.message(EVENT_ANNOTATION, |a| {
                a.unsigned(ANNOTATION_NAME_IID, *key as u64 + 1);
                match *note {
                    Stored::Flag(x) => a.unsigned(ANNOTATION_BOOL, x.into()),
                    Stored::Unsigned(x) => a.unsigned(ANNOTATION_UINT, x),
                    Stored::Signed(x) => a.unsigned(ANNOTATION_INT, x as u64),
                    Stored::Real(x) => a.fixed64(ANNOTATION_DOUBLE, x.to_bits()),
                    Stored::Text(word) => a.text(ANNOTATION_STRING, &self.words[word]),
                }
            });
        }
        let first = flows.partition_point(|f| f.0 < step.item);
        for (_, flow) in flows[first..].iter().take_while(|f| f.0 == step.item) {
            event.fixed64(EVENT_FLOW, *flow);
        }
    }

    /// Tracks of nodes and rows, and the table of words.
    fn describe(&self, trace: &mut Message<'_>, lanes: &[usize]) {
        trace.message(TRACE_PACKET, |packet| {
            packet.unsigned(PACKET_SEQUENCE, SEQUENCE);
            packet.unsigned(PACKET_FLAGS, STATE_CLEARED);
            packet.message(PACKET_INTERNED, |interned| {
                for table in [INTERNED_EVENT_NAME, INTERNED_ANNOTATION_NAME] {
                    for (i, word) in self.words.iter().enumerate() {
                        interned.message(table, |entry| {
                            entry.unsigned(1, i as u64 + 1);
                            entry.text(2, word);
                        });
                    }
                }
            });
        });
        let mut track = |fields: &dyn Fn(&mut Message<'_>)| {
            trace.message(TRACE_PACKET, |packet| {
                packet.unsigned(PACKET_SEQUENCE, SEQUENCE);
                packet.message(PACKET_TRACK_DESCRIPTOR, fields);
            });
        };
        for (node, name) in self.nodes.iter().enumerate() {
            track(&|t| {
                t.unsigned(TRACK_UUID, node as u64 + 1);
                t.unsigned(TRACK_CHILD_ORDER, ORDER_EXPLICIT);
                t.message(TRACK_PROCESS, |process| {
                    process.unsigned(PROCESS_PID, node as u64 + 1);
                    process.text(PROCESS_NAME, name);
                });
            });
        }
        for (lane, &row) in lanes.iter().enumerate() {
            let row_data = &self.rows[row];
            track(&|t| {
                t.unsigned(TRACK_UUID, self.lane_uuid(lane));
                t.unsigned(TRACK_PARENT, row_data.node as u64 + 1);
                t.text(TRACK_NAME, &self.words[row_data.name]);
                t.unsigned(TRACK_RANK, row as u64);
            });
        }
    }

    fn lane_uuid(&self, lane: usize) -> u64 {
        (self.nodes.len() + lane) as u64 + 1
    }

    /// All begins, ends and instants in order of time, and the row of each lane. On one track of Perfetto an end
    /// closes the slice that began last, so slices that overlap without nesting go to further lanes of their row;
    /// the viewer shows lanes of one name as one row.
    fn in_order(&self) -> (Vec<usize>, Vec<Step>) {
        let mut order: Vec<usize> = (0..self.items.len()).collect();
        order.sort_by_key(|&i| (self.items[i].begin_ns, Reverse(self.items[i].end_ns)));
        let mut lanes: Vec<usize> = (0..self.rows.len()).collect();
        let mut lanes_of: Vec<Vec<usize>> = lanes.iter().map(|&row| vec![row]).collect();
        let mut open: Vec<Vec<u64>> = vec![Vec::new(); lanes.len()];
        let mut steps = Vec::with_capacity(2 * order.len());
        let step = |at_ns, kind, lane, item| Step {
            at_ns,
            kind,
            lane,
            item,
        };
        for i in order {
            let Item {
                row,
                begin_ns,
                end_ns,
                ..
            } = self.items[i];
            let Some(end_ns) = end_ns else {
                steps.push(step(begin_ns, INSTANT, lanes_of[row][0], i));
                continue;
            };
            // close what is over in each lane, then take the first lane where the slice is inside the open one
            let mut found = None;
            for &lane in &lanes_of[row] {
                while open[lane].last().is_some_and(|&end| end <= begin_ns) {
                    steps.push(step(open[lane].pop().expect("just seen"), SLICE_END, lane, i));
                }
                if found.is_none() && open[lane].last().is_none_or(|&end| end_ns <= end) {
                    found = Some(lane);
                }
            }
            let lane = found.unwrap_or_else(|| {
                lanes.push(row);
                open.push(Vec::new());
                lanes_of[row].push(lanes.len() - 1);
                lanes.len() - 1
            });
            steps.push(step(begin_ns, SLICE_BEGIN, lane, i));
            open[lane].push(end_ns);
        }
        for (lane, ends) in open.iter().enumerate() {
            steps.extend(ends.iter().rev().map(|&end| step(end, SLICE_END, lane, 0)));
        }
        // stable: within a lane the order above is already that of time
        steps.sort_by_key(|s| s.at_ns);
        (lanes, steps)
    }
}

struct Step {
    at_ns: u64,
    kind: u64,
    lane: usize,
    item: usize,
}

/// One writer of packets, so that the table of words holds for all.
const SEQUENCE: u64 = 1;

#[cfg(test)]
mod tests;
