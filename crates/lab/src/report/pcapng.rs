//! A capture of the air as pcapng (draft-ietf-opsawg-pcapng), with radiotap before each frame: opens in Wireshark.

use std::io::{self, Write};

/// LINKTYPE_IEEE802_11_RADIOTAP of the tcpdump registry.
const LINK_RADIOTAP: u16 = 127;
/// Most octets of radiotap and frame together; above every PSDU of 802.11n (65,535 octets).
pub const SNAP_OCTETS: usize = 0x2_0000;
/// Longest text of an option; the field for its length has 16 bits.
const TEXT_OCTETS: usize = 4096;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;

const COMMENT: u16 = 1;

/// What the section header says about the origin of the capture.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The hardware, for example "simulated 802.11a adapters".
    pub hardware: &'a str,
    /// The operating system, for example "none (simulated time)".
    pub os: &'a str,
    /// The program with its version.
    pub application: &'a str,
}

/// One radio or monitor of the capture.
#[derive(Clone, Copy, Debug)]
pub struct Interface<'a> {
    /// Short name, shown in every line of a dissector.
    pub name: &'a str,
    /// More about it; empty for nothing.
    pub description: &'a str,
    /// Its MAC address.
    pub address: Option<[u8; 6]>,
}

/// Names an interface of one capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceId(u32);

/// One captured frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// When, in nanoseconds since the zero of the clock (1970 for a wall clock, the start for simulated time).
    pub time_ns: u64,
    /// Who captured it.
    pub interface: InterfaceId,
    /// The radiotap header, complete.
    pub radiotap: &'a [u8],
    /// The frame from its frame control field on; with FCS exactly if radiotap says so.
    pub frame: &'a [u8],
    /// A remark shown beside the frame; empty for none.
    pub comment: &'a str,
}

/// Why a capture cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum PcapngError {
    /// Radiotap and frame exceed [`SNAP_OCTETS`].
    #[error("a frame of {0} octets is too long for a capture")]
    TooLong(usize),
    /// The file cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What a capture holds in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// Frames written.
    pub frames: u64,
    /// Frames left out because of the size limit.
    pub left_out: u64,
    /// Size of the file, in octets.
    pub octets: u64,
}

#[derive(Default)]
struct Counts {
    written: u64,
    left_out: u64,
    last_ns: u64,
}

/// Writes a capture from front to end, without seeking.
pub struct PcapngWriter<W: Write> {
    out: W,
    octets: u64,
    limit_octets: u64,
    interfaces: Vec<Counts>,
    block: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// Writes the section header. Once the file has `limit_mib` MiB, frames are counted but no longer written,
    /// and the end of the capture says so. Give a buffered `out`.
    pub fn new(out: W, origin: Origin<'_>, limit_mib: Option<u32>) -> Result<Self, PcapngError> {
        let mut writer = PcapngWriter {
            out,
            octets: 0,
            limit_octets: limit_mib.map_or(u64::MAX, |mib| u64::from(mib) << 20),
            interfaces: Vec::new(),
            block: Vec::with_capacity(4096),
        };
        writer.begin(SECTION_HEADER);
        writer.put(&0x1a2b_3c4d_u32.to_le_bytes());
        writer.put(&[1, 0, 0, 0]); // version 1.0
        writer.put(&u64::MAX.to_le_bytes()); // section length not known
        writer.text(2, origin.hardware);
        writer.text(3, origin.os);
        writer.text(4, origin.application);
        writer.end()?;
        Ok(writer)
    }

    /// Announces an interface; allowed at any time before its first frame.
    pub fn interface(&mut self, interface: Interface<'_>) -> Result<InterfaceId, PcapngError> {
        self.begin(INTERFACE);
        self.put(&LINK_RADIOTAP.to_le_bytes());
        self.put(&[0, 0]);
        self.put(&(SNAP_OCTETS as u32).to_le_bytes());
        self.text(2, interface.name);
        self.text(3, interface.description);
        if let Some(address) = interface.address {
            self.option(6, &address);
        }
        self.option(9, &[9]); // if_tsresol: 10^-9 s
        self.end()?;
        self.interfaces.push(Counts::default());
        Ok(InterfaceId(self.interfaces.len() as u32 - 1))
    }

