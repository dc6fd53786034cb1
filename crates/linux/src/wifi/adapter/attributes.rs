//! What an adapter can do, and its attributes: which are read and set here, and which take the keeper.

use frame::MacAddr;
use radio::{Attribute, Capabilities, SetError, Settable, Tsf};

use super::super::config::TsfSource;
use super::super::ethernet;
use super::super::softmac::SoftMac;
use super::Adapter;
use crate::clock::monotonic_ns;

impl Adapter {
    /// Sets an attribute that takes no kernel; `None` if it takes the keeper.
    pub(in crate::wifi) fn set_here(&mut self, attribute: Attribute) -> Option<Result<(), SetError>> {
        if !self.settable().contains(&attribute) {
            return Some(Err(SetError::NotSupported));
        }
        if let Some(softmac) = self.softmac_of(&attribute) {
            return Some(softmac.set(attribute));
        }
        match attribute {
            Attribute::Tsf(tsf) => {
                self.tsf_offset_us = tsf.0.wrapping_sub(monotonic_ns() / 1_000);
                Some(Ok(()))
            }
            _ => None,
        }
    }

    /// Whether [`set_here`](Self::set_here) does it.
    pub(in crate::wifi) fn sets_here(&self, attribute: &Attribute) -> bool {
        matches!(attribute, Attribute::Tsf(_))
            || !self.settable().contains(attribute)
            || self.softmac_of(attribute).is_some()
    }

    /// The switches that an attribute belongs to; what Linux has is none of them.
    fn softmac_of(&self, attribute: &Attribute) -> Option<&SoftMac> {
        let softmac = self.config.softmac.as_ref()?;
        (!self.by_linux().contains(attribute) && softmac.settable().contains(attribute)).then_some(softmac)
    }

    /// Sets an attribute of an adapter without a host; it is done when this returns.
    pub(in crate::wifi) fn set(&mut self, attribute: Attribute) -> Result<(), SetError> {
        if let Some(result) = self.set_here(attribute) {
            return result;
        }
        let keeper = self.keeper.as_mut().ok_or(SetError::NotSupported)?;
        let result = keeper.set(attribute);
        self.view = keeper.view();
        result
    }

    fn settable(&self) -> Settable {
        let softmac = self.config.softmac.as_ref();
        self.by_linux()
            .and(softmac.map_or(Settable::NONE, SoftMac::settable))
    }

    fn by_linux(&self) -> Settable {
        let filter = Settable::NONE
            .with(&Attribute::Bssid(MacAddr::ZERO))
            .with(&Attribute::Promiscuous(false));
        let all = match self.ordinary {
            // The network's.
            Some(_) => filter,
            None => filter.with(&Attribute::Channel(0)).with(&Attribute::TxPower(0)),
        };
        match self.config.tsf {
            TsfSource::Adapter => all,
            TsfSource::Computer => all.with(&Attribute::Tsf(Tsf(0))),
        }
    }

    /// What it can do, given that `outstanding` requests may be open at once.
    pub(in crate::wifi) fn capabilities(&self, outstanding: u16) -> Capabilities {
        use radio::Plane::{T1, T8, T9};
        let settable = self.settable();
        if self.ordinary.is_some() {
            return Capabilities {
                not_before: true,
                abort: true,
                one_shot: false,
                attempts: false,
                series: 1,
                tsf: false,
                ack_signal: false,
                planes: [T1, T9].iter().fold(0, |planes, p| planes | 1 << p.index()),
                max_outstanding: outstanding,
                max_frame_octets: ethernet::MAX_FRAME_OCTETS,
                settable,
            };
        }
        // As that interface Linux would send, with the rate table of the stations that it knows.
        let one_shot = match self.view.neighbours().contains(&self.view.wanted.me) {
            true => self.proven.one_shot_to_stations,
            false => self.proven.one_shot,
        };
        Capabilities {
            not_before: true,
            abort: true,
            one_shot: one_shot == Some(true),
            attempts: true,
            // what a monitor sends has one rate, whatever the driver could
            series: 1,
            tsf: false,
            // the status copy of a monitor has no place for it, whatever the driver knows
            ack_signal: false,
            planes: [T1, T8, T9].iter().fold(0, |planes, p| planes | 1 << p.index()),
            max_outstanding: outstanding,
            max_frame_octets: radio::MAX_FRAME_OCTETS as u16,
            settable,
        }
    }

    /// The computer's TSF.
    pub(super) fn tsf(&self) -> Tsf {
        Tsf((monotonic_ns() / 1_000).wrapping_add(self.tsf_offset_us))
    }

    /// Reads an attribute that does not depend on requests.
    pub(in crate::wifi) fn get(&self, name: radio::AttributeName) -> Option<Attribute> {
        use radio::AttributeName as Name;
        Some(match name {
            Name::Address => Attribute::Address(self.view.wanted.me),
            Name::Bssid => Attribute::Bssid(self.view.wanted.bssid),
            Name::Channel => Attribute::Channel(self.view.mhz),
            Name::TxPower => Attribute::TxPower(self.view.tx_power_dbm?),
            Name::Promiscuous => Attribute::Promiscuous(self.view.wanted.promiscuous),
            Name::Tsf if self.config.tsf == TsfSource::Computer => Attribute::Tsf(self.tsf()),
            _ => return None,
        })
    }
}
