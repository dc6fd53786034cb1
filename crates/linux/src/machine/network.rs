//! The adapter in the computer: its driver, its bus, its interrupts.

use super::Tree;

/// What the kernel says about a network interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Network {
    /// Name of the interface.
    pub iface: String,
    /// Driver; `None` for interfaces without a device.
    pub driver: Option<String>,
    /// `pci`, `usb`, ...
    pub bus: Option<String>,
    /// Interrupts of the adapter, or of the controller that its bus hangs on.
    pub irqs: Vec<u32>,
    /// The interrupts are the bus controller's, which others may use as well.
    pub shared: bool,
}

/// How far up from the device its interrupt may be: interface, hubs, root hub, controller.
const UP: usize = 10;

impl Network {
    /// `None` if there is no such interface.
    pub fn read(tree: &Tree, iface: &str) -> Option<Network> {
        let plain = !iface.is_empty() && !iface.contains('/') && iface != "." && iface != "..";
        let here = format!("/sys/class/net/{iface}");
        if !plain || !tree.place(&here).exists() {
            return None;
        }
        let link = |path: &str| {
            let target = std::fs::read_link(tree.place(path)).ok()?;
            Some(target.file_name()?.to_str()?.to_owned())
        };
        let mut network = Network {
            iface: iface.to_owned(),
            driver: link(&format!("{here}/device/driver")),
            bus: link(&format!("{here}/device/subsystem")),
            irqs: Vec::new(),
            shared: false,
        };
        let Ok(mut device) = std::fs::canonicalize(tree.place(&format!("{here}/device"))) else {
            return Some(network);
        };
        for step in 0..UP {
            let messages = std::fs::read_dir(device.join("msi_irqs")).into_iter().flatten();
            let mut irqs: Vec<u32> = (messages.flatten())
                .filter_map(|e| e.file_name().to_str()?.parse().ok())
                .collect();
            let line = std::fs::read_to_string(device.join("irq")).ok();
            let line: Option<u32> = line.and_then(|text| text.trim().parse().ok());
            if irqs.is_empty() {
                irqs.extend(line.filter(|&irq| irq > 0));
            }
            irqs.sort_unstable();
            if !irqs.is_empty() {
                (network.irqs, network.shared) = (irqs, step > 0);
                break;
            }
            if !device.pop() {
                break;
            }
        }
        Some(network)
    }

    /// Threads that handle its interrupts, where the kernel has such (PREEMPT_RT, `threadirqs`): their process ids.
    pub fn irq_threads(&self, tree: &Tree) -> Vec<u32> {
        let ours = |pid: &u32| {
            let name = tree.read(&format!("/proc/{pid}/comm")).unwrap_or_default();
            let irq = name.strip_prefix("irq/").and_then(|rest| rest.split('-').next());
            irq.and_then(|n| n.parse().ok())
                .is_some_and(|n: u32| self.irqs.contains(&n))
        };
        tree.numbers("/proc").into_iter().filter(ours).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_usb_adapter_uses_the_interrupt_of_its_controller() {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::at(dir.path());
        let pci = tree.place("/sys/devices/pci0/0000:00:14.0");
        let usb = pci.join("usb1/1-2/1-2:1.0");
        fs::create_dir_all(usb.join("net/wlan1")).unwrap();
        fs::create_dir_all(pci.join("msi_irqs/126")).unwrap();
        for folder in [
            "/sys/class/net/wlan1",
            "/sys/bus/usb/drivers/carl9170",
            "/proc/41",
            "/proc/42",
        ] {
            fs::create_dir_all(tree.place(folder)).unwrap();
        }
        symlink(&usb, tree.place("/sys/class/net/wlan1/device")).unwrap();
        symlink(tree.place("/sys/bus/usb/drivers/carl9170"), usb.join("driver")).unwrap();
        symlink(tree.place("/sys/bus/usb"), usb.join("subsystem")).unwrap();
        fs::write(tree.place("/proc/41/comm"), "irq/126-xhci_hcd\n").unwrap();
        fs::write(tree.place("/proc/42/comm"), "irq/12-ahci\n").unwrap();
        let n = Network::read(&tree, "wlan1").unwrap();
        assert_eq!(
            (n.driver.as_deref(), n.bus.as_deref()),
            (Some("carl9170"), Some("usb"))
        );
        assert_eq!((&n.irqs[..], n.shared), (&[126][..], true));
        assert_eq!(n.irq_threads(&tree), [41]);
        // one with a line of its own
        fs::write(usb.join("irq"), "17\n").unwrap();
        let n = Network::read(&tree, "wlan1").unwrap();
        assert_eq!((&n.irqs[..], n.shared), (&[17][..], false));
    }

    #[test]
    fn interfaces_without_device_or_name() {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::at(dir.path());
        fs::create_dir_all(tree.place("/sys/class/net/lo")).unwrap();
        let n = Network::read(&tree, "lo").unwrap();
        assert_eq!((n.driver, n.irqs.len()), (None, 0));
        for name in ["wlan9", "", "..", "../net/lo"] {
            assert_eq!(Network::read(&tree, name), None, "{name}");
        }
    }
}
