//! Switches of an adapter that Linux has no words for.

use std::fmt;
use std::sync::Arc;

use radio::{Attribute, SetError, Settable};

type Set = dyn Fn(Attribute) -> Result<(), SetError> + Send + Sync;

/// Switches of an adapter that nl80211 does not have (carrier sense, reception, EDCA parameters, ...) and that another way leads
/// to: a driver's own files, or the medium of simulated radios ([`crate::hwsim::Switchboard`]).
#[derive(Clone)]
pub struct SoftMac {
    settable: Settable,
    set: Arc<Set>,
}

impl SoftMac {
    /// These attributes, set by `set`. The loop of a host calls it between two events: it must return at once, must not allocate,
    /// and must not wait for an ordinary thread. `set` is also told of each new channel, once Linux has set it; it may refuse to hear
    /// of it.
    pub fn new(
        settable: Settable,
        set: impl Fn(Attribute) -> Result<(), SetError> + Send + Sync + 'static,
    ) -> SoftMac {
        SoftMac {
            settable,
            set: Arc::new(set),
        }
    }

    /// What it can set.
    pub fn settable(&self) -> Settable {
        self.settable
    }

    /// Sets an attribute.
    ///
    /// # Errors
    /// [`SetError::NotSupported`] if it is none of its own; else that of the way there.
    pub fn set(&self, attribute: Attribute) -> Result<(), SetError> {
        match self.settable.contains(&attribute) {
            true => (self.set)(attribute),
            false => Err(SetError::NotSupported),
        }
    }

    /// Tells it of a channel that Linux has set.
    pub(super) fn tuned(&self, mhz: u16) {
        let _ = (self.set)(Attribute::Channel(mhz)); // A driver knows it.
    }
}

impl fmt::Debug for SoftMac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SoftMac").field(&self.settable).finish()
    }
}

/// The same switches, not only ones that look alike.
impl PartialEq for SoftMac {
    fn eq(&self, other: &SoftMac) -> bool {
        Arc::ptr_eq(&self.set, &other.set) && self.settable == other.settable
    }
}

impl Eq for SoftMac {}