    /// Writes one frame; says whether it is in the file, or left out because of the limit.
    ///
    /// # Panics
    /// When the interface is of another capture.
    pub fn frame(&mut self, frame: &Frame<'_>) -> Result<bool, PcapngError> {
        let octets = frame.radiotap.len() + frame.frame.len();
        if octets > SNAP_OCTETS {
            return Err(PcapngError::TooLong(octets));
        }
        let counts =
            (self.interfaces.get_mut(frame.interface.0 as usize)).expect("an interface of this capture");
        counts.last_ns = counts.last_ns.max(frame.time_ns);
        if self.octets >= self.limit_octets {
            counts.left_out += 1;
            return Ok(false);
        }
        counts.written += 1;
        self.begin(PACKET);
        self.put(&frame.interface.0.to_le_bytes());
        self.time(frame.time_ns);
        self.put(&(octets as u32).to_le_bytes()); // captured
        self.put(&(octets as u32).to_le_bytes()); // on the air
        self.put(frame.radiotap);
        self.put(frame.frame);
        self.pad();
        self.text(COMMENT, frame.comment);
        self.end()?;
        Ok(true)
    }

    /// Writes the counts of each interface and hands the writer back, flushed.
    pub fn finish(mut self) -> Result<(W, Captured), PcapngError> {
        let mut total = Captured::default();
        for (id, counts) in std::mem::take(&mut self.interfaces).iter().enumerate() {
            total.frames += counts.written;
            total.left_out += counts.left_out;
            self.begin(STATISTICS);
            self.put(&(id as u32).to_le_bytes());
            self.time(counts.last_ns);
            if counts.left_out > 0 {
                let mib = self.limit_octets >> 20;
                self.text(
                    COMMENT,
                    &format!(
                        "the capture was limited to {mib} MiB: {} frames left out",
                        counts.left_out
                    ),
                );
            }
            self.option(4, &(counts.written + counts.left_out).to_le_bytes()); // isb_ifrecv
            self.option(5, &counts.left_out.to_le_bytes()); // isb_ifdrop
            self.end()?;
        }
        self.out.flush()?;
        total.octets = self.octets;
        Ok((self.out, total))
    }

