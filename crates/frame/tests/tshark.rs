//! What Wireshark's dissector reads in our octets is what we wrote. Needs `tshark` in the path:
//! `cargo test -p sdmac-frame --test tshark -- --ignored`.

mod shared;

use std::fs;
use std::process::Command;

use frame::mac::Header;
use frame::radiotap::{Packet, Radiotap};
use frame::{Frame, Wire, fcs};

/// A pcap file (link type 127: radiotap) of these packets.
fn pcap(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 127] {
        file.extend(word.to_le_bytes());
    }
    for packet in packets {
        for word in [0, 0, packet.len() as u32, packet.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

/// One row for each packet, one column for each field; several values of a field are joined by commas.
fn dissect(name: &str, packets: &[Vec<u8>], fields: &[&str]) -> Vec<Vec<String>> {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, pcap(packets)).unwrap();
    let mut tshark = Command::new("tshark");
    tshark
        .args([
            "-o",
            "wlan.check_checksum:TRUE",
            "-T",
            "fields",
            "-E",
            "separator=|",
            "-r",
        ])
        .arg(&path);
    tshark.args(["-e", "_ws.expert.message", "-e", "_ws.malformed"]);
    for field in fields {
        tshark.args(["-e", field]);
    }
    let out = tshark.output().expect("tshark is in the path");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    let rows: Vec<Vec<String>> = text
        .lines()
        .map(|l| l.split('|').map(String::from).collect())
        .collect();
    assert_eq!(rows.len(), packets.len());
    rows
}

/// With an FCS behind it and a header before it that says so.
fn captured(mpdu: &[u8]) -> Vec<u8> {
    let mut frame = mpdu.to_vec();
    frame.extend([0; 4]);
    fcs::append(&mut frame, mpdu.len()).unwrap();
    let radiotap = Radiotap {
        flags: Some(Radiotap::FLAG_FCS),
        ..Radiotap::default()
    };
    shared::emit(Packet {
        radiotap,
        frame: &frame,
    })
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[test]
#[ignore = "needs tshark"]
fn frames() {
    let frames = shared::frames();
    let packets: Vec<Vec<u8>> = frames.iter().map(|f| captured(f)).collect();
    let fields = [
        "wlan.fc.type_subtype",
        "wlan.ra",
        "wlan.ta",
        "wlan.da",
        "wlan.sa",
        "wlan.seq",
        "wlan.frag",
        "wlan.qos.tid",
        "wlan.fcs.status",
        "wlan.fixed.beacon",
        "wlan.fixed.timestamp",
        "wlan.duration",
        "wlan.fc.retry",
    ];
    for (row, octets) in dissect("frames.pcap", &packets, &fields).iter().zip(&frames) {
        let frame = Frame::parse(octets).unwrap();
        let h = Header::parse(octets).unwrap();
        let kind = u64::from(h.kind().octet() >> 2 & 3) << 4 | u64::from(h.kind().subtype());
        assert!(
            ["", "Retransmission (retry)"].contains(&&*row[0]) && row[1].is_empty(),
            "{row:?}"
        );
        assert_eq!(number(&row[2]), Some(kind));
        assert_eq!(row[3], h.receiver().to_string());
        assert_eq!(row[4], h.transmitter().map(|a| a.to_string()).unwrap_or_default());
        assert_eq!(number(&row[7]), h.sequence().map(|s| u64::from(s.number())));
        assert_eq!(number(&row[8]), h.sequence().map(|s| u64::from(s.fragment())));
        assert_eq!(number(&row[9]), h.tid().map(u64::from));
        assert_eq!(row[10], "1", "the FCS is good");
        assert_eq!(row[14], u8::from(h.is_retry()).to_string());
        match frame {
            Frame::PsPoll(_) => assert_eq!(row[13], ""),
            _ => assert_eq!(number(&row[13]), Some(h.nav_us().into())),
        }
        match frame {
            Frame::Data(data) if data.qos.is_some_and(|q| q.is_amsdu()) => {
                // once for the frame, once for each subframe
                let thrice = |a| format!("{a},{a},{a}");
                assert_eq!(row[5], thrice(data.destination()));
                assert_eq!(row[6], thrice(data.source()));
            }
            Frame::Data(data) => {
                assert_eq!(row[5], data.destination().to_string());
                assert_eq!(row[6], data.source().to_string());
            }
            Frame::Beacon(beacon) => {
                assert_eq!(number(&row[11]), Some(beacon.interval_tu.into()));
                assert_eq!(number(&row[12]), Some(beacon.timestamp_us));
            }
            _ => {}
        }
    }
}

#[test]
#[ignore = "needs tshark"]
fn elements() {
    let expect = [
        ("wlan.ssid", "726f626f7473"),
        ("wlan.supported_rates", "0x82,0x84,0x8b,0x96,0x0c,0x18,0x30,0x48"),
        ("wlan.extended_supported_rates", "0x6c"),
        ("wlan.ds.current_channel", "6"),
        ("wlan.ibss.atim_windows", "0x000a"),
        ("wlan.tim.dtim_count", "0"),
        ("wlan.tim.dtim_period", "2"),
        ("wlan.tim.aid", "0x02,0x07,0x16,0x18"),
        ("wlan.country_info.code", "DE"),
        ("wlan.country_info.fnm.fcn", "1"),
        ("wlan.country_info.fnm.nc", "13"),
        ("wlan.country_info.fnm.mtpl", "20"),
        ("wlan.csa.channel_switch_mode", "1"),
        ("wlan.csa.new_channel_number", "11"),
        ("wlan.csa.channel_switch.count", "3"),
        ("wlan.erp_info", "0x03"),
        ("wlan.ht.capabilities", "0x0022"),
        ("wlan.ht.ampduparam", "0x17"),
        ("wlan.ht.info.primarychannel", "6"),
        ("wlan.wfa.ie.wme.acp.aci", "0,1,2,3"),
        ("wlan.wfa.ie.wme.acp.aifsn", "3,7,2,2"),
        ("wlan.wfa.ie.wme.acp.cw.min", "15,15,7,3"),
        ("wlan.wfa.ie.wme.acp.cw.max", "1023,1023,15,7"),
        ("wlan.wfa.ie.wme.acp.txop_limit", "0,0,94,47"),
    ];
    let row = &dissect(
        "elements.pcap",
        &[captured(&shared::beacon())],
        &expect.map(|e| e.0),
    )[0];
    assert_eq!([&row[0], &row[1]], ["", ""], "nothing to complain about");
    for ((field, value), found) in expect.iter().zip(&row[2..]) {
        assert_eq!(found, value, "{field}");
    }
}

#[test]
#[ignore = "needs tshark"]
fn radiotap() {
    let mut packets = shared::packets();
    packets.retain(|p| !Packet::parse(p).unwrap().frame.is_empty());
    // the dissector knows no bit 25
    let mut everything = Packet::parse(&packets[2]).unwrap();
    assert!(everything.radiotap.he_other_user.take().is_some());
    packets[2] = shared::emit(everything);

    type Column = (&'static str, fn(&Radiotap) -> Option<i64>);
    let columns: [Column; 26] = [
        ("radiotap.mactime", |r| r.tsft_us.map(|v| v as i64)),
        ("radiotap.flags", |r| r.flags.map(i64::from)),
        ("radiotap.channel.freq", |r| r.channel.map(|c| c.mhz.into())),
        ("radiotap.fhss.hopset", |r| r.fhss.map(|f| f.set.into())),
        ("radiotap.dbm_antsignal", |r| r.signal_dbm.map(i64::from)),
        ("radiotap.dbm_antnoise", |r| r.noise_dbm.map(i64::from)),
        ("radiotap.quality", |r| r.lock_quality.map(i64::from)),
        ("radiotap.txattenuation", |r| r.tx_attenuation.map(i64::from)),
        ("radiotap.db_txattenuation", |r| {
            r.tx_attenuation_db.map(i64::from)
        }),
        ("radiotap.txpower", |r| r.tx_power_dbm.map(i64::from)),
        ("radiotap.antenna", |r| r.antenna.map(i64::from)),
        ("radiotap.db_antsignal", |r| r.signal_db.map(i64::from)),
        ("radiotap.db_antnoise", |r| r.noise_db.map(i64::from)),
        ("radiotap.rxflags", |r| r.rx_flags.map(i64::from)),
        ("radiotap.txflags", |r| r.tx_flags.map(i64::from)),
        ("radiotap.data_retries", |r| r.data_retries.map(i64::from)),
        ("radiotap.xchannel.freq", |r| r.xchannel.map(|x| x.mhz.into())),
        ("radiotap.mcs.index", |r| r.mcs.map(|m| m.index.into())),
        ("radiotap.ampdu.reference", |r| {
            r.ampdu.map(|a| a.reference.into())
        }),
        ("radiotap.vht.mcs.0", |r| {
            r.vht.map(|v| (v.mcs_streams[0] >> 4).into())
        }),
        ("radiotap.vht.bw", |r| r.vht.map(|v| v.bandwidth.into())),
        ("radiotap.timestamp.ts", |r| r.timestamp.map(|t| t.value as i64)),
        ("radiotap.he.data_1", |r| {
            r.he.map(|he| u16::from_le_bytes([he[0], he[1]]).into())
        }),
        ("radiotap.he_mu.flags_1", |r| {
            r.he_mu.map(|he| u16::from_le_bytes([he[0], he[1]]).into())
        }),
        ("radiotap.0_len_psdu.type", |r| r.zero_length_psdu.map(i64::from)),
        ("radiotap.l_sig.data1", |r| {
            r.l_sig.map(|l| u16::from_le_bytes([l[0], l[1]]).into())
        }),
    ];
    let mut fields = columns.map(|c| c.0).to_vec();
    fields.extend(["radiotap.datarate", "radiotap.length", "wlan.ra"]);
    for (row, octets) in dissect("radiotap.pcap", &packets, &fields).iter().zip(&packets) {
        let packet = Packet::parse(octets).unwrap();
        assert_eq!(
            [&row[0], &row[1]],
            ["", ""],
            "nothing to complain about: {packet}"
        );
        for ((field, ours), theirs) in columns.iter().zip(&row[2..]) {
            let theirs = number(theirs).map(|v| v as i64).or(theirs.parse().ok());
            assert_eq!(theirs, ours(&packet.radiotap), "{field} of {packet}");
        }
        let tail = &row[2 + columns.len()..];
        let mbps = packet.radiotap.rate().map(|r| f64::from(r.kbps100()) / 10.0);
        assert_eq!(tail[0].parse().ok(), mbps);
        assert_eq!(tail[1], (octets.len() - packet.frame.len()).to_string());
        if packet.radiotap.zero_length_psdu.is_none() {
            let receiver = Header::parse(packet.frame).unwrap().receiver();
            assert_eq!(tail[2], receiver.to_string());
        }
    }
}
