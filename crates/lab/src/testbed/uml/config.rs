//! What is built into the kernel: a fragment on top of `make ARCH=um defconfig`, and the proof that it stuck.

use crate::testbed::cache::fingerprint;

/// The fragment. Every kernel in the cache is named after its hash.
pub const FRAGMENT: &str = include_str!("kernel.config");

/// FNV-1a of the fragment's settings: other settings are another kernel, another comment is not.
pub fn hash() -> String {
    let settings = FRAGMENT.lines().filter(|line| Setting::parse(line).is_some());
    let octets = settings.flat_map(|line| line.bytes().chain([b'\n']));
    fingerprint(octets)
}

/// One line of a configuration: the option, and its value, `None` for one that is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Setting<'a> {
    option: &'a str,
    value: Option<&'a str>,
}

impl Setting<'_> {
    fn parse(line: &str) -> Option<Setting<'_>> {
        if let Some(option) = line
            .strip_prefix("# ")
            .and_then(|rest| rest.strip_suffix(" is not set"))
        {
            return Some(Setting { option, value: None });
        }
        let (option, value) = line.split_once('=')?;
        option.starts_with("CONFIG_").then_some(Setting {
            option,
            value: Some(value),
        })
    }
}

/// The lines of `fragment` that `config` does not follow. An option that `config` does not name at all is not set.
pub fn not_followed<'a>(fragment: &'a str, config: &str) -> Vec<&'a str> {
    let settings: Vec<Setting<'_>> = config.lines().filter_map(Setting::parse).collect();
    let value = |option| settings.iter().find(|s| s.option == option).and_then(|s| s.value);
    fragment
        .lines()
        .filter(|line| Setting::parse(line).is_some_and(|wanted| value(wanted.option) != wanted.value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "CONFIG_A=y\nCONFIG_NAME=\"x=y\"\n# CONFIG_B is not set\nCONFIG_C=m\n";

    #[test]
    fn what_stuck_is_not_listed() {
        let fragment = "# A comment, is not set\n\nCONFIG_A=y\nCONFIG_NAME=\"x=y\"\n# CONFIG_B is not set\n# CONFIG_UNKNOWN is not set\n";
        assert!(not_followed(fragment, CONFIG).is_empty());
    }

    #[test]
    fn what_did_not_stick_is_listed() {
        let fragment = "CONFIG_A=y\nCONFIG_B=y\nCONFIG_C=y\nCONFIG_GONE=y\n# CONFIG_A is not set\n";
        assert_eq!(
            not_followed(fragment, CONFIG),
            [
                "CONFIG_B=y",
                "CONFIG_C=y",
                "CONFIG_GONE=y",
                "# CONFIG_A is not set"
            ]
        );
    }

    #[test]
    fn the_fragment_asks_for_the_stack_and_for_virtual_time() {
        for line in [
            "CONFIG_MAC80211=y",
            "CONFIG_MAC80211_HWSIM=y",
            "CONFIG_UML_TIME_TRAVEL_SUPPORT=y",
        ] {
            assert!(FRAGMENT.lines().any(|l| l == line), "{line}");
        }
        // a word that is no setting would be appended to .config and checked by nobody
        for line in FRAGMENT.lines().filter(|l| !l.starts_with("# ") && !l.is_empty()) {
            assert!(Setting::parse(line).is_some(), "{line}");
        }
    }
}
