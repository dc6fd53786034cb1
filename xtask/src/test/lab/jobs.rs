//! What the lab runs: tests, and how their guest is started. The longest first, since several run at a time.

/// The tests of one program, in one guest or outside of guests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    /// Folder of the package.
    pub(super) folder: &'static str,
    /// An integration test, or `lib`.
    pub(super) name: &'static str,
    /// Its arguments, with spaces between them.
    pub(super) args: &'static str,
    /// Arguments of `sdmac lab run`; `None`: the tests start guests themselves.
    pub(super) guest: Option<&'static str>,
    /// The kernel it takes.
    pub(super) kernel: Kernel,
    /// Left to `--all`: the same as another one, on another kernel or driver.
    pub(super) rare: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kernel {
    /// The lab's own, in User-Mode-Linux.
    Own,
    /// Debian's, in QEMU.
    Debian,
}

const CLI: &str = "crates/cli";
const LAB: &str = "crates/lab";
const LINUX: &str = "crates/linux";

const fn job(folder: &'static str, name: &'static str, args: &'static str) -> Job {
    Job {
        folder,
        name,
        args,
        guest: None,
        kernel: Kernel::Own,
        rare: false,
    }
}

impl Job {
    /// In a guest of the lab's own kernel.
    const fn own(self, guest: &'static str) -> Job {
        Job {
            guest: Some(guest),
            ..self
        }
    }

    /// In a guest of Debian's kernel.
    const fn debian(self, guest: &'static str) -> Job {
        self.own(guest).starts_debian()
    }

    /// Outside of guests, and starts Debian's kernel.
    const fn starts_debian(self) -> Job {
        Job {
            kernel: Kernel::Debian,
            ..self
        }
    }

    const fn rare(self) -> Job {
        Job { rare: true, ..self }
    }
}

/// As far as it needs no virtual time.
const NO_TDMA: &str = "--skip tdma::";
const NO_PROTOCOLS: &str = "--skip tdma:: --skip ibss::";
const OUTSIDE: &str = "--ignored --test-threads=1";
const BUT_THE_CHAIN: &str = "--ignored --test-threads=1 --skip whole_chain";
const THE_CHAIN: &str = "--ignored --nocapture --test-threads=1 whole_chain";
/// The same, with what the tests print of sticks and outcomes.
const SHOWN: &str = "--ignored --nocapture --test-threads=1";
/// Comparisons that are left to `--all`: each time the air's own tests have contention, the agreement on slots, copies on two adapters
/// and rates.
const LONG_COMPARISONS: &str = "--ignored --test-threads=1 cells_with_gateways contention_ hosts_that_agree losses_in_bursts \
    power_save_over proactive_redundancy rates_by_rsin";
const SHORT_COMPARISONS: &str = "--ignored --test-threads=1 --skip cells_with_gateways --skip contention_ --skip hosts_that_agree \
    --skip losses_in_bursts --skip power_save_over --skip proactive_redundancy --skip rates_by_rsin";
/// What is told of the packets of ordinary interfaces, by the radio and by the socket, and what an access point carries; the
/// news of a radio; and how punctual a host wakes up.
const ORDINARY: &str = "reports:: ordinary:: keeper:: wait::";
/// What goes wrong with frames pending, with outcomes by the monitor and by our module.
const PENDING: &str = "_with_frames_pending";

// Drivers with a rate table of their own (rctbl=1, as ath9k has it) and without: what holds for requests has to hold for both.
const PLAIN: &str = "--radios 4 --param mac80211_hwsim.rctbl=0";
const TABLE: &str = "--radios 4 --param mac80211_hwsim.rctbl=1";
const STANDARD: &str = "--qemu standard --radios 4";
const RT: &str = "--qemu rt --radios 4";
const STANDARD_2: &str = "--qemu standard --radios 4 --cpus 2";
const RT_2: &str = "--qemu rt --radios 4 --cpus 2";
// paths are as seen from the folder of the package
const STANDARD_MODULE: &str = "--qemu standard --radios 4 --module ../../kernel";
const RT_MODULE: &str = "--qemu rt --radios 4 --module ../../kernel";

