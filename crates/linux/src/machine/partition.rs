//! CPUs that ordinary threads leave: a partition of control groups (cgroup-v2, cpuset), which takes CPUs away from all
//! other groups, whatever runs there. Who is to run on them has to go into the group ([`join`]).
//!
//! The kernel's own threads that belong to one CPU stay; what keeps those few is a boot parameter.

use std::io;

use super::Tree;
use super::tree::{cpu_list, show_cpus};

/// The group.
pub const GROUP: &str = "/sys/fs/cgroup/sdmac";
const ROOT: &str = "/sys/fs/cgroup";
const CONTROLLER: &str = "cpuset";
/// Files of a group that are used here.
const FILES: [&str; 3] = ["cpuset.cpus", "cpuset.cpus.partition", "cgroup.procs"];

fn file(name: &str) -> String {
    format!("{GROUP}/{name}")
}

fn lists(tree: &Tree, name: &str) -> bool {
    let list = tree.read(&format!("{ROOT}/{name}")).unwrap_or_default();
    list.split_ascii_whitespace().any(|word| word == CONTROLLER)
}

/// Whether this kernel has such partitions: cgroup-v2 is at its place and knows cpusets.
pub fn is_possible(tree: &Tree) -> bool {
    lists(tree, "cgroup.controllers")
}

/// Whether groups below the root have cpusets now.
pub(super) fn is_delegated(tree: &Tree) -> bool {
    lists(tree, "cgroup.subtree_control")
}

/// The CPUs that the partition has; none if there is none, or if the kernel does not keep it.
pub fn cpus(tree: &Tree) -> Vec<usize> {
    let kind = tree.read(&file("cpuset.cpus.partition"));
    match kind.as_deref() {
        Some("isolated" | "root") => cpu_list(&tree.read(&file("cpuset.cpus")).unwrap_or_default()),
        _ => Vec::new(),
    }
}

/// How the group is, in a few words.
pub(super) fn show(cpus: &[usize]) -> String {
    match cpus {
        [] => "none".to_owned(),
        [one] => format!("a partition with CPU {one}"),
        all => format!("a partition with CPUs {}", show_cpus(all)),
    }
}

/// Makes the partition, or gives it other CPUs.
pub(super) fn make(tree: &Tree, cpus: &[usize]) -> io::Result<()> {
    if !is_delegated(tree) {
        tree.write(&format!("{ROOT}/cgroup.subtree_control"), "+cpuset")?;
    }
    tree.make_group(GROUP, &FILES)?;
    tree.write(&file("cpuset.cpus"), &show_cpus(cpus))?;
    let kind = file("cpuset.cpus.partition");
    // Kernels before 6.1 have no isolated ones, in which the scheduler does not even look for balance.
    tree.write(&kind, "isolated")
        .or_else(|_| tree.write(&kind, "root"))?;
    match tree.read(&kind).filter(|now| now.contains("invalid")) {
        Some(why) => Err(io::Error::other(why)),
        None => Ok(()),
    }
}

/// Removes the partition: its CPUs and what runs in it go back to the root. `was_delegated`: groups had cpusets before.
pub(super) fn remove(tree: &Tree, was_delegated: bool) -> io::Result<()> {
    if !tree.place(GROUP).exists() {
        return Err(io::ErrorKind::NotFound.into());
    }
    for process in tree.read(&file("cgroup.procs")).unwrap_or_default().lines() {
        // One that has ended meanwhile needs no other place.
        let _ = tree.write(&format!("{ROOT}/cgroup.procs"), process);
    }
    // Its CPUs are free as soon as it is no partition, whoever is still in it.
    tree.write(&file("cpuset.cpus.partition"), "member")?;
    tree.remove_group(GROUP)?;
    if !was_delegated {
        // Somebody else may use cpusets by now.
        let _ = tree.write(&format!("{ROOT}/cgroup.subtree_control"), "-cpuset");
    }
    Ok(())
}

/// Brings this process into the partition, if that has the CPU. False if it has not.
///
/// # Errors
/// Those of the system: it takes the right to write there, as root has it.
pub fn join(tree: &Tree, cpu: usize) -> io::Result<bool> {
    let has = cpus(tree).contains(&cpu);
    if has {
        tree.write(&file("cgroup.procs"), &std::process::id().to_string())?;
    }
    Ok(has)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn computer(subtree: &str) -> (tempfile::TempDir, Tree) {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::at(dir.path());
        fs::create_dir_all(tree.place(ROOT)).unwrap();
        for (name, text) in [
            ("cgroup.controllers", "cpuset cpu memory\n"),
            ("cgroup.subtree_control", subtree),
            ("cgroup.procs", "1\n"),
        ] {
            fs::write(tree.place(ROOT).join(name), text).unwrap();
        }
        (dir, tree)
    }

    fn control(tree: &Tree) -> Option<String> {
        tree.read("/sys/fs/cgroup/cgroup.subtree_control")
    }

    #[test]
    fn a_partition_comes_and_goes_with_its_controller() {
        let (_dir, tree) = computer("memory\n");
        assert!(is_possible(&tree) && !is_delegated(&tree));
        make(&tree, &[3, 2]).unwrap();
        assert_eq!(control(&tree).as_deref(), Some("+cpuset"));
        assert_eq!(
            (cpus(&tree), show(&cpus(&tree)).as_str()),
            (vec![2, 3], "a partition with CPUs 2-3")
        );
        assert!(join(&tree, 2).unwrap() && !join(&tree, 1).unwrap());
        let me = std::process::id().to_string();
        assert_eq!(tree.read("/sys/fs/cgroup/sdmac/cgroup.procs"), Some(me.clone()));
        remove(&tree, false).unwrap();
        assert_eq!(control(&tree).as_deref(), Some("-cpuset"));
        assert_eq!(
            tree.read("/sys/fs/cgroup/cgroup.procs"),
            Some(me),
            "back in the root"
        );
        assert!(!tree.place(GROUP).exists() && cpus(&tree).is_empty());
        assert_eq!(remove(&tree, false).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_others_use_stays_and_what_the_kernel_does_not_keep_is_none() {
        let (_dir, tree) = computer("cpuset memory\n");
        make(&tree, &[1]).unwrap();
        let kind = "/sys/fs/cgroup/sdmac/cpuset.cpus.partition";
        tree.write(kind, "isolated invalid (Cpu list in cpuset.cpus not exclusive)")
            .unwrap();
        assert!(cpus(&tree).is_empty());
        remove(&tree, true).unwrap();
        assert_eq!(control(&tree).as_deref(), Some("cpuset memory"));
        let empty = tempfile::tempdir().unwrap();
        assert!(!is_possible(&Tree::at(empty.path())));
    }
}
