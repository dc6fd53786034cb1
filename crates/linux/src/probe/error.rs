//! Why planes cannot be probed.

use std::io;

/// Each is one sentence that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel has no such source of events.
    #[error(
        "this kernel cannot be probed for the planes t2 to t8 (there is no {0}): use one with CONFIG_KPROBE_EVENTS, as \
         those of the distributions are, or measure without probes"
    )]
    NoProbes(String),
    /// The kernel does not tell its types.
    #[error(
        "this kernel has no fentry for this module (there is no {0}): use one with CONFIG_DEBUG_INFO_BTF_MODULES, as \
         those of the distributions are, or --probes=kprobe"
    )]
    NoTypes(String),
    /// It tells something else.
    #[error("cannot read the types of {0}: {1}; use --probes=kprobe")]
    Types(String, super::btf::BtfError),
    /// A right is missing for programs.
    #[error(
        "not allowed to put programs into the kernel, for want of CAP_SYS_ADMIN, CAP_BPF or CAP_PERFMON: run as root, or \
         use --probes=kprobe, which takes CAP_PERFMON only; a kernel in lockdown forbids both to all"
    )]
    NoBpf,
    /// A right is missing.
    #[error(
        "not allowed to probe the kernel, for want of CAP_PERFMON: run as root, or give the program the capability \
         (setcap cap_net_admin,cap_net_raw,cap_perfmon+ep); a kernel in lockdown forbids it to all"
    )]
    NoPermission,
    /// None of the functions is there.
    #[error("none of the functions to probe is in this kernel ({0}): is the module mac80211 loaded?")]
    NoFunction(String),
    /// Too many descriptors.
    #[error("probes need {0} file descriptors, one for each function and CPU: raise the limit (ulimit -n)")]
    Descriptors(usize),
    /// The registers of this processor.
    #[error("probes read arguments from registers, which is written for x86-64 and AArch64 alone")]
    Processor,
    /// Anything else.
    #[error("cannot probe {function}: {source}")]
    Kernel {
        /// Which function.
        function: String,
        /// What the kernel said.
        source: io::Error,
    },
}