/// All of them.
pub(super) const JOBS: &[Job] = &[
    job(CLI, "lab_compare", SHORT_COMPARISONS),
    job(CLI, "lab_compare", LONG_COMPARISONS).rare(),
    job(LAB, "air", "").own("--radios 9"),
    job(LAB, "air", "--ignored").own("--radios 9").rare(),
    job(CLI, "lab_usb", SHOWN).starts_debian(),
    job(CLI, "lab_sticks", SHOWN).starts_debian(),
    job(LAB, "hwsim", NO_PROTOCOLS).debian(STANDARD).rare(),
    job(LAB, "hwsim", NO_PROTOCOLS).debian(RT).rare(),
    job(CLI, "lab_radios", BUT_THE_CHAIN),
    job(CLI, "lab_radios", THE_CHAIN).rare(),
    job(CLI, "lab", OUTSIDE),
    job(LINUX, "wifi", NO_TDMA).debian(RT),
    job(LINUX, "wifi", NO_TDMA).debian(STANDARD).rare(),
    job(LINUX, "lib", "certify").own(PLAIN),
    job(LINUX, "lib", "certify").own(TABLE).rare(),
    job(CLI, "lab_confirm", SHOWN).starts_debian(),
    job(LAB, "hwsim", "").own(PLAIN),
    job(LAB, "hwsim", "").own(TABLE).rare(),
    job(LINUX, "wifi", "").own(PLAIN).rare(),
    job(LINUX, "wifi", "").own(TABLE),
    // what takes modules: the one of the folder `kernel/`, and a driver that goes
    job(LINUX, "wifi_confirm", "").debian(STANDARD_MODULE),
    job(LINUX, "wifi_confirm", "").debian(RT_MODULE).rare(),
    job(LINUX, "wifi_module", "").debian(STANDARD_MODULE),
    job(LINUX, "wifi_module", "").debian(RT_MODULE).rare(),
    job(LINUX, "wifi_no_allocation", "").debian(RT_MODULE).rare(),
    job(LINUX, "wifi_no_allocation", "")
        .debian(STANDARD_MODULE)
        .rare(),
    job(LINUX, "wifi", PENDING).debian(RT_MODULE),
    job(LINUX, "wifi", PENDING).debian(STANDARD_MODULE).rare(),
    job(LAB, "hwsim", "by_the_device").debian(RT_MODULE),
    // the planes of frames, where the medium and the sender are on different processors
    job(LINUX, "wifi", "all_nine_planes_are").debian(STANDARD_2),
    job(LINUX, "wifi", "all_nine_planes_are").debian(RT_2).rare(),
    // a host that leaves its processor to nobody
    job(LINUX, "wifi", "a_host_that_spins").debian(RT_2),
    job(LINUX, "wifi", "a_host_that_spins").debian(STANDARD_2).rare(),
    // the places of probes, of each driver that has some
    job(LINUX, "lib", "probe::").debian("--qemu standard").rare(),
    job(LINUX, "lib", "probe::").debian("--qemu rt"),
    job(LINUX, "lib", "machine::tune").debian("--qemu standard --cpus 2"),
    job(LINUX, "lib", "host::etf").debian("--qemu standard --cpus 2"),
    job(LINUX, "wifi_cost", NO_TDMA).debian(STANDARD),
    job(LINUX, "wifi_cost", NO_TDMA).debian(RT).rare(),
    job(LINUX, "wifi_no_allocation", NO_TDMA).debian(STANDARD).rare(),
    job(LINUX, "wifi_no_allocation", NO_TDMA).debian(RT).rare(),
    job(LINUX, "wifi_no_allocation", "").own(PLAIN),
    job(LINUX, "wifi_no_allocation", "").own(TABLE).rare(),
    job(LINUX, "lib", ORDINARY).own("--radios 4"),
    job(LINUX, "wifi_confirm", "paths::").own("--radios 4"),
    job(LAB, "guest", "--ignored").own("--radios 4"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// So that nothing is checked only by `--all`.
    #[test]
    fn what_is_rare_is_like_something_that_is_not() {
        let like = |a: &Job, b: &Job| (a.folder, a.name) == (b.folder, b.name);
        for rare in JOBS.iter().filter(|job| job.rare) {
            assert!(JOBS.iter().any(|job| !job.rare && like(job, rare)), "{rare:?}");
        }
    }
}
