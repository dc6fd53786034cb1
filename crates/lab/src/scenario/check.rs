//! Whether the parts of a file fit together: names, channels, rates, times, files.

use std::collections::BTreeMap;
use std::sync::Arc;

use frame::{Phy, Rate, ppdu_us};
use radio::Duration;
use sim::LinkLoss;
use sim::medium::PathLossTrace;
use toml::Spanned;

use super::attempt::Nodes;
use super::file::{self, File, Placement};
use super::names::Names;
use super::node::phy;
use super::protocol::{Pace, Protocol};
use super::source::{ScenarioError, Source};
use super::units::{LONGEST_NS, RateText, Time};
use super::world::{self, ForeignWhat, Pattern, Phase, What};
use super::{FlowPlan, MAX_FLOWS, MAX_NODES, Scenario, To};

/// Changes of path losses at most, all links together.
const MAX_STEPS: usize = 1_000_000;
/// Octets around an MSDU: header and FCS.
pub(super) const MPDU_OCTETS: u32 = 28;

/// A scenario from its text. Where clocks are to be measured that takes two passes, since they are those of the scenario.
pub(super) fn scenario(source: &Source) -> Result<Scenario, ScenarioError> {
    let first = with_sync_errors(source, &[])?;
    match first.measured_sync_errors() {
        Some(errors) => with_sync_errors(source, &errors),
        None => Ok(first),
    }
}

/// With `sync_error` of each schedule; as it is told where there is none.
fn with_sync_errors(source: &Source, errors: &[Duration]) -> Result<Scenario, ScenarioError> {
    let file = source.file()?;
    let check = Check { source, file: &file };
    let mut names = Names::new(source);
    let mut groups = Vec::new();
    let mut total = check.foreign_nodes();
    if file.group.is_empty() {
        return Err(source.at(0..0, "there is no [[group]]: a scenario has at least one node"));
    }
    for group in &file.group {
        total += group.count.0;
        if total > MAX_NODES {
            let what = format!("a scenario has at most {MAX_NODES} nodes, this group makes it {total}");
            return Err(source.at(group.name.span(), what));
        }
        groups.push(names.add(&group.name, group.count.0)?);
        check.group(group)?;
    }
    check.times()?;
    check.agreement()?;
    let mut hosts = Vec::new();
    let mut models = BTreeMap::new();
    let (mut peers, mut channels) = (Vec::new(), Vec::new());
    for group in &file.group {
        hosts.push(check.host(group, &mut models)?);
        let peer = match &group.protocol {
            Protocol::Oneshot(p) => Some(names.node(&p.to)?),
            Protocol::Responder(p) => Some(names.node(&p.coordinator)?),
            _ => None,
        };
        let ap = group.ap.as_ref().map(|ap| names.node(ap)).transpose()?;
        peers.push((peer, ap));
        channels.push(check.roaming(&names, group)?);
    }
    let mut flows = Vec::new();
    let mut count = 0;
    for traffic in &file.traffic {
        let flow = check.flow(&names, &groups, traffic)?;
        count += flow.count();
        if count > MAX_FLOWS {
            let what = format!("a scenario has at most {MAX_FLOWS} flows");
            return Err(source.at(traffic.from.span(), what));
        }
        flows.push(flow);
    }
    let (mut links, mut traces) = (Vec::new(), Vec::new());
    for link in &file.link {
        check.link(&names, link, &mut links, &mut traces)?;
    }
    let mut incidents = Vec::new();
    for incident in &file.incident {
        let other = match &incident.what {
            What::PathLoss { to, .. } => Some(names.node(to)?),
            _ => None,
        };
        let nodes = names.range(&incident.node)?;
        check.goes(incident, &nodes, &groups)?;
        incidents.push((nodes, other));
    }
    check.walks(&incidents)?;
    let mut pairs = Vec::new();
    if let Some(file::Loss::Pairs(list)) = &file.medium.loss {
        for pair in list {
            let (a, b) = (names.node(&pair.a)?, names.node(&pair.b)?);
            pairs.extend([(a, b, pair.db.0), (b, a, pair.db.0)]);
        }
    }
    let schedules = check.schedules(&names, &groups, &flows, &peers, &hosts, errors)?;
    let nodes = Nodes {
        groups: &groups,
        flows: &flows,
        hosts: &hosts,
        peers: &peers,
    };
    check.costs(&nodes)?;
    Ok(Scenario {
        admission: check.admission(&schedules, &nodes),
        error: check.error_model()?,
        schedules,
        groups,
        hosts,
        pairs,
        flows,
        links,
        traces,
        peers,
        channels,
        incidents,
        file,
    })
}

pub(super) struct Check<'s> {
    pub(super) source: &'s Source,
    pub(super) file: &'s File,
}

