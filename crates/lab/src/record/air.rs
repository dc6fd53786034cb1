//! The capture: every frame once, as its transmitter sent it, one interface for each node.

use frame::radiotap::{Channel, Radiotap};
use frame::{Rate, Wire};
use sim::trace::{OnAir, Transmission};

use super::{Limits, NodeAbout, RecordError};
use crate::report::folder::{AIR, AtomicFile, Folder, FolderError};
use crate::report::pcapng::{Frame, Interface, InterfaceId, Origin, PcapngError, PcapngWriter};

/// Room for any radiotap header.
const RADIOTAP_OCTETS: usize = 256;

pub(super) const SIMULATED: Origin<'static> = Origin {
    hardware: "simulated 802.11 adapters",
    os: "none (simulated time)",
    application: APPLICATION,
};
pub(super) const OF_LINUX: Origin<'static> = Origin {
    hardware: "an 802.11 adapter of this computer",
    os: "Linux (times are CLOCK_MONOTONIC)",
    application: APPLICATION,
};
const APPLICATION: &str = concat!("sdmac ", env!("CARGO_PKG_VERSION"));

pub(super) struct Air {
    writer: PcapngWriter<AtomicFile>,
    interfaces: Vec<InterfaceId>,
    until_ns: u64,
    left_out: u64,
    path: std::path::PathBuf,
}

impl Air {
    pub(super) fn new(
        folder: &Folder,
        nodes: &[NodeAbout],
        limits: Limits,
        origin: Origin<'_>,
    ) -> Result<Air, RecordError> {
        let path = folder.path().join(AIR);
        let failed = |e| error(&path, e);
        let mut writer =
            PcapngWriter::new(folder.file(AIR)?, origin, Some(limits.air_mib)).map_err(failed)?;
        let mut interfaces = Vec::with_capacity(nodes.len());
        for node in nodes {
            let interface = Interface {
                name: &node.name,
                description: "",
                address: node.addresses.first().map(|a| a.0),
            };
            interfaces.push(writer.interface(interface).map_err(failed)?);
        }
        Ok(Air {
            writer,
            interfaces,
            until_ns: limits.air_ns,
            left_out: 0,
            path,
        })
    }

    pub(super) fn transmission(&mut self, t: &Transmission<'_>) -> Result<(), RecordError> {
        if t.what == OnAir::Noise {
            return Ok(());
        }
        self.captured(t.start_ns, t.node, &radiotap(t), t.frame, "")
    }

    pub(super) fn captured(
        &mut self,
        time_ns: u64,
        node: u32,
        head: &Radiotap,
        frame: &[u8],
        comment: &str,
    ) -> Result<(), RecordError> {
        let Some(&interface) = self.interfaces.get(node as usize) else {
            return Ok(()); // noise has no node
        };
        if time_ns >= self.until_ns {
            self.left_out += 1;
            return Ok(());
        }
        let mut octets = [0; RADIOTAP_OCTETS];
        let n = head.emit(&mut octets).expect("there is room for any header");
        let written = self.writer.frame(&Frame {
            time_ns,
            interface,
            radiotap: &octets[..n],
            frame,
            comment,
        });
        written.map(|_| ()).map_err(|e| error(&self.path, e))
    }

    /// Frames in the file, and frames left out.
    pub(super) fn finish(self, folder: &Folder) -> Result<(u64, u64), RecordError> {
        let (file, captured) = self.writer.finish().map_err(|e| error(&self.path, e))?;
        folder.commit(file)?;
        Ok((captured.frames, captured.left_out + self.left_out))
    }
}

fn error(path: &std::path::Path, error: PcapngError) -> RecordError {
    match error {
        PcapngError::Io(source) => FolderError::io(path, source).into(),
        other => RecordError::Air(other),
    }
}

/// What a monitor beside the transmitter would note; no signal strength, because there is no receiver.
fn radiotap(t: &Transmission<'_>) -> Radiotap {
    let modulation = if let Rate::Dsss(..) = t.rate {
        Channel::CCK
    } else {
        Channel::OFDM
    };
    let band = if t.mhz < 3_000 {
        Channel::GHZ_2_4
    } else {
        Channel::GHZ_5
    };
    Radiotap {
        tsft_us: Some(t.start_ns / 1_000),
        flags: Some(0),
        channel: Some(Channel {
            mhz: t.mhz,
            flags: modulation | band,
        }),
        data_retries: (t.attempt > 0).then(|| u8::try_from(t.attempt - 1).unwrap_or(u8::MAX)),
        ..Radiotap::default()
    }
    .with_rate(t.rate)
}
