//! Opens the radios, goes through the questions, and keeps what is found.

use std::sync::atomic::{AtomicBool, Ordering};

use frame::MacAddr;
use radio::Attribute;

use super::super::adapter::Adapter;
use super::super::config::{AdapterConfig, Carrier};
use super::super::error::Error;
use super::super::nl80211::{Control, Monitor};
use super::super::wiphy::Wiphy;
use super::abort::{self, aborts};
use super::bench::{Bench, marked_frame};
use super::certificate::{Certificate, Proven, Row, Verdict, name};
use super::judge::{proof, verdict};
use super::{CertifyPlan, Peer};

/// A question, or several that need the same.
type Question<'a> = (&'static str, fn(&mut Inspector<'a>) -> Result<(), Error>);

/// See the [module](self).
pub(super) struct Inspector<'a> {
    pub plan: &'a CertifyPlan,
    pub stop: &'a AtomicBool,
    step: &'a dyn Fn(usize, usize, &'static str),
    pub wiphy: Wiphy,
    pub channel_mhz: u16,
    /// Address of the radio under test.
    pub me: MacAddr,
    second: Option<String>,
    monitor: Monitor,
    bench: Option<Bench>,
    rows: Vec<Row>,
    pub proven: Proven,
    /// A frame was seen to be sent more than once.
    pub retries_show: bool,
}

