//! From sorted shots to a host profile: what probes have seen replaces a base profile, the rest is carried over.

use std::fmt::Write as _;

use linux::host::{EMULATED, Environment};
use radio::Plane;
use sim::host::{Basis, Component, ConfirmPath, Dependence, HostModel, Profile, ProfileError};

pub use super::super::host::Described;
use super::super::host::{assume_all, computer, mean_us, one_by_one, pearson};
use super::table::{
    CONFIRM_API, CONFIRM_DEPENDENT, CONFIRM_INDEPENDENT, HARDWARE, ISR, REQUEST_API, REQUEST_DEPENDENT,
    REQUEST_INDEPENDENT, Set, Sorting, Span,
};

/// The profile of this computer with this adapter: what was measured replaces `base`, and the rest of `base` is kept as
/// assumed, its timers as they stand. `None` if the planes were not probed. `what` says what was measured, in a sentence. The
/// numbers of an emulated processor are marked as assumed, too: nobody measured a computer.
///
/// # Errors
/// What is wrong with `base`; with a base that has a model, a mistake in here.
pub fn describe(
    sorting: &Sorting,
    base: &Profile,
    environment: &Environment,
    emulated: bool,
    what: &str,
) -> Result<Option<Described>, ProfileError> {
    let basis = if emulated { Basis::Assumed } else { Basis::Measured };
    let part = |set, span: Span| {
        let component = Component::measured(&mut sorting.span(set, span))?;
        Some(Component { basis, ..component })
    };
    let request = [REQUEST_API, REQUEST_INDEPENDENT, REQUEST_DEPENDENT].map(|span| part(Set::Acked, span));
    let path = |set| {
        Some([
            part(set, ISR)?,
            part(set, CONFIRM_DEPENDENT)?,
            part(set, CONFIRM_INDEPENDENT)?,
            part(set, CONFIRM_API)?,
        ])
    };
    let ([Some(api), Some(independent), Some(dependent)], Some(acked)) = (request, path(Set::Acked)) else {
        return Ok(None);
    };
    let mut p = base.clone();
    assume_all(&mut p);
    p.timer = base.timer.clone();
    p.emulated |= emulated;
    p.name = if emulated {
        "adapter-emulated"
    } else {
        "adapter-measured"
    }
    .into();
    p.request.total = None;
    p.request.total_sd_us = None;
    p.correlation.request_confirm = 0.0;
    (
        p.request.api,
        p.request.driver_independent,
        p.request.driver_dependent,
    ) = (api, independent, dependent);
    one_by_one(&mut p);
    put(&mut p.confirm.acked, acked);
    let lost = [Set::DataLost, Set::NotAcked]
        .into_iter()
        .find_map(|set| Some((set, path(set)?)));
    if let Some((set, parts)) = lost {
        put(&mut p.confirm.timeout, parts);
        if let Some(hardware) = part(set, HARDWARE) {
            p.hardware.timeout = hardware;
        }
    }
    if let Some(hardware) = part(Set::Acked, HARDWARE) {
        p.hardware.acked = hardware;
    }
    // Half of the mean after a timeout, as in the profile of the paper.
    let [acked_us, timeout_us] = [&p.hardware.acked, &p.hardware.timeout].map(middle_us);
    p.hardware.request_mean_us = (timeout_us / 2.0).min(acked_us);
    let (r, sd_us) = dependence(sorting);
    p.request.total_sd_us = sd_us;
    if HostModel::new(&p).is_err() {
        // The parts of the request path hang together in a way that the model does not have.
        p.request.total_sd_us = None;
    }
    let mut note = None;
    if let Some((r, n)) = r {
        let known = Dependence::Paths(r);
        let reached = p.depend(base, known)?;
        // Less than chance makes of none is none.
        if (r - reached).abs() > 2.0 / (n as f64).sqrt() {
            note = Some(format!(
                "The correlation of request and confirm, as measured, is {r:.3}; the model has {reached:.3} with these latencies."
            ));
        }
    }
    p.provenance = provenance(sorting, base, environment, emulated, what, note.as_deref());
    let name = p.name.clone();
    let profile = Profile::parse(&p.to_toml(), &name)?;
    HostModel::new(&profile)?;
    Ok(Some(Described { profile, note }))
}

