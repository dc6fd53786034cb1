//! What can go wrong for a program that wants to be the air.

use std::io;

/// Why the radios have no such air, or why it ended. Each is one sentence that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No mac80211_hwsim.
    #[error(
        "this kernel has no simulated radios: load them with `modprobe mac80211_hwsim`, or run this in \
         `sdmac lab run`, which has them without root"
    )]
    NoHwsim,
    /// No capability (capabilities(7)).
    #[error(
        "not allowed to {what}, for want of CAP_NET_ADMIN: run as root, or give the program the capability \
         (setcap cap_net_admin+ep), or run this in `sdmac lab run`"
    )]
    NoPermission {
        /// What was tried.
        what: &'static str,
    },
    /// Somebody else is the air.
    #[error(
        "another program is the air of these radios already: end it first (wmediumd, or another `sdmac air`); \
         there is one for all network namespaces that share the radios"
    )]
    Busy,
    /// The kernel gives radios with several channels to no program.
    #[error(
        "a radio here can be on several channels at once, and the kernel gives such radios to no program: load \
         mac80211_hwsim with channels=1"
    )]
    SeveralChannels,
    /// Anything else that the kernel refused.
    #[error("cannot {what}: {source}")]
    Kernel {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

impl Error {
    /// For an attempt to do something.
    pub(super) fn of(what: &'static str) -> impl Fn(io::Error) -> Error {
        move |source| match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Error::NoPermission { what },
            _ => Error::Kernel { what, source },
        }
    }

    /// For REGISTER.
    pub(super) fn of_registration(source: io::Error) -> Error {
        match source.raw_os_error() {
            Some(libc::EBUSY) => Error::Busy,
            Some(libc::EOPNOTSUPP) => Error::SeveralChannels,
            _ => Error::of("become the air of the radios")(source),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_its_sentence() {
        let text = |errno| Error::of_registration(io::Error::from_raw_os_error(errno)).to_string();
        assert!(text(libc::EPERM).contains("CAP_NET_ADMIN"));
        assert!(text(libc::EBUSY).contains("wmediumd"));
        assert!(text(libc::EOPNOTSUPP).contains("channels=1"));
        assert!(text(libc::ENOMEM).starts_with("cannot become the air of the radios: "));
        assert!(Error::NoHwsim.to_string().contains("modprobe"));
    }
}