impl<'a> Inspector<'a> {
    pub fn new(
        plan: &'a CertifyPlan,
        step: &'a dyn Fn(usize, usize, &'static str),
        stop: &'a AtomicBool,
    ) -> Result<Inspector<'a>, Error> {
        if !(1..=1_000_000).contains(&plan.frames) || !(1..=10_000).contains(&plan.each) {
            return Err(Error::Config(
                "frames: 1 to 1000000 for the statuses, 1 to 10000 for each other question",
            ));
        }
        let mut control = Control::open()?;
        let wiphy = control.wiphy(&plan.radio)?;
        let second = match &plan.peer {
            Some(Peer::Radio(radio)) => Some(control.wiphy(radio)?),
            _ => None,
        };
        if second.as_ref().is_some_and(|second| second.index == wiphy.index) {
            return Err(Error::Config(
                "the peer is the same radio: name a second one, or an address",
            ));
        }
        let interfaces = control.interfaces()?;
        let here = interfaces
            .iter()
            .find(|i| i.wiphy == wiphy.index && i.mhz.is_some());
        let open = || {
            wiphy
                .bands
                .iter()
                .flat_map(|b| &b.channels)
                .find(|c| c.may_send())
        };
        let channel_mhz = plan
            .channel_mhz
            .or(here.and_then(|i| i.mhz))
            .or(open().map(|c| c.mhz));
        let channel_mhz = channel_mhz.ok_or_else(|| Error::Channel {
            wiphy: wiphy.name.clone(),
            mhz: 0,
            why: "the rules of the country leave it none; set the right country (iw reg set)",
        })?;
        let may_send = wiphy
            .channel(channel_mhz)
            .is_some_and(|(_, channel)| channel.may_send());
        if !may_send {
            return Err(Error::Channel {
                wiphy: wiphy.name,
                mhz: channel_mhz,
                why: "one may not send there, so nothing can be tried; name another channel, or set the country \
                      (iw reg set)",
            });
        }
        let mut inspector = Inspector {
            plan,
            stop,
            step,
            wiphy,
            channel_mhz,
            me: MacAddr::ZERO,
            second: second.map(|second| second.name),
            monitor: Monitor::Plain,
            bench: None,
            rows: Vec::new(),
            proven: Proven::default(),
            retries_show: false,
        };
        let adapter = inspector.open(None)?;
        (inspector.me, inspector.monitor) = (adapter.address(), adapter.monitor());
        let ear = inspector.open_second()?;
        inspector.bench = Some(Bench::new(adapter, ear)?);
        Ok(inspector)
    }

    /// All questions, in an order that opens the radios as seldom as possible.
    pub fn inspect(mut self) -> Result<Certificate, Error> {
        let questions: [Question<'a>; 14] = [
            ("retries", Inspector::retries),
            ("one-shot", Inspector::one_shot),
            ("rates", Inspector::rates),
            ("no-ack", Inspector::no_ack),
            ("queues", Inspector::queues),
            ("statuses", Inspector::statuses),
            ("adapter time", Inspector::tsf_of_frames),
            ("beacons", Inspector::beacons),
            ("carrier sense", Inspector::carrier_sense),
            ("switches", Inspector::carrier_sense_off),
            ("known stations", Inspector::known_station),
            ("adapter time", Inspector::tsf_by_file),
            ("channel", Inspector::channels),
            ("acknowledgements, aborts", Inspector::reopened),
        ];
        let peer = match &self.plan.peer {
            Some(Peer::Station(address)) => Some(address.to_string()),
            Some(Peer::Radio(_)) | None => self.second.clone(),
        };
        let mut certificate = Certificate::new(&self.wiphy.name, self.monitor, self.channel_mhz, peer);
        for (i, (what, question)) in questions.iter().enumerate() {
            (self.step)(i, questions.len(), what);
            let (rows, proven) = (self.rows.len(), self.proven);
            let asked = question(&mut self);
            if !self.is_whole() && !self.stop.load(Ordering::Relaxed) {
                // What was asked of an adapter that is gone is no answer either.
                self.rows.truncate(rows);
                self.proven = proven;
                let seen =
                    "broken off: an adapter took no more frames, its interface was set down or is gone";
                self.add(what, "all of it", seen, Verdict::CannotBeSeen);
                certificate.partial = true;
                break;
            }
            asked?;
            if self.stop.load(Ordering::Relaxed) {
                // What was stopped halfway is no answer.
                self.rows.truncate(rows);
                self.proven = proven;
                certificate.partial = true;
                break;
            }
        }
        (self.step)(questions.len(), questions.len(), "done");
        (certificate.rows, certificate.proven) = (self.rows, self.proven);
        Ok(certificate)
    }

    pub fn bench(&mut self) -> Result<&mut Bench, Error> {
        self.bench
            .as_mut()
            .ok_or(Error::Config("the radios are not open"))
    }

    /// Whether all radios that are open can send.
    fn is_whole(&mut self) -> bool {
        self.bench.as_mut().is_none_or(Bench::is_whole)
    }

    /// Frames for each question.
    pub fn each(&self) -> usize {
        self.plan.each as usize
    }

    pub fn add(&mut self, what: &str, asked: impl Into<String>, seen: impl Into<String>, verdict: Verdict) {
        self.rows.push(Row {
            what: what.into(),
            asked: asked.into(),
            seen: seen.into(),
            verdict,
        });
    }

    fn open(&self, monitor: Option<Monitor>) -> Result<Adapter, Error> {
        Adapter::open(AdapterConfig {
            carrier: Carrier::Monitor(monitor),
            ..AdapterConfig::new(&self.wiphy.name, self.channel_mhz)
        })
    }

    fn open_second(&self) -> Result<Option<Adapter>, Error> {
        let Some(second) = &self.second else {
            return Ok(None);
        };
        let mut ear = Adapter::open(AdapterConfig::new(second, self.channel_mhz))?;
        let all = ear.set(Attribute::Promiscuous(true));
        all.map_err(|_| Error::Config("the second radio's monitor takes no filter"))?;
        Ok(Some(ear))
    }

    /// Questions that need the radios opened anew: each kind of monitor, and the host itself.
    fn reopened(&mut self) -> Result<(), Error> {
        let first = self.acknowledges()?;
        self.proven.acknowledges = proof(first.verdict);
        self.rows.push(first);
        if self.monitor == Monitor::Active {
            self.bench = None;
            let plain = self.open(Some(Monitor::Plain))?;
            self.bench = Some(Bench::new(plain, self.open_second()?)?);
            let row = self.acknowledges()?;
            self.rows.push(row);
        } else {
            let what = format!("acknowledges as {} monitor", name(Monitor::Active));
            let seen = "the driver has no active monitors";
            self.add(&what, "frames from the second radio", seen, Verdict::DoesNotHold);
        }
        for (what, asked, hold) in [
            (
                "abort of what the host holds back",
                "taken back at once, to be sent later",
                true,
            ),
            ("abort of what the kernel has", "taken back at once", false),
        ] {
            self.bench = None;
            let mut radios = vec![self.open(None)?];
            radios.extend(self.open_second()?);
            let listens = radios.len() > 1;
            let ask = self.ask();
            let frames = (0..abort::REQUESTS as u64)
                .map(|number| marked_frame(&ask, number))
                .collect();
            let done = aborts(radios, frames, hold, self.stop)?;
            let mut seen = format!("{} of {} ended as aborted", done.aborted, abort::REQUESTS);
            if listens {
                seen += &format!(", {} were on the air", done.heard);
            }
            let verdict = match (done.aborted == abort::REQUESTS && done.heard == 0, listens) {
                (true, false) => Verdict::CannotBeSeen,
                (holds, _) => verdict(holds),
            };
            self.add(
                what,
                format!("{} requests {asked}", abort::REQUESTS),
                seen,
                verdict,
            );
        }
        Ok(())
    }
}
