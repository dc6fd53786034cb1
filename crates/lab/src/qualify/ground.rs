//! What the host profile rests on: how many samples, what nobody measured, and what that means for the question.

use sim::host::{Basis, Component, Profile, Source};

use super::question::Question;
use super::text::{count, probability};

/// Samples beyond a quantile without which it is a guess.
const BEYOND: f64 = 10.0;

/// The parts that nobody measured, as TOML keys. The split of a total into shares is not a part of its own.
fn assumed(profile: &Profile) -> Vec<String> {
    let all = parts(profile).into_iter();
    all.filter(|(_, c)| c.basis == Basis::Assumed && !matches!(c.source, Source::Share(_)))
        .map(|(key, _)| key)
        .collect()
}

/// The part of the way of every acked frame with the fewest samples, and their number. `None` if nothing of it has a
/// known number.
fn fewest(profile: &Profile) -> Option<(String, u64)> {
    let all = parts(profile).into_iter();
    all.filter(|(key, _)| {
        ["request.", "hardware.acked", "confirm.acked."]
            .iter()
            .any(|way| key.starts_with(way))
    })
    .filter(|(_, c)| c.basis == Basis::Measured)
    .filter_map(|(key, c)| Some((key, samples(c)?)))
    .min_by_key(|(_, n)| *n)
}

/// How many samples a component was made of. The first knot of samples is at half a sample.
fn samples(component: &Component) -> Option<u64> {
    match &component.source {
        Source::Statistics(s) => s.samples,
        Source::Knots(knots) => {
            let (p, _) = *knots.points.first()?;
            (p > 0.0).then(|| (0.5 / p).round() as u64)
        }
        Source::Constant(_) | Source::Share(_) | Source::AckedPlus(_) => None,
    }
}

fn parts(p: &Profile) -> Vec<(String, &Component)> {
    let mut all: Vec<(String, &Component)> = Vec::new();
    let mut add = |key: String, component| all.push((key, component));
    if let Some(total) = &p.request.total {
        add("request.total".into(), total);
    }
    add("request.api".into(), &p.request.api);
    add("request.driver_independent".into(), &p.request.driver_independent);
    add("request.driver_dependent".into(), &p.request.driver_dependent);
    add("hardware.acked".into(), &p.hardware.acked);
    add("hardware.timeout".into(), &p.hardware.timeout);
    for (name, path) in [
        ("acked", &p.confirm.acked),
        ("timeout", &p.confirm.timeout),
        ("ack_corrupt", &p.confirm.ack_corrupt),
    ] {
        if let Some(total) = &path.total {
            add(format!("confirm.{name}.total"), total);
        }
        add(format!("confirm.{name}.isr"), &path.isr);
        add(format!("confirm.{name}.driver_dependent"), &path.driver_dependent);
        add(
            format!("confirm.{name}.driver_independent"),
            &path.driver_independent,
        );
        add(format!("confirm.{name}.api"), &path.api);
    }
    add("timer.sleep".into(), &p.timer.sleep);
    add("timer.timerfd".into(), &p.timer.timerfd);
    add("timer.spin".into(), &p.timer.spin);
    all
}

/// What the latencies of the hosts rest on, in sentences.
pub(super) fn sentences(profile: &Profile) -> Vec<String> {
    let mut all = Vec::from_iter(emulated(profile));
    if let Some((part, n)) = fewest(profile) {
        all.push(format!(
            "The tails of the host's latencies rest on {} samples ({part} has the fewest): what is rarer than {} is extrapolated from fewer than ten of them, and the model has hardly anything beyond the longest.",
            count(n),
            probability((BEYOND / n as f64).min(1.0))
        ));
    }
    let assumed = assumed(profile);
    if !assumed.is_empty() {
        all.push(format!(
            "Nobody measured these parts of the profile '{}', they are assumed: {}.",
            profile.name,
            assumed.join(", ")
        ));
    }
    all
}

/// One sentence if the times of the profile are those of an emulated processor.
pub(super) fn emulated(profile: &Profile) -> Option<String> {
    profile.emulated.then(|| {
        format!(
            "The profile '{}' has times of an emulated processor, or of virtual time: they are good for ratios among themselves, and no verdict on them is one on a computer.",
            profile.name
        )
    })
}

/// One sentence if the host profile is no word about a computer, or has too few samples for the miss probability in question.
pub fn warning(q: &Question) -> Option<String> {
    if q.host.emulated {
        return Some(format!(
            "the profile {} has times of an emulated processor, or of virtual time: no verdict on it is one on a computer; measure on the computer itself",
            q.host.name
        ));
    }
    let (part, n) = fewest(&q.host)?;
    let needed = BEYOND / q.miss;
    (q.miss > 0.0 && (n as f64) < needed).then(|| {
        format!(
            "the profile {} rests on {} samples ({part}), and a miss probability of {} needs {}: the tail of the host is a guess; measure with more --samples",
            q.host.name,
            count(n),
            probability(q.miss),
            count(needed.ceil() as u64)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A profile as `sdmac measure --host` writes it.
    fn measured(samples: u64) -> Profile {
        let mut p = Profile::built_in("table4-baseline-io").unwrap();
        let mut values: Vec<u64> = (0..samples).map(|i| 5_000 + 10 * i).collect();
        p.request.total = Component::measured(&mut values);
        p.hardware.acked.basis = Basis::Assumed;
        p.confirm.acked.total.as_mut().unwrap().basis = Basis::Assumed;
        Profile::parse(&p.to_toml(), "again").unwrap()
    }

    #[test]
    fn the_number_of_samples_is_found_again() {
        for n in [1, 40, 400, 10_000] {
            assert_eq!(fewest(&measured(n)), Some(("request.total".into(), n)));
        }
        let table5 = Profile::built_in("table5").unwrap();
        assert_eq!(fewest(&table5).unwrap().1, 12_091_189);
        assert_eq!(fewest(&Profile::built_in("ideal").unwrap()), None);
    }

    #[test]
    fn an_emulated_processor_is_no_ground() {
        let question = |emulated| Question {
            host: Profile {
                emulated,
                ..measured(400_000)
            },
            ..Question::example()
        };
        assert_eq!(warning(&question(false)), None);
        let q = question(true);
        assert!(warning(&q).unwrap().contains("emulated processor"));
        assert!(sentences(&q.host)[0].contains("no verdict on them is one on a computer"));
        assert!(super::super::reason::recommend(&q, &[]).contains("no verdict on them is one on a computer"));
    }

    #[test]
    fn what_is_assumed_is_named() {
        let text = sentences(&measured(400)).join(" ");
        assert!(
            text.contains("rest on 400 samples (request.total has the fewest)"),
            "{text}"
        );
        assert!(
            text.contains("hardware.acked") && text.contains("timer.sleep"),
            "{text}"
        );
        assert!(!text.contains("request.api"), "a share is no part: {text}");
    }
}
