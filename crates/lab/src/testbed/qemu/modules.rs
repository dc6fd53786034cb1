//! Which modules a computer of the lab needs, and in which order they are loaded: each after those that it depends on.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// The files of the host, a layer of memory on top, the 802.11 stack with its simulated radios and its ciphers, the queue
/// of packets for programs, times of departure, sticks on a USB, and a driver that has no adapter here, but functions to probe.
pub const WANTED: &[&str] = &[
    "virtio_pci",
    "9pnet_virtio",
    "9p",
    "overlay",
    "ccm",
    "cmac",
    "ctr",
    "veth",
    "sch_etf",
    "mac80211_hwsim",
    "xhci_pci",
    "carl9170",
    "ath9k",
];

/// A module in the package.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Module {
    /// Name with underscores, as the kernel has it.
    pub name: String,
    /// Its file.
    pub file: PathBuf,
}

/// All modules below a folder.
///
/// # Errors
/// Folders that cannot be read.
pub fn all(folder: &Path) -> io::Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Some(name) = path.file_name().and_then(|n| n.to_str()?.strip_suffix(".ko")) {
                found.insert(name.replace('-', "_"), path);
            }
        }
    }
    Ok(found)
}

/// Those of `wanted` with everything that they depend on, in the order to load them. What is not among them is taken to be
/// in the kernel itself.
///
/// # Errors
/// A module cannot be read.
pub fn in_order(wanted: &[&str], all: &BTreeMap<String, PathBuf>) -> io::Result<Vec<Module>> {
    let mut order = Vec::new();
    for name in wanted {
        add(name, all, &mut order, 0)?;
    }
    Ok(order)
}

/// Chains of modules are shorter than this.
const DEEPEST: usize = 20;

fn add(name: &str, all: &BTreeMap<String, PathBuf>, order: &mut Vec<Module>, depth: usize) -> io::Result<()> {
    let Some(file) = all.get(name) else { return Ok(()) };
    if depth > DEEPEST || order.iter().any(|m| m.name == name) {
        return Ok(());
    }
    for other in depends(&std::fs::read(file)?) {
        add(&other, all, order, depth + 1)?;
    }
    order.push(Module {
        name: name.to_owned(),
        file: file.clone(),
    });
    Ok(())
}

/// What a module says that it depends on: `depends=a,b` in its section `.modinfo`, between zeroes.
fn depends(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|w| w == KEY) else {
        return Vec::new();
    };
    let rest = &module[at + KEY.len()..];
    let text = String::from_utf8_lossy(rest.split(|octet| *octet == 0).next().unwrap_or_default());
    let names = text.split(',').filter(|name| !name.is_empty());
    names.map(|name| name.replace('-', "_")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_after_what_it_needs() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let file = dir.path().join("kernel/net").join(format!("{name}.ko"));
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, format!("ELF\0license=GPL\0{text}\0name=x\0")).unwrap();
        };
        put("mac80211_hwsim", "depends=mac80211,cfg80211");
        put("mac80211", "depends=cfg80211,libarc4");
        put("cfg80211", "depends=rfkill");
        put("rfkill", "depends=");
        put("snd-hda", "alias=nothing");
        // a ring, which no kernel has
        put("a", "depends=b");
        put("b", "depends=a");
        let all = all(dir.path()).unwrap();
        assert_eq!(all.len(), 7);
        assert!(all.contains_key("snd_hda"));
        let order = in_order(&["cfg80211", "mac80211_hwsim", "built_in"], &all).unwrap();
        let names: Vec<_> = order.iter().map(|m| m.name.as_str()).collect();
        assert_eq!(names, ["rfkill", "cfg80211", "mac80211", "mac80211_hwsim"]);
        assert!(!in_order(&["a"], &all).unwrap().is_empty());
    }
}
