//! What the kernel asks for, in the words of the simulator.

use frame::AccessCategory;
use frame::mac::Header;
use linux::hwsim::{Sent, flag};
use radio::{Queue, RtsPolicy, TxHow};

use super::rates;

/// How the scenario's adapter is to send a frame of the kernel, and whether it asks for an ACK; `None` if no adapter
/// of the simulator can.
pub(super) fn how(sent: &Sent, mhz: u16) -> Option<(TxHow, bool)> {
    let header = Header::parse(&sent.frame).ok()?;
    let series = rates::chain(&sent.plan, rates::band(mhz)?)?;
    let mut how = TxHow::one_shot(series.as_slice()[0].rate).series(series);
    how.queue = match sent.frame[0] {
        0x80 => Queue::Beacon,
        _ if header.frame_type() == frame::mac::FrameType::Data => match header.tid() {
            Some(_) => header.access_category().into(),
            None => Queue::BestEffort,
        },
        _ => AccessCategory::Voice.into(),
    };
    if sent.plan[0].flags & flag::RTS != 0 {
        how.rts = RtsPolicy::Always;
    }
    let asks = header.wants_ack() && !sent.no_ack();
    Some((if sent.no_ack() { how.no_ack() } else { how }, asks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::{MacAddr, Rate};
    use linux::hwsim::{MAX_SERIES, Series};

    fn sent(frame: &[u8], flags: u32) -> Sent {
        let mut plan = [Series::NONE; MAX_SERIES];
        (plan[0].index, plan[0].tries) = (7, 3);
        let mut octets = vec![0; 40];
        octets[..frame.len()].copy_from_slice(frame);
        Sent {
            radio: MacAddr::ZERO,
            frame: octets,
            mhz: Some(5180),
            cookie: 1,
            flags,
            plan,
        }
    }

    #[test]
    fn queues_and_wishes_come_from_the_frame() {
        let of = |frame: &[u8], flags| {
            let (how, asks) = how(&sent(frame, flags), 5180).unwrap();
            (how.queue, asks)
        };
        assert_eq!(of(&[0x08, 0], 1), (Queue::BestEffort, true));
        assert_eq!(of(&[0x80, 0, 0, 0, 0xff], 0), (Queue::Beacon, false));
        assert_eq!(of(&[0xb0, 0], 1), (Queue::Voice, true), "authentication");
        let mut qos = [0; 26];
        (qos[0], qos[24]) = (0x88, 6);
        assert_eq!(of(&qos, 1), (Queue::Voice, true));
        assert_eq!(of(&qos, 1 | 2), (Queue::Voice, false), "no ACK is awaited");
        let (how, _) = how(&sent(&[0x08, 0], 1), 5180).unwrap();
        assert_eq!(
            (how.series.attempts(), how.series.as_slice()[0].rate),
            (3, Rate::OFDM_54)
        );
    }

    #[test]
    fn what_no_adapter_can_send() {
        assert!(how(&sent(&[0x08, 0], 0), 6115).is_none(), "6 GHz");
        assert!(how(&sent(&[0x0b, 0], 0), 5180).is_none(), "no version of 802.11");
        let mut strange = sent(&[0x08, 0], 0);
        strange.plan[0].index = 12;
        assert!(how(&strange, 5180).is_none(), "no such rate");
    }
}
