//! What a reader of `sdmac measure --iface` must know beside the table.

use frame::MacAddr;
use lab::deploy::{UNTRIED, stick_at};
use lab::measure::adapter::{Counts, Described, Measured, Plan};
use linux::host::EMULATED;
use linux::wifi::confirm::Path;

/// What of a frame's way shows at a stick.
const STICK: &str = "of the planes a stick has t1, t4, when the USB has taken the frame over, and t9: this program is its driver, so t2 and t3 are not \
                     apart from t1, and what happens between t4 and t9 (the stick's own queue, the air, the way back over the USB) nobody stamps. T_SDMAC less T_sw_req is how long that takes in all, without the time on the air";

fn is_stick(plan: &Plan) -> bool {
    stick_at(&plan.radio).is_some()
}

/// What a reader must know before he believes a number.
pub(super) fn notes(
    measured: &Measured,
    plan: &Plan,
    uncertified: Option<String>,
    described: Option<&Described>,
) -> Vec<String> {
    let mut notes = Vec::from_iter(uncertified);
    if measured.emulated {
        notes.push(EMULATED.to_owned());
    }
    if is_stick(plan) {
        notes.extend([STICK, UNTRIED].map(str::to_owned));
    }
    for c in &measured.conditions {
        let (load, counts) = (c.load.name(), &c.sorting.counts);
        notes.extend(silence(load, counts.acked, counts.not_acked, plan.to));
        let impossible = c.sorting.impossible();
        if impossible > 0 {
            notes.push(format!(
                "{load}: {impossible} frames came back sooner than they can have been on the air, and are in no row less \
                 air: is this mac80211_hwsim without `sdmac air`?"
            ));
        }
        if counts.discarded * 100 > counts.shots {
            notes.push(format!(
                "{load}: {} of {} frames are left out since foreign frames were within 10 ms: choose a quieter channel",
                counts.discarded, counts.shots
            ));
        }
        if counts.repeated > 0 {
            notes.push(format!(
                "{load}: {} frames were sent more than once, so this adapter makes no one-shots here; see `sdmac certify`",
                counts.repeated
            ));
        }
        if c.taken.heard.is_none() && counts.not_acked > 0 {
            notes.push(format!(
                "{load}: the other station told nothing, so lost frames and lost ACKs are one set, L; run `sdmac measure \
                 --peer` there"
            ));
        }
        if let Some(why) = &c.report.failed {
            notes.push(format!("the {load} load failed: {why}"));
        }
    }
    if measured.lost_hits > 0 {
        notes.push(format!("{} hits of probes found no room", measured.lost_hits));
    }
    match described {
        None => notes.push(format!("no profile was written: {}", missing(measured, plan))),
        Some(d) => notes.extend(d.note.clone()),
    }
    notes
}

/// What a profile takes that is not there.
fn missing(measured: &Measured, plan: &Plan) -> &'static str {
    let counts = || measured.conditions.iter().map(|c| c.sorting.counts);
    let sum = |of: fn(&Counts) -> u64| counts().map(|c| of(&c)).sum::<u64>();
    if sum(|c| c.shots) > 0 && sum(|c| c.refused) == sum(|c| c.shots) {
        "all frames were refused"
    } else if is_stick(plan) {
        "it takes all planes, and a stick does not have them"
    } else if plan.probes.is_none() && plan.confirm != Path::Device {
        "it takes --probes or --confirm device"
    } else {
        "it takes acked frames with all planes, under the load of --profile-of"
    }
}

/// Nobody has acknowledged.
pub(super) fn silence(load: &str, acked: u64, not_acked: u64, to: MacAddr) -> Option<String> {
    (acked == 0 && not_acked > 0).then(|| {
        format!(
            "{load}: none of {not_acked} frames was acknowledged: nobody answers as {to}; look at the address and the channel, \
             and whether the station is on the air (`sdmac measure --peer` on the other computer)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_who_answers_is_told() {
        let to = MacAddr::local(7);
        let told = silence("idle", 0, 100, to).unwrap();
        assert!(
            told.contains("none of 100 frames") && told.contains(&to.to_string()),
            "{told}"
        );
        assert_eq!(silence("idle", 1, 99, to), None);
        assert_eq!(silence("idle", 0, 0, to), None, "nothing came to an end");
    }
}
