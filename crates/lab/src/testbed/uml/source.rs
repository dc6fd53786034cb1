//! The kernel's source and the table of countries: files at hand, or Debian's packages.

use std::path::{Path, PathBuf};

/// Package of the kernel's source.
pub const KERNEL_PACKAGE: &str = "linux-source-6.1";
/// Package of the table of countries and channels.
pub const REGDB_PACKAGE: &str = "wireless-regdb";
/// The tarball in the first package.
pub const KERNEL_TARBALL: &str = "usr/src/linux-source-6.1.tar.xz";
/// The table in the second package. It has two of them, signed by two people; the table is the same.
pub const REGDB_FILE: &str = "lib/firmware/regulatory.db-upstream";
/// First four octets of a table, and its version, both in network order (regulatory.db(5)).
const REGDB_MAGIC: &[u8] = b"RGDB\0\0\0\x14";

/// Where User-Mode Linux 6.1 says how many octets of vector registers a processor has at most.
pub const REGISTERS_FILE: &str = "arch/x86/um/user-offsets.c";
const REGISTERS: &str = "DEFINE_LONGS(HOST_FP_SIZE, 2696)";
/// XSAVE area of processors that multiply matrices (AMX, Intel SDM vol. 1, 13.4): 2,816 octets and 8,192 of tiles.
const WIDE_REGISTERS: &str = "DEFINE_LONGS(HOST_FP_SIZE, 11008)";

/// [`REGISTERS_FILE`] with room for the registers of all processors there are; `None` where it has no such limit. User-Mode Linux
/// writes the registers of its programs with ptrace, and the computer's kernel takes all or nothing: with less room the guest's first program does not start.
pub fn with_wide_registers(text: &str) -> Option<String> {
    text.contains(REGISTERS)
        .then(|| text.replace(REGISTERS, WIDE_REGISTERS))
}

/// What the user has at hand.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Tarball of the kernel's source; else the package is fetched.
    pub kernel: Option<PathBuf>,
    /// `regulatory.db`; else the package is fetched.
    pub regdb: Option<PathBuf>,
}

impl Sources {
    /// Whether a package must be fetched.
    pub fn need_packages(&self) -> bool {
        self.kernel.is_none() || self.regdb.is_none()
    }
}

/// Version from the top of a kernel's Makefile, `6.1.192`.
pub fn version(makefile: &str) -> Option<String> {
    let field = |name: &str| {
        let value = |line: &str| {
            Some(
                line.strip_prefix(name)?
                    .trim()
                    .strip_prefix('=')?
                    .trim()
                    .to_owned(),
            )
        };
        makefile.lines().take(10).find_map(value)
    };
    let numbers = ["VERSION", "PATCHLEVEL", "SUBLEVEL"].map(field);
    let [Some(version), Some(patch), Some(sub)] = numbers else {
        return None;
    };
    let extra = field("EXTRAVERSION").unwrap_or_default();
    Some(format!("{version}.{patch}.{sub}{extra}"))
}

/// Whether these octets are a table of countries in the only format that there is.
pub fn is_regdb(octets: &[u8]) -> bool {
    octets.starts_with(REGDB_MAGIC)
}

/// The one folder in `parent`, which is what a tarball of the kernel unpacks to.
pub fn only_folder(parent: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(parent).ok()?.flatten();
    let mut folders = entries.map(|entry| entry.path()).filter(|path| path.is_dir());
    folders.next().filter(|_| folders.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_the_makefile() {
        let makefile = "# SPDX-License-Identifier: GPL-2.0\nVERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 192\nEXTRAVERSION =\nNAME = Curry\n";
        assert_eq!(version(makefile).unwrap(), "6.1.192");
        assert_eq!(
            version("VERSION = 6\nPATCHLEVEL = 19\nSUBLEVEL = 0\nEXTRAVERSION = -rc1\n").unwrap(),
            "6.19.0-rc1"
        );
        assert_eq!(version("all:\n\techo VERSION = 6\n"), None);
    }

    #[test]
    fn there_is_room_for_the_registers_of_every_processor() {
        let limit = "#ifdef FP_XSTATE_MAGIC1\n\tDEFINE_LONGS(HOST_FP_SIZE, 2696);\n#else\n";
        let wide = with_wide_registers(limit).unwrap();
        assert_eq!(
            wide,
            "#ifdef FP_XSTATE_MAGIC1\n\tDEFINE_LONGS(HOST_FP_SIZE, 11008);\n#else\n"
        );
        assert_eq!(with_wide_registers(&wide), None);
    }

    #[test]
    fn tables_of_countries() {
        assert!(is_regdb(b"RGDB\0\0\0\x14rest"));
        assert!(!is_regdb(b"RGDB\0\0\0\x15rest"));
        assert!(!is_regdb(b""));
    }

    #[test]
    fn the_only_folder() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(only_folder(folder.path()), None);
        std::fs::create_dir(folder.path().join("linux-source-6.1")).unwrap();
        assert_eq!(
            only_folder(folder.path()),
            Some(folder.path().join("linux-source-6.1"))
        );
        std::fs::create_dir(folder.path().join("other")).unwrap();
        assert_eq!(only_folder(folder.path()), None);
    }
}
