//! Attributes of an adapter, its queues and its packets: read and set.

use crate::core::Core;
use frame::MacAddr;
use radio::{
    Attribute, AttributeName, BeaconTiming, Capabilities, PacketState, ReceiveFilter, SetError, Settable, Tsf,
};

/// Planes that a host model can stamp: all nine.
const ALL_PLANES: u16 = 0x1ff;

impl Core {
    /// Reads an attribute of an adapter.
    pub(crate) fn get_attribute(&self, a: usize, node: u32, name: AttributeName) -> Option<Attribute> {
        let x = &self.adapters[a];
        let n = &self.nodes[node as usize];
        Some(match name {
            AttributeName::Capabilities => Attribute::Capabilities(Capabilities {
                not_before: n.honours_not_before,
                abort: true,
                one_shot: true,
                attempts: true,
                tsf: true,
                ack_signal: x.ack_signal,
                series: radio::tx::MAX_SERIES as u8,
                planes: if n.host.is_some() { ALL_PLANES } else { 1 | 1 << 8 },
                max_outstanding: x.queue_limit,
                max_frame_octets: radio::MAX_FRAME_OCTETS as u16,
                // a station follows the clock of its network in software, and no frame waits for another at a host here, so
                // that there is nothing to spare it
                settable: Settable::ALL
                    .without(&Attribute::BeaconTiming(BeaconTiming::default()))
                    .without(&Attribute::ReceiveFilter(ReceiveFilter::All)),
            }),
            AttributeName::Address => Attribute::Address(crate::adapter::address(x.address)),
            AttributeName::Bssid => Attribute::Bssid(crate::adapter::address(x.bssid)),
            AttributeName::Channel => Attribute::Channel(x.mhz),
            AttributeName::AckTimeout => Attribute::AckTimeout((x.ack_timeout_ns / 1_000) as u16),
            AttributeName::SlotTime => Attribute::SlotTime((x.slot_ns / 1_000) as u16),
            AttributeName::Tsf => Attribute::Tsf(Tsf(x.tsf_us(self.now))),
            AttributeName::TxPower => Attribute::TxPower(x.tx_dbm.round() as i8),
            AttributeName::BasicRates => Attribute::BasicRates(x.basic),
            AttributeName::RtsThreshold => Attribute::RtsThreshold(x.rts_threshold),
            AttributeName::CarrierSense => Attribute::CarrierSense(x.carrier_sense),
            AttributeName::VirtualCarrierSense => Attribute::VirtualCarrierSense(x.virtual_carrier_sense),
            AttributeName::Reception => Attribute::Reception(x.reception),
            AttributeName::AckGeneration => Attribute::AckGeneration(x.ack_generation),
            AttributeName::Promiscuous => Attribute::Promiscuous(x.promiscuous),
            AttributeName::Counters => Attribute::Counters(x.counters),
            AttributeName::Edca(q) => Attribute::Edca(q, x.dcu[q.index()].params),
            AttributeName::BeaconTiming => return None,
            AttributeName::QueueLength(q) => Attribute::QueueLength(q, x.dcu[q.index()].frames.len() as u16),
            AttributeName::Packet(token) => {
                let id = n.open.iter().find(|(t, _)| *t == token)?.1;
                let f = &self.frames[id];
                let at_head = x.dcu[f.how.queue.index()].frames.front() == Some(id);
                Attribute::Packet(
                    token,
                    PacketState {
                        attempts: f.attempts,
                        at_head,
                        stamps: f.stamps,
                    },
                )
            }
            AttributeName::ReceiveFilter => return None,
        })
    }

    /// Changes an attribute of an adapter.
    pub(crate) fn set_attribute(&mut self, a: usize, node: u32, value: Attribute) -> Result<(), SetError> {
        let now = self.now;
        let x = &mut self.adapters[a];
        match value {
            Attribute::Address(v) if !v.is_group() && v != MacAddr::ZERO => {
                x.address = crate::adapter::key(v)
            }
            Attribute::Bssid(v) => x.bssid = crate::adapter::key(v),
            Attribute::Channel(mhz) if (2_400..6_000).contains(&mhz) => {
                let channel = self.channel_index(mhz).ok_or(SetError::OutOfRange)?;
                self.retune(a, mhz, channel);
            }
            Attribute::AckTimeout(us) if us > 0 => x.ack_timeout_ns = u64::from(us) * 1_000,
            // a station must notice a frame within a slot
            Attribute::SlotTime(us) if u64::from(us) * 1_000 > u64::from(x.rules.sense_ns) => {
                x.slot_ns = u64::from(us) * 1_000;
            }
            Attribute::Tsf(t) => x.set_tsf(now, t.0),
            Attribute::TxPower(dbm) if (-20..=30).contains(&dbm) => {
                x.tx_dbm = f64::from(dbm);
                self.antennas[a].tx_dbm = f64::from(dbm);
                self.links.touch_radio(a as u32);
            }
            Attribute::BasicRates(v) if !v.is_empty() => {
                x.basic = v;
                x.memorise_ack(x.ack_memo.0);
            }
            Attribute::RtsThreshold(v) => x.rts_threshold = v,
            Attribute::CarrierSense(on) => self.switch_carrier_sense(a, on),
            Attribute::VirtualCarrierSense(on) => {
                x.virtual_carrier_sense = on;
                if !on {
                    self.forget_nav(a);
                }
            }
            Attribute::Reception(on) => self.switch_reception(a, on),
            Attribute::AckGeneration(on) => {
                x.ack_generation = on;
                if !on {
                    // an ACK that is due but not on the air yet stays away; a CTS does not
                    x.response.take_if(|r| r.cts_duration_us.is_none());
                }
            }
            Attribute::Promiscuous(on) => x.promiscuous = on,
            Attribute::Edca(q, p) => {
                let window = |cw: u16| cw <= 32_767 && (cw + 1).is_power_of_two();
                if !window(p.cw_min) || !window(p.cw_max) || p.cw_min > p.cw_max || p.aifsn > 15 {
                    return Err(SetError::OutOfRange);
                }
                let d = &mut x.dcu[q.index()];
                d.params = p;
                d.cw = p.cw_min;
            }
            Attribute::PacketSeries(token, series) => {
                let open = &self.nodes[node as usize].open;
                let id = open
                    .iter()
                    .find(|(t, _)| *t == token)
                    .map(|(_, f)| *f)
                    .ok_or(SetError::NotFound)?;
                if self.frames[id].attempts > 0 {
                    return Err(SetError::OutOfRange);
                }
                self.frames[id].how.series = series;
            }
            Attribute::Capabilities(_)
            | Attribute::Counters(_)
            | Attribute::QueueLength(..)
            | Attribute::Packet(..)
            | Attribute::BeaconTiming(_)
            | Attribute::ReceiveFilter(_) => return Err(SetError::NotSupported),
            _ => return Err(SetError::OutOfRange),
        }
        Ok(())
    }
}
