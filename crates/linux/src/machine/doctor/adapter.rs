//! What is said about the adapter, and about the rights of who asks.

use rustix::thread::CapabilitySet;

use super::super::network::Network;
use super::super::tree::{Tree, show_cpus};
use super::{Finding, State, found, good};

/// What this user may do; read from the process and not from files.
pub(super) fn rights(tree: &Tree) -> Finding {
    use rustix::process::{Resource, getrlimit};
    let name = "rights";
    if !tree.is_real() {
        return good(name, "not looked at in a folder");
    }
    let effective = rustix::thread::capabilities(None).map(|sets| sets.effective);
    let effective = effective.unwrap_or(CapabilitySet::empty());
    let limit = |resource| getrlimit(resource).current;
    match &missing(effective, limit(Resource::Rtprio), limit(Resource::Memlock))[..] {
        [] => good(name, "SCHED_FIFO and locked memory"),
        some => found(
            name,
            State::Costs,
            format!("this user may not have {}", some.join(" nor ")),
            "without them the application waits for others, and for pages that were taken from it",
            "Run as root, or set rtprio 98 and memlock unlimited for this user in /etc/security/limits.d.",
        ),
    }
}

/// What is not allowed: each has a capability of its own, or a limit; `None` is no limit.
fn missing(effective: CapabilitySet, rtprio: Option<u64>, memlock: Option<u64>) -> Vec<&'static str> {
    let may = |capability, limit: Option<u64>, wanted| {
        effective.contains(capability) || limit.is_none_or(|limit| limit >= wanted)
    };
    let rights = [
        (may(CapabilitySet::SYS_NICE, rtprio, 90), "SCHED_FIFO"),
        (
            may(CapabilitySet::IPC_LOCK, memlock, 64 << 20),
            "64 MiB of locked memory",
        ),
    ];
    rights
        .into_iter()
        .filter_map(|(may, what)| (!may).then_some(what))
        .collect()
}

pub(super) fn interrupts(tree: &Tree, network: &Network) -> Finding {
    let name = "adapter-interrupts";
    let cost = "the adapter's interrupt interrupts the application, or waits for it";
    if network.irqs.is_empty() {
        let seen = format!("{} has no interrupt", network.iface);
        return found(name, State::Unknown, seen, cost, "");
    }
    let mut cpus: Vec<usize> = network
        .irqs
        .iter()
        .flat_map(|irq| tree.cpus(&format!("/proc/irq/{irq}/smp_affinity_list")))
        .collect();
    cpus.sort_unstable();
    cpus.dedup();
    let irqs: Vec<String> = network.irqs.iter().map(u32::to_string).collect();
    let whose = if network.shared {
        " (of its bus controller)"
    } else {
        ""
    };
    let seen = format!("{}{whose} on CPU {}", irqs.join(", "), show_cpus(&cpus));
    match cpus.len() {
        0 => found(
            name,
            State::Unknown,
            format!("{}: the kernel does not say where", irqs.join(", ")),
            cost,
            "",
        ),
        1 => good(name, seen),
        _ => found(
            name,
            State::Costs,
            seen,
            cost,
            "sdmac tune --iface gives it a CPU of its own.",
        ),
    }
}

pub(super) fn bus(network: &Network) -> Finding {
    let name = "adapter-bus";
    let driver = network.driver.as_deref().unwrap_or("no driver");
    match network.bus.as_deref() {
        Some("usb") => found(
            name,
            State::Costs,
            format!("usb, {driver}"),
            "a frame waits for the bus: requests and confirms are sent in the turns of the controller, together with others",
            "Take an adapter on PCI Express when microseconds count; sdmac measure and certify tell what this one does.",
        ),
        Some(bus) => good(name, format!("{bus}, {driver}")),
        None => found(name, State::Unknown, "no device behind the interface", "", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_right_has_a_capability_of_its_own() {
        const FIFO: &str = "SCHED_FIFO";
        const MEMORY: &str = "64 MiB of locked memory";
        let (nice, lock) = (CapabilitySet::SYS_NICE, CapabilitySet::IPC_LOCK);
        let few = Some(64 << 10);
        assert_eq!(
            missing(nice, Some(0), few),
            [MEMORY],
            "mlockall asks for CAP_IPC_LOCK"
        );
        assert_eq!(missing(lock, Some(0), few), [FIFO]);
        assert_eq!(missing(CapabilitySet::empty(), Some(0), few), [FIFO, MEMORY]);
        assert!(missing(nice | lock, Some(0), few).is_empty());
        assert!(missing(CapabilitySet::empty(), Some(90), None).is_empty());
    }
}
