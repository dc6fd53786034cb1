//! Traces are read back by a reader that knows nothing of the writer but the protobuf wire format.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// A field of a message: a number (varint or fixed64), or octets.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

type Fields = Vec<(u32, Value)>;

fn fields(mut bytes: &[u8]) -> Fields {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let octet = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(octet & 0x7f) << shift;
            if octet < 0x80 {
                break;
            }
        }
        value
    }
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut bytes)),
            1 => {
                let (value, rest) = bytes.split_at(8);
                bytes = rest;
                Value::Number(u64::from_le_bytes(value.try_into().unwrap()))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(value.to_vec())
            }
            wire => panic!("wire type {wire}"),
        };
        out.push(((tag >> 3) as u32, value));
    }
    out
}

fn number(fields: &Fields, wanted: u32) -> Option<u64> {
    fields.iter().find_map(|(field, value)| match value {
        Value::Number(n) if *field == wanted => Some(*n),
        _ => None,
    })
}

fn inner(fields: &Fields, wanted: u32) -> Vec<Vec<u8>> {
    let bytes = fields.iter().filter_map(|(field, value)| match value {
        Value::Bytes(bytes) if *field == wanted => Some(bytes.clone()),
        _ => None,
    });
    bytes.collect()
}

fn text(fields: &Fields, wanted: u32) -> Option<String> {
    inner(fields, wanted)
        .pop()
        .map(|bytes| String::from_utf8(bytes).unwrap())
}

/// A slice or instant as a viewer would show it: node, row, begin, end, name, notes, flows.
#[derive(Clone, Debug, PartialEq, PartialOrd, Eq, Ord)]
struct Shown {
    node: String,
    row: String,
    begin_ns: u64,
    end_ns: Option<u64>,
    name: String,
    notes: Vec<(String, String)>,
    flows: Vec<u64>,
}