fn put(path: &mut ConfirmPath, [isr, dependent, independent, api]: [Component; 4]) {
    path.total = None;
    path.total_sd_us = None;
    (path.isr, path.driver_dependent, path.driver_independent, path.api) = (isr, dependent, independent, api);
}

/// A typical value, us.
fn middle_us(c: &Component) -> f64 {
    match &c.source {
        sim::host::Source::Knots(knots) => knots.mean_ns.unwrap_or(0.0) / 1e3,
        _ => mean_us(c).unwrap_or(0.0),
    }
}

/// Correlation of t4 - t1 and t9 - t5 of acked shots, with their number; and the standard deviation of t4 - t1, us.
fn dependence(sorting: &Sorting) -> (Option<(f64, usize)>, Option<f64>) {
    let shots = sorting
        .sets()
        .find(|(set, _)| *set == Set::Acked)
        .map_or(&[][..], |(_, shots)| shots);
    let pair = |s: &super::Shot| {
        let at = |p: Plane| Some(s.stamps.get_host(p)?.as_ns() as f64);
        Some((at(Plane::T4)? - at(Plane::T1)?, at(Plane::T9)? - at(Plane::T5)?))
    };
    let pairs: Vec<(f64, f64)> = shots.iter().filter_map(pair).collect();
    let request: crate::stats::Running = pairs.iter().map(|(request, _)| *request).collect();
    let r = pearson(pairs.iter().copied());
    (r, request.sd().filter(|sd| *sd > 0.0).map(|sd| sd / 1e3))
}

fn provenance(
    sorting: &Sorting,
    base: &Profile,
    environment: &Environment,
    emulated: bool,
    what: &str,
    note: Option<&str>,
) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "Measured with `sdmac measure --iface`: {what}.");
    let _ = writeln!(text, "{}", computer(environment));
    for (set, shots) in sorting.sets() {
        let _ = writeln!(text, "Set {}: {} shots.", set.name(), shots.len());
    }
    if emulated {
        let _ = writeln!(text, "All is marked as assumed: {EMULATED}.");
    }
    if sorting.sets().all(|(set, _)| set == Set::Acked) {
        text += "No shot was lost, so that what follows a loss is assumed.\n";
    }
    let _ = writeln!(
        text,
        "Everything else: profile {}, its timers as they stand there.",
        base.name
    );
    if let Some(note) = note {
        text += note;
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::tests::{AIR, sorting};
    use super::*;

    fn described(emulated: bool) -> Profile {
        let base = Profile::built_in("table5").unwrap();
        let found = describe(
            &sorting(300, true),
            &base,
            &Environment::default(),
            emulated,
            "a test",
        );
        found.unwrap().unwrap().profile
    }

    #[test]
    fn what_probes_saw_takes_the_place_of_the_base() {
        let p = described(false);
        let us = |c: &Component| middle_us(c);
        assert!((us(&p.request.api) - 1.0).abs() < 0.1, "{}", us(&p.request.api));
        assert!((us(&p.confirm.acked.isr) - 5.0).abs() < 0.1);
        assert!(
            (us(&p.hardware.acked) - 20.0).abs() < 0.5,
            "{}",
            us(&p.hardware.acked)
        );
        assert!(
            (us(&p.hardware.timeout) - 13.0).abs() < 0.5,
            "{}",
            us(&p.hardware.timeout)
        );
        assert_eq!(p.hardware.acked.basis, Basis::Measured);
        assert_eq!(
            p.confirm.ack_corrupt.isr.basis,
            Basis::Assumed,
            "nothing here tells"
        );
        let base = Profile::built_in("table5").unwrap();
        assert_eq!(p.timer, base.timer);
        assert_eq!(AIR.ns(Set::Acked), 80_000);
    }

    #[test]
    fn an_emulated_processor_measures_nothing() {
        let p = described(true);
        assert_eq!(p.hardware.acked.basis, Basis::Assumed);
        assert_eq!(p.confirm.acked.api.basis, Basis::Assumed);
        assert!(p.emulated && p.provenance.contains("emulated") && p.name.contains("emulated"));
    }

    #[test]
    fn without_probes_there_is_no_profile() {
        let base = Profile::built_in("table5").unwrap();
        let none = describe(
            &sorting(50, false),
            &base,
            &Environment::default(),
            false,
            "a test",
        );
        assert!(matches!(none, Ok(None)), "{none:?}");
    }
}