    /// Opens a block: its type and room for its length.
    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.put(&kind.to_le_bytes());
        self.put(&[0; 4]);
    }

    /// Closes the block with the end of options and its length at both ends, and writes it.
    fn end(&mut self) -> Result<(), PcapngError> {
        self.put(&[0; 4]);
        let length = self.block.len() as u32 + 4;
        self.put(&length.to_le_bytes());
        self.block[4..8].copy_from_slice(&length.to_le_bytes());
        self.out.write_all(&self.block)?;
        self.octets += u64::from(length);
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn time(&mut self, time_ns: u64) {
        self.put(&((time_ns >> 32) as u32).to_le_bytes());
        self.put(&(time_ns as u32).to_le_bytes());
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.put(&code.to_le_bytes());
        self.put(&(value.len() as u16).to_le_bytes());
        self.put(value);
        self.pad();
    }

    /// A text option, cut at [`TEXT_OCTETS`]; none for an empty text.
    fn text(&mut self, code: u16, text: &str) {
        let text = &text[..text.floor_char_boundary(TEXT_OCTETS)];
        if !text.is_empty() {
            self.option(code, text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use pcap_parser::traits::PcapReaderIterator;
    use pcap_parser::{Block, PcapBlockOwned, PcapError, PcapNGOption, PcapNGReader};

    use super::*;

    const ORIGIN: Origin<'_> = Origin {
        hardware: "simulated",
        os: "none",
        application: "sdmac test",
    };

    /// TSFT, flags, rate, channel, dBm signal: fields 0 to 3 and 5 of radiotap.org.
    fn radiotap(tsf_us: u64, rate_500kbps: u8, mhz: u16, dbm: i8) -> Vec<u8> {
        let mut bytes = vec![0, 0, 23, 0, 0b10_1111, 0, 0, 0];
        bytes.extend(tsf_us.to_le_bytes());
        bytes.extend([0, rate_500kbps]);
        bytes.extend(mhz.to_le_bytes());
        bytes.extend(0x0140_u16.to_le_bytes()); // 5 GHz, OFDM
        bytes.push(dbm as u8);
        bytes
    }

    fn ack(to: u8) -> Vec<u8> {
        vec![0xd4, 0, 0, 0, 2, 0, 0, 0, 0, to]
    }

    fn data(from: u8, payload: usize) -> Vec<u8> {
        let mut bytes = vec![0x08, 0x00, 44, 0];
        for last in [9, from, 9] {
            bytes.extend([2, 0, 0, 0, 0, last]);
        }
        bytes.extend([0x10, 0x00]);
        bytes.extend([0xaa, 0xaa, 3, 0, 0, 0, 0x88, 0xb5]);
        bytes.resize(bytes.len() + payload, 0x5a);
        bytes
    }

    fn sample(limit_mib: Option<u32>, frames: u64) -> (Vec<u8>, Captured) {
        let mut w = PcapngWriter::new(Vec::new(), ORIGIN, limit_mib).unwrap();
        let node = |name, last| Interface {
            name,
            description: "a node",
            address: Some([2, 0, 0, 0, 0, last]),
        };
        let ids = [
            w.interface(node("sta1", 1)).unwrap(),
            w.interface(node("sta2", 2)).unwrap(),
        ];
        for i in 0..frames {
            let time_ns = 1_500_000_123 + i * 1_000_000;
            let (frame, comment) = match i % 2 {
                0 => (data(1, 50 + (i % 4) as usize), "slot 1, attempt 1"),
                _ => (ack(1), ""),
            };
            w.frame(&Frame {
                time_ns,
                interface: ids[(i % 2) as usize],
                radiotap: &radiotap(time_ns / 1000, 108, 5180, -47),
                frame: &frame,
                comment,
            })
            .unwrap();
        }
        w.finish().unwrap()
    }

    type ReadFrame = (u32, u64, Vec<u8>, String);

    /// What `pcap-parser` reads: interface names, and per frame (interface, time in ns, octets, comment).
    fn read(bytes: &[u8]) -> (Vec<String>, Vec<ReadFrame>, Vec<String>) {
        let text = |options: &[PcapNGOption<'_>], code| {
            options
                .iter()
                .find(|o| o.code.0 == code)
                .map(|o| String::from_utf8(o.value()[..usize::from(o.len)].to_vec()).unwrap())
        };
        let (mut names, mut frames, mut notes) = (vec![], vec![], vec![]);
        let mut reader = PcapNGReader::new(1 << 20, bytes).unwrap();
        loop {
            match reader.next() {
                Ok((used, block)) => {
                    let PcapBlockOwned::NG(block) = block else {
                        panic!("not a pcapng block")
                    };
                    match block {
                        Block::SectionHeader(b) => assert_eq!(text(&b.options, 4).unwrap(), "sdmac test"),
                        Block::InterfaceDescription(b) => {
                            assert_eq!((b.linktype.0, b.if_tsresol), (127, 9));
                            names.push(text(&b.options, 2).unwrap());
                        }
                        Block::EnhancedPacket(b) => frames.push((
                            b.if_id,
                            u64::from(b.ts_high) << 32 | u64::from(b.ts_low),
                            b.data[..b.caplen as usize].to_vec(),
                            text(&b.options, 1).unwrap_or_default(),
                        )),
                        Block::InterfaceStatistics(b) => notes.extend(text(&b.options, 1)),
                        other => panic!("{other:?}"),
                    }
                    reader.consume(used);
                }
                Err(PcapError::Eof) => return (names, frames, notes),
                Err(PcapError::Incomplete(_)) => reader.refill().unwrap(),
                Err(e) => panic!("{e:?}"),
            }
        }
    }

    #[test]
    fn another_reader_gets_it_all_back() {
        let (bytes, captured) = sample(None, 5);
        assert_eq!(captured.frames, 5);
        assert_eq!(captured.octets, bytes.len() as u64);
        let (names, frames, notes) = read(&bytes);
        assert_eq!(names, ["sta1", "sta2"]);
        assert!(notes.is_empty());
        assert_eq!(frames.len(), 5);
        let first = [radiotap(1_500_000, 108, 5180, -47), data(1, 50)].concat();
        assert_eq!(frames[0], (0, 1_500_000_123, first, "slot 1, attempt 1".into()));
        assert_eq!(frames[1].2.len(), 33);
        assert_eq!(
            (frames[4].1, frames[4].3.as_str()),
            (1_504_000_123, "slot 1, attempt 1")
        );
    }

    #[test]
    fn the_limit_holds_and_is_noted() {
        let (bytes, captured) = sample(Some(1), 20_000);
        assert!(
            bytes.len() < (1 << 20) + 1024 && bytes.len() >= 1 << 20,
            "{}",
            bytes.len()
        );
        assert_eq!(captured.frames + captured.left_out, 20_000);
        let (_, frames, notes) = read(&bytes);
        assert_eq!(frames.len() as u64, captured.frames);
        assert!(
            notes[0].starts_with("the capture was limited to 1 MiB: "),
            "{notes:?}"
        );
        let (_, none) = sample(Some(0), 3);
        assert_eq!((none.frames, none.left_out), (0, 3));
    }

    #[test]
    fn too_long_and_full() {
        let mut w = PcapngWriter::new(Vec::new(), ORIGIN, None).unwrap();
        let interface = w
            .interface(Interface {
                name: &"n".repeat(100_000),
                description: &"ü".repeat(5000),
                address: None,
            })
            .unwrap();
        let long = vec![0; SNAP_OCTETS + 1];
        let mut frame = Frame {
            time_ns: u64::MAX,
            interface,
            radiotap: &[],
            frame: &long,
            comment: "",
        };
        assert!(matches!(w.frame(&frame), Err(PcapngError::TooLong(_))));
        frame.frame = &long[1..];
        assert!(w.frame(&frame).unwrap());
        let (names, frames, _) = read(&w.finish().unwrap().0);
        assert_eq!((names[0].len(), frames[0].1), (TEXT_OCTETS, u64::MAX));

        let mut small = [0u8; 300];
        let mut w = PcapngWriter::new(&mut small[..], ORIGIN, None).unwrap();
        let broken = (0..9).find_map(|_| {
            let name = "full";
            w.interface(Interface {
                name,
                description: "",
                address: None,
            })
            .err()
        });
        assert!(matches!(broken, Some(PcapngError::Io(e)) if e.kind() == io::ErrorKind::WriteZero));
    }

    #[test]
    fn tshark_agrees() {
        if Command::new("tshark").arg("-v").output().is_err() {
            eprintln!("skipped: tshark is not installed");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("air.pcapng");
        std::fs::write(&path, sample(None, 4).0).unwrap();
        let fields = "frame.time_epoch frame.interface_name frame.comment radiotap.dbm_antsignal radiotap.datarate \
                      radiotap.mactime wlan.fc.type_subtype wlan.ta _ws.malformed";
        let mut command = Command::new("tshark");
        command
            .arg("-r")
            .arg(&path)
            .args(["-T", "fields", "-E", "separator=|"]);
        for field in fields.split_whitespace() {
            command.args(["-e", field]);
        }
        let output = command.env("TZ", "UTC").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines.len(),
            4,
            "{text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(
            lines[0],
            "1.500000123|sta1|slot 1, attempt 1|-47|54|1500000|0x0020|02:00:00:00:00:01|"
        );
        assert_eq!(lines[1], "1.501000123|sta2||-47|54|1501000|0x001d||");
    }
}