impl Check<'_> {
    fn foreign_nodes(&self) -> u32 {
        let nodes = |f: &world::Foreign| match f.what {
            ForeignWhat::Load { .. } => 2,
            ForeignWhat::Probes { .. } => 1,
        };
        let some = self.file.foreign.iter().take(MAX_NODES as usize + 1);
        some.map(nodes).sum()
    }

    fn times(&self) -> Result<(), ScenarioError> {
        let run = &self.file.run;
        let duration = run.duration.get_ref().0;
        if duration == 0 {
            return Err(self.source.at(run.duration.span(), "a run takes longer than 0s"));
        }
        if run.warm_up.0 >= duration {
            let what = format!(
                "the run ends after {}, within the warm-up of {}",
                run.duration.get_ref(),
                run.warm_up
            );
            return Err(self.source.at(run.duration.span(), what));
        }
        for incident in &self.file.incident {
            if incident.at.get_ref().0 > duration {
                let what = format!("{} is after the end of the run, {}", incident.at, run.duration);
                return Err(self.source.at(incident.at.span(), what));
            }
        }
        for noise in &self.file.noise {
            self.positive(&noise.on, "a burst")?;
        }
        let phy = phy(self.file.group[0].phy);
        for foreign in &self.file.foreign {
            match &foreign.what {
                ForeignWhat::Load { octets, mean, rate } => {
                    self.rate(rate, &phy)?;
                    self.longer_than_a_frame(mean, rate.get_ref().0, octets.0 + MPDU_OCTETS, &phy)?;
                }
                ForeignWhat::Probes { every, rate, .. } => {
                    self.rate(rate, &phy)?;
                    self.positive(every, "a pause")?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn positive(&self, time: &Spanned<Time>, what: &str) -> Result<(), ScenarioError> {
        match time.get_ref().0 {
            0 => Err(self
                .source
                .at(time.span(), format!("{what} lasts longer than 0s"))),
            _ => Ok(()),
        }
    }

    fn longer_than_a_frame(
        &self,
        time: &Spanned<Time>,
        rate: Rate,
        octets: u32,
        phy: &Phy,
    ) -> Result<(), ScenarioError> {
        let frame_us = ppdu_us(rate, octets, phy.band);
        if time.get_ref().0 < u64::from(frame_us) * 1_000 {
            let what = format!("{time} is shorter than one frame, which takes {frame_us}us at {rate}");
            return Err(self.source.at(time.span(), what));
        }
        Ok(())
    }

    pub(super) fn rate(&self, rate: &Spanned<RateText>, phy: &Phy) -> Result<(), ScenarioError> {
        let wanted = rate.get_ref().0;
        if phy.has(wanted) {
            return Ok(());
        }
        let allowed = match phy.name {
            "b" => "1M, 2M, 5.5M and 11M",
            "a" => "6M, 9M, 12M, 18M, 24M, 36M, 48M and 54M",
            "n5" => "6M to 54M and mcs0/20 to mcs31/40s",
            "n2.4" => "1M to 11M, 6M to 54M and mcs0/20 to mcs31/40s",
            _ => "1M to 11M and 6M to 54M",
        };
        let what = format!("802.11{} has no rate {wanted}: it has {allowed}", phy.name);
        Err(self.source.at(rate.span(), what))
    }

    fn group(&self, group: &file::Group) -> Result<(), ScenarioError> {
        let phy = phy(group.phy);
        self.adapters(group)?;
        self.interrupts(group)?;
        self.layers(group)?;
        if let Placement::Positions(list) = &group.placement
            && list.get_ref().len() != group.count.0 as usize
        {
            let (places, nodes) = (list.get_ref().len(), group.count.0);
            let what = format!("there are {places} positions for {nodes} nodes: give one for each");
            return Err(self.source.at(list.span(), what));
        }
        if group.clock.drift_ppm.is_some() && group.clock.drift_within_ppm.is_some() {
            let what = "a clock has either drift_ppm or drift_within_ppm";
            return Err(self.source.at(group.name.span(), what));
        }
        if let Protocol::Tdma(p) = &group.protocol {
            self.schedule(&p.schedule)?;
        }
        if let Some(send) = self.file.sending(group) {
            self.sends_on(group, send)?;
            let phy = super::node::phy(group.sending_adapter(send).phy);
            self.rate(&send.rate, &phy)?;
            if let Some(rate) = &send.broadcast_rate {
                self.rate(rate, &phy)?;
            }
        }
        match &group.protocol {
            Protocol::Oneshot(p) => {
                if let Pace::Every(period) = &p.pace {
                    let octets = u32::from(p.payload_octets.0) + 8 + MPDU_OCTETS;
                    self.longer_than_a_frame(period, p.send.rate.get_ref().0, octets, &phy)?;
                }
                if let Pace::AfterBeacon(wait) = &p.pace {
                    self.after_beacon(wait, group)?;
                }
            }
            Protocol::Tbmac(p) => self.tbmac(p, group)?,
            Protocol::Slotted(p) => self.slotted(p)?,
            Protocol::Ibss(p) => self.ad_hoc(p, group, &phy)?,
            Protocol::Beaconer(p) => {
                self.rate(&p.rate, &phy)?;
                self.longer_than_a_frame(&p.interval, p.rate.get_ref().0, 86, &phy)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn flow(
        &self,
        names: &Names<'_>,
        groups: &[std::ops::Range<u32>],
        t: &world::Traffic,
    ) -> Result<FlowPlan, ScenarioError> {
        let from = names.range(&t.from)?;
        let of = groups.iter().position(|g| g.contains(&from.start));
        let group = &self.file.group[of.expect("every node is in a group")];
        let send = self.file.sending(group);
        let phy = phy(send.map_or(group.phy, |s| group.sending_adapter(s).phy));
        let rate = send.map_or(phy.lowest, |s| s.rate.get_ref().0);
        if matches!(group.protocol, Protocol::Sink | Protocol::Oneshot(_)) {
            let what = format!(
                "the protocol of {:?} sends no traffic of others",
                t.from.get_ref()
            );
            return Err(self.source.at(t.from.span(), what));
        }
        let octets = t.octets.0 + MPDU_OCTETS;
        let phase = match &t.pattern {
            Pattern::Periodic { period, phase } => {
                self.longer_than_a_frame(period, rate, octets, &phy)?;
                Some(phase)
            }
            Pattern::Poisson { mean } => {
                self.longer_than_a_frame(mean, rate, octets, &phy)?;
                None
            }
            Pattern::Saturated { phase, .. } => Some(phase),
        };
        if let Some(Phase::Mix3 { within, step, .. }) = phase
            && (step.0 == 0 || within.get_ref().0 < step.0)
        {
            let what = format!("{within} holds no step of {step}");
            return Err(self.source.at(within.span(), what));
        }
        self.fits_rounds(group, t)?;
        self.fits_held(group, t)?;
        self.stays_full(group, t)?;
        let to = t.to.get_ref();
        let to = if to == "broadcast" {
            To::Broadcast
        } else if let Some(salt) = to.strip_prefix("neighbour:") {
            let Placement::Grid { columns, .. } = &group.placement else {
                let what = format!(
                    "{:?} is not placed on a grid, so it has no neighbours",
                    t.from.get_ref()
                );
                return Err(self.source.at(t.to.span(), what));
            };
            let Ok(salt) = salt.parse() else {
                let what = format!("{salt:?} is no salt: write `neighbour:2` with any whole number");
                return Err(self.source.at(t.to.span(), what));
            };
            if from.len() < 2 {
                return Err(self
                    .source
                    .at(t.to.span(), "a node that is alone has no neighbours"));
            }
            let columns = columns.map_or_else(|| super::build::square(group.count.0), |c| c.0);
            To::Neighbour { salt, columns }
        } else {
            let nodes = match from.len() {
                1 => names.range(&t.to)?,
                _ => names.node(&t.to).map(|n| n..n + 1)?,
            };
            if nodes.start < from.end && from.start < nodes.end {
                let what = format!("{to:?} would send to itself");
                return Err(self.source.at(t.to.span(), what));
            }
            let target = groups.iter().position(|g| g.contains(&nodes.start));
            let target = &self.file.group[target.expect("every node is in a group")];
            self.joined_alike(group, target, t.to.span())?;
            self.reaches(names, group, &nodes, &t.to)?;
            self.stays_in_network((group, t.octets.0), target, t.to.span())?;
            match nodes.len() {
                1 => To::Node(nodes.start),
                _ => To::Each(nodes),
            }
        };
        Ok(FlowPlan { from, to })
    }

    fn link(
        &self,
        names: &Names<'_>,
        link: &world::Link,
        out: &mut Vec<(u32, u32, LinkLoss)>,
        traces: &mut Vec<(u32, u32, Arc<PathLossTrace>)>,
    ) -> Result<(), ScenarioError> {
        let (from, to) = (names.range(&link.from)?, names.range(&link.to)?);
        let process = |p: &Option<world::Process>| p.as_ref().map(|p| self.process(p)).transpose();
        let loss = LinkLoss {
            data: process(&link.data)?,
            response: process(&link.ack)?,
            heard: link.heard.0,
        };
        let trace = link
            .path_loss
            .as_ref()
            .map(|csv| self.path_loss(csv))
            .transpose()?;
        for a in from {
            for b in to.clone().filter(|b| *b != a) {
                out.push((a, b, loss.clone()));
                if link.both_ways {
                    out.push((b, a, loss.clone()));
                }
                if let Some(trace) = &trace {
                    traces.push((a, b, trace.clone()));
                    traces.extend(link.both_ways.then(|| (b, a, trace.clone())));
                }
                if out.len() > MAX_FLOWS {
                    let what = format!("at most {MAX_FLOWS} links can have losses of their own");
                    return Err(self.source.at(link.from.span(), what));
                }
            }
        }
        let steps: usize = traces.iter().map(|(_, _, trace)| trace.len()).sum();
        if steps > MAX_STEPS {
            let what = format!("paths can change {MAX_STEPS} times in all, and these change {steps} times");
            return Err(self.source.at(link.from.span(), what));
        }
        Ok(())
    }
}

const _: () = assert!(LONGEST_NS < u64::MAX / 4, "sums of times stay in range");
