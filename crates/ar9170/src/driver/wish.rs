//! A value that an attribute is to have, without those that can only be read: these are large, and many wishes may wait.

use frame::{EdcaParams, MacAddr, RateSet};
use radio::{Attribute, BeaconTiming, Queue, ReceiveFilter, SeriesList, Token, Tsf};

#[derive(Clone, Copy, Debug)]
pub(super) enum Wish {
    Address(MacAddr),
    Bssid(MacAddr),
    Channel(u16),
    SlotTime(u16),
    Tsf(Tsf),
    TxPower(i8),
    BasicRates(RateSet),
    RtsThreshold(u16),
    Reception(bool),
    Promiscuous(bool),
    Edca(Queue, EdcaParams),
    PacketSeries(Token, SeriesList),
    BeaconTiming(BeaconTiming),
    ReceiveFilter(ReceiveFilter),
}

impl Wish {
    /// `None`: no adapter of this kind can be told so.
    pub(super) fn new(attribute: &Attribute) -> Option<Wish> {
        Some(match *attribute {
            Attribute::Address(v) => Wish::Address(v),
            Attribute::Bssid(v) => Wish::Bssid(v),
            Attribute::Channel(v) => Wish::Channel(v),
            Attribute::SlotTime(v) => Wish::SlotTime(v),
            Attribute::Tsf(v) => Wish::Tsf(v),
            Attribute::TxPower(v) => Wish::TxPower(v),
            Attribute::BasicRates(v) => Wish::BasicRates(v),
            Attribute::RtsThreshold(v) => Wish::RtsThreshold(v),
            Attribute::Reception(v) => Wish::Reception(v),
            Attribute::Promiscuous(v) => Wish::Promiscuous(v),
            Attribute::Edca(queue, v) => Wish::Edca(queue, v),
            Attribute::PacketSeries(token, v) => Wish::PacketSeries(token, v),
            Attribute::BeaconTiming(v) => Wish::BeaconTiming(v),
            Attribute::ReceiveFilter(v) => Wish::ReceiveFilter(v),
            _ => return None,
        })
    }

    pub(super) fn attribute(&self) -> Attribute {
        match *self {
            Wish::Address(v) => Attribute::Address(v),
            Wish::Bssid(v) => Attribute::Bssid(v),
            Wish::Channel(v) => Attribute::Channel(v),
            Wish::SlotTime(v) => Attribute::SlotTime(v),
            Wish::Tsf(v) => Attribute::Tsf(v),
            Wish::TxPower(v) => Attribute::TxPower(v),
            Wish::BasicRates(v) => Attribute::BasicRates(v),
            Wish::RtsThreshold(v) => Attribute::RtsThreshold(v),
            Wish::Reception(v) => Attribute::Reception(v),
            Wish::Promiscuous(v) => Attribute::Promiscuous(v),
            Wish::Edca(queue, v) => Attribute::Edca(queue, v),
            Wish::PacketSeries(token, v) => Attribute::PacketSeries(token, v),
            Wish::BeaconTiming(v) => Attribute::BeaconTiming(v),
            Wish::ReceiveFilter(v) => Attribute::ReceiveFilter(v),
        }
    }
}
