//! Protection of data frames, where the network has a key and this crate its feature `ccmp`. Without the feature nothing of
//! it is there, not even memory.

#[cfg(feature = "ccmp")]
use super::super::ccmp::{self, Ccmp, CcmpCounters};
use super::config::IbssConfig;

/// Octets that a data frame may become longer by.
#[cfg(feature = "ccmp")]
pub(super) const MORE_OCTETS: usize = ccmp::OVERHEAD_OCTETS;
/// Octets that a data frame may become longer by.
#[cfg(not(feature = "ccmp"))]
pub(super) const MORE_OCTETS: usize = 0;

/// Memory for a frame that is opened.
#[cfg(feature = "ccmp")]
pub(super) const OPEN_OCTETS: usize = super::super::data::MAX_DATA_OCTETS;
/// Memory for a frame that is opened.
#[cfg(not(feature = "ccmp"))]
pub(super) const OPEN_OCTETS: usize = 0;

/// What protects data frames, if anything does.
#[derive(Clone, Debug)]
pub(super) struct Protection {
    #[cfg(feature = "ccmp")]
    ccmp: Option<Ccmp>,
}

#[cfg(feature = "ccmp")]
impl Protection {
    pub(super) fn new(config: &IbssConfig) -> Protection {
        Protection {
            ccmp: config.secret.as_ref().map(Ccmp::new),
        }
    }

    pub(super) fn counters(&self) -> Option<&CcmpCounters> {
        self.ccmp.as_ref().map(Ccmp::counters)
    }

    pub(super) fn number_from(&mut self, first_pn: u64) {
        if let Some(ccmp) = &mut self.ccmp {
            ccmp.number_from(first_pn);
        }
    }

    /// Protects the frame of `octets` octets in `mpdu`, and tells those that it has then; `None`: it cannot be sent.
    pub(super) fn seal(&mut self, mpdu: &mut [u8], octets: usize) -> Option<usize> {
        match &mut self.ccmp {
            Some(ccmp) => ccmp.seal(mpdu, octets),
            None => Some(octets),
        }
    }

    /// The frame without protection; `None` if it is not as the network wants it.
    pub(super) fn open<'o>(&mut self, mpdu: &'o [u8], out: &'o mut [u8; OPEN_OCTETS]) -> Option<&'o [u8]> {
        match &mut self.ccmp {
            Some(ccmp) => ccmp.open(mpdu, out).ok(),
            None => Some(mpdu),
        }
    }
}

#[cfg(not(feature = "ccmp"))]
impl Protection {
    pub(super) fn new(_: &IbssConfig) -> Protection {
        Protection {}
    }

    pub(super) fn seal(&mut self, _: &mut [u8], octets: usize) -> Option<usize> {
        Some(octets)
    }

    pub(super) fn open<'o>(&mut self, mpdu: &'o [u8], _: &'o mut [u8; OPEN_OCTETS]) -> Option<&'o [u8]> {
        Some(mpdu)
    }
}

/// Whether networks of this station are protected.
pub(super) fn is_on(config: &IbssConfig) -> bool {
    #[cfg(feature = "ccmp")]
    return config.secret.is_some();
    #[cfg(not(feature = "ccmp"))]
    {
        let _ = config;
        false
    }
}
