//! A short run of two nodes, recorded; every file is read back.

use std::fs::{self, File};

use frame::{AccessCategory, Phy, Rate, Wire};
use parquet::file::reader::{FileReader, SerializedFileReader};
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, PcapBlockOwned, PcapError, PcapNGReader};
use protocols::mac::data::Identity;
use protocols::mac::sender::{Sender, SenderConfig};
use sim::{AdapterConfig, NodeConfig, Pattern, Position, Traffic, World};

use super::*;
use crate::report::folder::{AIR, RESULT, TIMELINE};

const MS: u64 = 1_000_000;

fn world() -> (World<Sender>, Vec<NodeAbout>) {
    let mut world = World::new(&sim::MediumConfig::default(), 1);
    let clock = Clock {
        offset_ns: 5_000,
        drift_ppb: 20_000,
    };
    let mut about = Vec::new();
    for n in 0..2 {
        let address = MacAddr::local(n);
        let adapter = AdapterConfig::station(address, Phy::A, 5180, false);
        let at = Position::new(f64::from(n), 0.0);
        let config = NodeConfig {
            clock,
            ..NodeConfig::ideal(at, adapter)
        };
        let identity = Identity::access_point(address);
        world.add_node(config, Sender::new(SenderConfig::new(identity, Rate::OFDM_54)));
        about.push(NodeAbout {
            name: format!("node {n}"),
            addresses: vec![address],
            clock,
        });
    }
    world.add_traffic(
        0,
        Traffic {
            to: MacAddr::local(1),
            category: AccessCategory::BestEffort,
            octets: 100,
            pattern: Pattern::Periodic {
                period_ns: MS,
                phase_ns: 0,
            },
            lifetime_ns: None,
            count: None,
        },
    );
    (world, about)
}

fn record(folder: &Folder, limits: Limits, until_ns: u64) -> Recorded {
    let (mut world, about) = world();
    let recorder = Recorder::new(folder, &about, &[("seed", "1")], limits).unwrap();
    world.set_observer(recorder.observer());
    world.run_until(until_ns);
    drop(world.take_observer());
    recorder.finish(folder).unwrap()
}

fn packets(path: &std::path::Path) -> Vec<(u32, Vec<u8>)> {
    let mut reader = PcapNGReader::new(1 << 16, File::open(path).unwrap()).unwrap();
    let mut list = Vec::new();
    loop {
        match reader.next() {
            Ok((used, block)) => {
                if let PcapBlockOwned::NG(Block::EnhancedPacket(p)) = &block {
                    list.push((p.if_id, p.data[..p.caplen as usize].to_vec()));
                }
                reader.consume(used);
            }
            Err(PcapError::Eof) => return list,
            Err(PcapError::Incomplete(_)) => reader.refill().unwrap(),
            Err(e) => panic!("{e:?}"),
        }
    }
}

#[test]
fn every_file_holds_what_happened() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::create(place.path().join("run"), false).unwrap();
    let recorded = record(&folder, Limits::default(), 10 * MS - 1);
    assert_eq!(
        recorded,
        Recorded {
            frames: 20,
            confirms: 10,
            deliveries: 10,
            ..Recorded::default()
        }
    );

    let packets = packets(&folder.path().join(AIR));
    assert_eq!(packets.len(), 20, "ten frames and their ACKs");
    let first = frame::radiotap::Packet::parse(&packets[0].1).unwrap();
    assert_eq!(
        (packets[0].0, packets[1].0),
        (0, 1),
        "interface of the transmitter"
    );
    assert_eq!(first.radiotap.rate(), Some(Rate::OFDM_54));
    assert_eq!(first.radiotap.channel.unwrap().mhz, 5180);
    assert_eq!(first.mpdu().unwrap().len(), 26 + 8 + 100);
    let ack = frame::radiotap::Packet::parse(&packets[1].1).unwrap();
    assert!(matches!(
        frame::Frame::parse(ack.mpdu().unwrap()),
        Ok(frame::Frame::Ack(a)) if a.receiver == MacAddr::local(0)
    ));

    let confirms = SerializedFileReader::new(File::open(folder.path().join(CONFIRMS)).unwrap()).unwrap();
    let row = confirms.get_row_iter(None).unwrap().next().unwrap().unwrap();
    let row: std::collections::BTreeMap<_, _> = row
        .into_columns()
        .into_iter()
        .map(|(k, v)| (k, v.to_string()))
        .collect();
    assert_eq!(row["outcome"], "\"acked\"");
    assert_eq!(row["rate"], "\"54M\"");
    assert_eq!(row["attempts"], "1");
    assert_eq!(row["t1_ns"], "5000", "the node's clock has an offset");
    let number = |name: &str| row[name].parse::<u64>().unwrap();
    assert!(number("exchange_start_ns") < number("exchange_end_ns"));
    assert!(number("exchange_end_ns") <= number("confirmed_ns"));

    let deliveries = SerializedFileReader::new(File::open(folder.path().join(DELIVERIES)).unwrap()).unwrap();
    assert_eq!(deliveries.metadata().file_metadata().num_rows(), 10);
    let trace = fs::read(folder.path().join(TIMELINE)).unwrap();
    let has = |text: &str| trace.windows(text.len()).any(|w| w == text.as_bytes());
    for text in [
        "node 1",
        "air",
        "adapter",
        "host planes",
        "protocol",
        "QoS Data",
        "ACK",
        "deliver",
    ] {
        assert!(has(text), "{text} is missing in the timeline");
    }
}

#[test]
fn limits_bound_the_files_and_not_the_tables() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::create(place.path().join("run"), false).unwrap();
    let limits = Limits {
        air_ns: 3 * MS,
        timeline_ns: 2 * MS,
        ..Limits::default()
    };
    let recorded = record(&folder, limits, 100 * MS - 1);
    assert_eq!((recorded.frames, recorded.frames_left_out), (6, 194));
    assert!(recorded.items_left_out > 100);
    assert_eq!((recorded.confirms, recorded.deliveries), (100, 100));
}

#[test]
fn a_folder_that_vanishes_is_one_error_at_the_end() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::create(place.path().join("run"), false).unwrap();
    let (mut world, about) = world();
    let recorder = Recorder::new(&folder, &about, &[], Limits::default()).unwrap();
    world.set_observer(recorder.observer());
    world.run_until(5 * MS);
    fs::remove_dir_all(folder.path()).unwrap();
    world.run_until(10 * MS);
    drop(world.take_observer());
    let sentence = recorder.finish(&folder).unwrap_err().to_string();
    assert!(
        sentence.starts_with("cannot write ") && sentence.contains(AIR),
        "{sentence}"
    );
    assert!(!place.path().join("run").join(RESULT).exists());
}

#[test]
fn a_full_disk_is_one_error_at_the_end() {
    let mut part = Part::new(0_u32);
    part.with(|n| {
        *n += 1;
        Ok(())
    });
    let full = || std::io::Error::from(std::io::ErrorKind::StorageFull);
    part.with(|_| Err(FolderError::io("air.pcapng", full()).into()));
    part.with(|_| panic!("the part was given up"));
    let (done, error) = part.finish(|n| Ok(n));
    assert_eq!(done, 0);
    let sentence = error.unwrap().to_string();
    assert!(sentence.contains("free some space"), "{sentence}");
}
