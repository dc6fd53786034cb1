//! What can go wrong before a radio runs.

use std::io;

/// Why there is no radio, or why it ended. Each is one sentence that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No nl80211.
    #[error(
        "this kernel has no 802.11 stack: load the module cfg80211, or use a kernel with CONFIG_CFG80211"
    )]
    NoStack,
    /// A capability (capabilities(7)) is missing.
    #[error(
        "not allowed to {what}, for want of {capability}: run as root, or give the program the capability \
         (setcap cap_net_admin,cap_net_raw,cap_sys_nice,cap_ipc_lock+ep)"
    )]
    NoPermission {
        /// What was tried.
        what: &'static str,
        /// Which one.
        capability: &'static str,
    },
    /// The name is that of no radio.
    #[error("there is no radio `{name}`; there is {}", list(.have))]
    NoSuchRadio {
        /// What was asked for.
        name: String,
        /// What there is.
        have: Vec<String>,
    },
    /// The driver has no monitor interfaces.
    #[error("radio {wiphy} has no monitor interfaces: its driver cannot send frames made elsewhere")]
    NoMonitor {
        /// Which radio.
        wiphy: String,
    },
    /// The driver has no active monitor interfaces, and one was asked for.
    #[error(
        "radio {wiphy} has no active monitor interfaces: nobody would acknowledge what it receives; \
         ask for a plain one if that is enough"
    )]
    NoActiveMonitor {
        /// Which radio.
        wiphy: String,
    },
    /// A process of ours runs it already.
    #[error("radio {wiphy} is in use by another sdmac: end that one first")]
    InUse {
        /// Which radio.
        wiphy: String,
    },
    /// The channel is not one of the radio's.
    #[error("radio {wiphy} cannot be set to {mhz} MHz: {why}")]
    Channel {
        /// Which radio.
        wiphy: String,
        /// Centre frequency asked for.
        mhz: u16,
        /// Why, and what to do.
        why: &'static str,
    },
    /// A number out of its range.
    #[error("{0}")]
    Config(&'static str),
    /// The certificate is about something else.
    #[error(
        "the certificate is for {what} `{certified}`, and this is `{now}`: make a new one with `sdmac certify`"
    )]
    Certificate {
        /// What differs.
        what: &'static str,
        /// In the certificate.
        certified: String,
        /// Here.
        now: String,
    },
    /// The kernel module is not loaded.
    #[error(
        "there is no /dev/sdmac: load the module sdmac_confirm (folder kernel/ of the project: make, then insmod \
         sdmac_confirm.ko), or let outcomes come up through the monitor"
    )]
    NoDevice,
    /// The ordinary interface that was named cannot carry frames.
    #[error("frames cannot go through `{interface}`: {why}")]
    Ordinary {
        /// Its name.
        interface: String,
        /// Why, and what to do.
        why: String,
    },
    /// Outcomes were to come up by a way that knows nothing of these requests.
    #[error("outcomes of requests do not come up through {path}: {why}")]
    NoPath {
        /// Its name.
        path: &'static str,
        /// Why, and what to choose.
        why: &'static str,
    },
    /// Planes were to be probed, and cannot be.
    #[error(transparent)]
    Probe(#[from] crate::probe::Error),
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
    /// For what needs `capability`.
    pub(super) fn of(what: &'static str, capability: &'static str) -> impl Fn(io::Error) -> Error {
        move |source| match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Error::NoPermission { what, capability },
            _ => Error::Kernel { what, source },
        }
    }

    /// For control through netlink.
    pub(super) fn control(what: &'static str) -> impl Fn(io::Error) -> Error {
        Error::of(what, "CAP_NET_ADMIN")
    }

    /// For packet sockets.
    pub(super) fn packet(what: &'static str) -> impl Fn(io::Error) -> Error {
        Error::of(what, "CAP_NET_RAW")
    }
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none".into(),
        names => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_names_the_capability() {
        let error = Error::control("create an interface")(io::Error::from_raw_os_error(libc::EPERM));
        let text = error.to_string();
        assert!(
            text.contains("create an interface") && text.contains("CAP_NET_ADMIN"),
            "{text}"
        );
        let error = Error::packet("open a packet socket")(io::Error::from_raw_os_error(libc::EPERM));
        assert!(error.to_string().contains("CAP_NET_RAW"));
        let error = Error::packet("open a packet socket")(io::Error::from_raw_os_error(libc::EMFILE));
        assert!(matches!(error, Error::Kernel { .. }));
    }

    #[test]
    fn a_wrong_name_lists_the_right_ones() {
        let error = |have: &[&str]| Error::NoSuchRadio {
            name: "phy9".into(),
            have: have.iter().map(|s| s.to_string()).collect(),
        };
        assert_eq!(error(&[]).to_string(), "there is no radio `phy9`; there is none");
        assert_eq!(
            error(&["phy0", "phy1"]).to_string(),
            "there is no radio `phy9`; there is phy0, phy1"
        );
    }
}