/// Reads a trace as the trace processor does: an end closes the newest open slice of its track.
fn show(bytes: &[u8]) -> Vec<Shown> {
    let mut words: BTreeMap<(u32, u64), String> = BTreeMap::new();
    let mut nodes: BTreeMap<u64, String> = BTreeMap::new();
    let mut tracks: BTreeMap<u64, (String, String)> = BTreeMap::new();
    let mut open: BTreeMap<u64, Vec<Shown>> = BTreeMap::new();
    let mut shown = Vec::new();
    let mut last_ns = 0;
    for packet in inner(&fields(bytes), 1) {
        let packet = fields(&packet);
        assert_eq!(number(&packet, 10), Some(1), "all packets are of one sequence");
        for interned in inner(&packet, 12) {
            for (table, entry) in fields(&interned) {
                let Value::Bytes(entry) = entry else {
                    panic!("not a message")
                };
                let entry = fields(&entry);
                words.insert((table, number(&entry, 1).unwrap()), text(&entry, 2).unwrap());
            }
        }
        for track in inner(&packet, 60) {
            let track = fields(&track);
            let uuid = number(&track, 1).unwrap();
            match inner(&track, 3).pop() {
                Some(process) => drop(nodes.insert(uuid, text(&fields(&process), 6).unwrap())),
                None => {
                    let node = nodes[&number(&track, 5).unwrap()].clone();
                    tracks.insert(uuid, (node, text(&track, 2).unwrap()));
                }
            }
        }
        for event in inner(&packet, 11) {
            let event = fields(&event);
            let at_ns = number(&packet, 8).unwrap();
            assert!(at_ns >= last_ns, "in order of time");
            last_ns = at_ns;
            let uuid = number(&event, 11).unwrap();
            let track = open.entry(uuid).or_default();
            if number(&event, 9) == Some(2) {
                let mut slice = track.pop().expect("an end has its begin");
                slice.end_ns = Some(at_ns);
                shown.push(slice);
                continue;
            }
            let notes = inner(&event, 4).into_iter().map(|note| {
                let note = fields(&note);
                let (kind, value) = note.last().unwrap().clone();
                let value = match (kind, value) {
                    (2, Value::Number(x)) => (x == 1).to_string(),
                    (3, Value::Number(x)) => x.to_string(),
                    (4, Value::Number(x)) => (x as i64).to_string(),
                    (5, Value::Number(x)) => f64::from_bits(x).to_string(),
                    (6, Value::Bytes(x)) => String::from_utf8(x).unwrap(),
                    other => panic!("{other:?}"),
                };
                (words[&(3, number(&note, 1).unwrap())].clone(), value)
            });
            let flows = event.iter().filter_map(|(field, value)| match value {
                Value::Number(flow) if *field == 47 => Some(*flow),
                _ => None,
            });
            let item = Shown {
                node: tracks[&uuid].0.clone(),
                row: tracks[&uuid].1.clone(),
                begin_ns: at_ns,
                end_ns: None,
                name: words[&(2, number(&event, 10).unwrap())].clone(),
                notes: notes.collect(),
                flows: flows.collect(),
            };
            match number(&event, 9) {
                Some(1) => track.push(item),
                Some(3) => shown.push(item),
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(open.values().all(Vec::is_empty), "each begin has its end");
    shown.sort();
    shown
}

#[test]
fn an_exchange() {
    let mut t = Timeline::new(100);
    let (sta, ap) = (t.node("sta1"), t.node("AP"));
    let (sta_air, ap_air) = (t.row(sta, "air"), t.row(ap, "air"));
    let planes = t.row(sta, "host planes");
    let ack = t.slice(ap_air, 90_000, 118_000, "ACK", &[]).unwrap();
    let data = t.slice(
        sta_air,
        10_000,
        74_000,
        "DATA",
        &[
            ("octets", Note::Unsigned(86)),
            ("rssi_dbm", Note::Signed(-47)),
            ("snr_db", Note::Real(21.5)),
            ("retry", Note::Flag(false)),
            ("to", Note::Text("AP")),
        ],
    );
    t.flow(&[data.unwrap(), ack]);
    t.instant(planes, 9_000, "t1", &[]);
    let shown = show(&t.write(Vec::new()).unwrap());
    let names: Vec<_> = shown
        .iter()
        .map(|s| (s.node.as_str(), s.row.as_str(), s.name.as_str()))
        .collect();
    assert_eq!(
        names,
        [
            ("AP", "air", "ACK"),
            ("sta1", "air", "DATA"),
            ("sta1", "host planes", "t1")
        ]
    );
    assert_eq!((shown[1].begin_ns, shown[1].end_ns), (10_000, Some(74_000)));
    assert_eq!(
        (shown[0].flows.clone(), shown[1].flows.clone()),
        (vec![1], vec![1])
    );
    assert_eq!(shown[2].end_ns, None);
    let notes: Vec<_> = shown[1].notes.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(
        notes,
        ["octets=86", "rssi_dbm=-47", "snr_db=21.5", "retry=false", "to=AP"]
    );
}

#[test]
fn a_full_trace_keeps_the_first() {
    let mut t = Timeline::new(2);
    let node = t.node("n");
    let row = t.row(node, "air");
    for i in 0..5 {
        let kept = t.slice(row, i, i + 1, "s", &[]).is_some();
        assert_eq!(kept, i < 2);
    }
    assert_eq!(t.left_out(), 3);
    assert_eq!(show(&t.write(Vec::new()).unwrap()).len(), 2);
}

#[test]
fn a_full_disk_is_an_error() {
    let mut t = Timeline::new(9);
    t.node("n");
    let mut small = [0u8; 10];
    assert_eq!(
        t.write(&mut small[..]).unwrap_err().kind(),
        io::ErrorKind::WriteZero
    );
}

proptest! {
    /// Whatever way slices overlap, and in whatever order they are added, the viewer shows each as it was given.
    #[test]
    fn every_slice_is_shown_as_given(slices in proptest::collection::vec((0usize..3, 0u64..40, 0u64..12, any::<bool>()), 0..60)) {
        let mut t = Timeline::new(1000);
        let nodes = [t.node("a"), t.node("b")];
        let rows = [t.row(nodes[0], "air"), t.row(nodes[0], "adapter"), t.row(nodes[1], "air")];
        let mut given = Vec::new();
        for (i, &(row, begin, length, instant)) in slices.iter().enumerate() {
            let name = format!("slice {i}");
            if instant {
                t.instant(rows[row], begin, &name, &[]);
            } else {
                t.slice(rows[row], begin, begin + length, &name, &[]);
            }
            let (node, row) = [("a", "air"), ("a", "adapter"), ("b", "air")][row];
            given.push(Shown {
                node: node.into(),
                row: row.into(),
                begin_ns: begin,
                end_ns: (!instant).then_some(begin + length),
                name,
                notes: vec![],
                flows: vec![],
            });
        }
        given.sort();
        // which of two slices with equal begin and end is inside the other does not matter
        prop_assert_eq!(show(&t.write(Vec::new()).unwrap()), given);
    }
}
