//! From a profile to the tables of the model: resolves shares and shifts, splits the adapter's time, and solves the
//! correlations.

use super::component::{Component, Source};
use super::copula::{Covariance, Hermite};
use super::curve::Curve;
use super::distribution::Distribution;
use super::error::{Problem, ProfileError};
use super::normal::Normal;
use super::profile::{ConfirmPath, Profile};
use super::{HostModel, Residual, SoftwarePath};

/// Limits of a profile that was computed and written are missed by less than this part of them.
const ROUNDING: f64 = 1e-6;

/// Builds one model; collects what could not be met on the way.
pub(super) struct Builder<'a> {
    profile: &'a Profile,
    residuals: Vec<Residual>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(profile: &'a Profile) -> Self {
        Builder {
            profile,
            residuals: Vec::new(),
        }
    }

    pub(super) fn model(mut self) -> Result<HostModel, ProfileError> {
        let profile = self.profile;
        let request = self.request()?;
        let [acked, timeout, corrupt] = self.confirms()?;
        let coupling = self.coupling(&request, &acked)?;
        let [hardware_request, hardware_acked, hardware_timeout] = self.hardware()?;
        if let Some(dma) = profile.dma {
            self.within("dma.octets_per_us", dma.octets_per_us, 1e-3, 1e6)?;
        }
        let timers = &profile.timer;
        let timers = [
            ("sleep", &timers.sleep),
            ("timerfd", &timers.timerfd),
            ("spin", &timers.spin),
        ];
        let [sleep, timerfd, spin] =
            timers.map(|(name, component)| self.distribution(&format!("timer.{name}"), component, None));
        Ok(HostModel {
            normal: Normal::new(),
            request: request.path,
            hardware_request,
            hardware_confirm: [hardware_acked, hardware_timeout],
            confirm: [acked.path, timeout.path, corrupt.path],
            coupling: [coupling, libm::sqrt(1.0 - coupling * coupling)],
            dma: profile.dma,
            timers: [sleep?, timerfd?, spin?],
            residuals: self.residuals,
        })
    }

    /// The request path.
    pub(super) fn request(&mut self) -> Result<Solved<3>, ProfileError> {
        let request = &self.profile.request;
        let parts = [
            ("api", &request.api),
            ("driver_independent", &request.driver_independent),
            ("driver_dependent", &request.driver_dependent),
        ];
        self.path(
            "request",
            request.total.as_ref(),
            parts,
            request.total_sd_us,
            None,
        )
    }

    /// The confirm path by outcome: acked, timeout, corrupt ACK.
    pub(super) fn confirms(&mut self) -> Result<[Solved<4>; 3], ProfileError> {
        let from = &self.profile.confirm;
        let acked = self.confirm("confirm.acked", &from.acked, None)?;
        let timeout = self.confirm("confirm.timeout", &from.timeout, Some(&acked))?;
        let corrupt = self.confirm("confirm.ack_corrupt", &from.ack_corrupt, Some(&acked))?;
        Ok([acked, timeout, corrupt])
    }

    fn confirm(
        &mut self,
        key: &str,
        from: &ConfirmPath,
        acked: Option<&Solved<4>>,
    ) -> Result<Solved<4>, ProfileError> {
        let parts = [
            ("isr", &from.isr),
            ("driver_dependent", &from.driver_dependent),
            ("driver_independent", &from.driver_independent),
            ("api", &from.api),
        ];
        self.path(key, from.total.as_ref(), parts, from.total_sd_us, acked)
    }

    /// The tables of one path and the correlation of its parts.
    fn path<const N: usize>(
        &mut self,
        key: &str,
        total: Option<&Component>,
        parts: [(&str, &Component); N],
        total_sd_us: Option<f64>,
        acked: Option<&Solved<N>>,
    ) -> Result<Solved<N>, ProfileError> {
        let shares = parts.map(|(_, part)| match part.source {
            Source::Share(share) => Some(share),
            _ => None,
        });
        if shares.iter().any(|share| share.is_some() != total.is_some())
            || total.is_some() && total_sd_us.is_some()
        {
            return Err(self.error(key, Problem::Share));
        }
        let Some(total) = total else {
            let mut distributions = Vec::with_capacity(N);
            for (index, (name, part)) in parts.into_iter().enumerate() {
                let key = format!("{key}.{name}");
                distributions.push(self.distribution(&key, part, acked.map(|acked| &acked.parts[index]))?);
            }
            let parts: [Distribution; N] = distributions.try_into().expect("one distribution per part");
            return self.dependent(key, parts, total_sd_us);
        };
        let sum: f64 = shares.iter().flatten().sum();
        for share in shares.into_iter().flatten() {
            self.within(key, share, 0.0, 1.0)?;
        }
        if (sum - 1.0).abs() > 1e-6 {
            return Err(self.error(key, Problem::Shares(sum)));
        }
        let whole = acked.map(|acked| &acked.whole).and_then(Option::as_ref);
        let whole = self.distribution(&format!("{key}.total"), total, whole)?;
        let parts = shares.map(|share| whole.scaled(share.unwrap_or_default()));
        Ok(Solved::new(parts, 1.0, Some(whole)))
    }

    /// Independent parts, or parts so dependent that their sum has the stated standard deviation.
    fn dependent<const N: usize>(
        &self,
        key: &str,
        parts: [Distribution; N],
        total_sd_us: Option<f64>,
    ) -> Result<Solved<N>, ProfileError> {
        let Some(stated_us) = total_sd_us else {
            // Where only one part varies there is nothing to depend on, and that part sees the whole load.
            let varying = parts.iter().filter(|part| part.sd_ns() > 0.0).count();
            return Ok(Solved::new(parts, if varying == 1 { 1.0 } else { 0.0 }, None));
        };
        let (alone, pairs) = variance(&parts);
        let sd_us = |covariance: f64| (alone + covariance).sqrt() / 1e3;
        let (least_us, most_us) = (sd_us(0.0), sd_us(pairs.at(1.0)));
        let inside = least_us * (1.0 - ROUNDING)..=most_us * (1.0 + ROUNDING);
        if !inside.contains(&stated_us) {
            return Err(self.error(
                key,
                Problem::TotalSd {
                    stated_us,
                    least_us,
                    most_us,
                },
            ));
        }
        let correlation = pairs.solve(stated_us * stated_us * 1e6 - alone, 1.0);
        Ok(Solved::new(parts, correlation, None))
    }

    /// The correlation of the load factors that gives the stated correlation of request and acked confirm path.
    fn coupling(&self, request: &Solved<3>, confirm: &Solved<4>) -> Result<f64, ProfileError> {
        let stated = self.profile.correlation.request_confirm;
        let key = "correlation.request_confirm";
        self.within(key, stated, 0.0, 1.0)?;
        if stated == 0.0 {
            return Ok(0.0);
        }
        let covariance = request.hermite().covariance(&confirm.hermite());
        let strongest = request.path.common * confirm.path.common;
        let scale = request.sd_ns() * confirm.sd_ns();
        let most = if scale > 0.0 {
            covariance.at(strongest) / scale
        } else {
            0.0
        };
        if stated > most * (1.0 + ROUNDING) {
            return Err(self.error(key, Problem::Correlation { stated, most }));
        }
        Ok(covariance.solve(stated * scale, strongest) / strongest)
    }

    /// The adapter: request side, and confirm side of a heard and of an unheard exchange, such that the two sides
    /// at the same normal number add up to the stated total.
    fn hardware(&mut self) -> Result<[Curve; 3], ProfileError> {
        let hardware = &self.profile.hardware;
        let acked = self.distribution("hardware.acked", &hardware.acked, None)?;
        let timeout = self.distribution("hardware.timeout", &hardware.timeout, Some(&acked))?;
        let request_mean = hardware.request_mean_us * 1e3;
        let share = hardware.request_jitter_share;
        self.within("hardware.request_jitter_share", share, 0.0, 1.0)?;
        // Neither side may come out negative on average.
        let most = libm::round(acked.mean_ns().min(timeout.mean_ns())) / 1e3;
        self.within("hardware.request_mean_us", hardware.request_mean_us, 0.0, most)?;
        let deviation = |z: f64| share * (acked.curve().at(z) - acked.mean_ns());
        let request = Curve::tabulate(|z| (request_mean + deviation(z)).max(0.0));
        let rest = |total: &Distribution| Curve::tabulate(|z| (total.curve().at(z) - request.at(z)).max(0.0));
        let (acked, timeout) = (rest(&acked), rest(&timeout));
        Ok([request, acked, timeout])
    }

    /// One component on its own; `acked` is what a shift refers to.
    fn distribution(
        &mut self,
        key: &str,
        component: &Component,
        acked: Option<&Distribution>,
    ) -> Result<Distribution, ProfileError> {
        let most_us = Distribution::MAX_NS / 1e3;
        match &component.source {
            Source::Constant(us) => {
                self.within(key, *us, 0.0, most_us)?;
                Ok(Distribution::constant(us * 1e3))
            }
            Source::Statistics(statistics) => {
                let fit = Distribution::from_statistics(statistics).map_err(|e| self.error(key, e.into()))?;
                let (mean_ns, sd_ns) = (fit.mean_residual_ns, fit.sd_residual_ns);
                let misses =
                    |residual: f64, stated_us: f64| residual.abs() > (stated_us * 1e3 * 1e-3).max(1.0);
                if misses(mean_ns, statistics.mean_us) || misses(sd_ns, statistics.sd_us) {
                    self.residuals.push(Residual {
                        component: key.to_string(),
                        mean_ns,
                        sd_ns,
                    });
                }
                Ok(fit.distribution)
            }
            Source::Knots(knots) => Distribution::from_knots(knots).map_err(|e| self.error(key, e.into())),
            Source::Share(_) => Err(self.error(key, Problem::Share)),
            Source::AckedPlus(us) => {
                self.within(key, *us, -most_us, most_us)?;
                let acked = acked.ok_or_else(|| self.error(key, Problem::NothingToShift))?;
                Ok(acked.shifted(us * 1e3))
            }
        }
    }

    fn within(&self, key: &str, value: f64, min: f64, max: f64) -> Result<(), ProfileError> {
        let inside = (min..=max).contains(&value);
        if inside {
            Ok(())
        } else {
            Err(self.error(key, Problem::OutOfRange { value, min, max }))
        }
    }

    fn error(&self, key: &str, problem: Problem) -> ProfileError {
        ProfileError::Component {
            file: self.profile.origin.clone(),
            component: key.to_string(),
            problem,
        }
    }
}

/// The variance of the sum of independent parts in ns^2, and what dependence adds to it.
pub(super) fn variance(parts: &[Distribution]) -> (f64, Covariance) {
    let curves: Vec<Hermite> = parts.iter().map(|part| Hermite::of(part.curve())).collect();
    let alone = parts.iter().map(|part| part.sd_ns() * part.sd_ns()).sum();
    (alone, Covariance::between(&curves))
}

/// A path with its tables and correlation.
pub(super) struct Solved<const N: usize> {
    pub(super) path: SoftwarePath<N>,
    pub(super) parts: [Distribution; N],
    /// The distribution of the sum, where the profile has it.
    whole: Option<Distribution>,
    /// Correlation of the normal numbers of any two parts.
    correlation: f64,
}

impl<const N: usize> Solved<N> {
    fn new(parts: [Distribution; N], correlation: f64, whole: Option<Distribution>) -> Self {
        let path = SoftwarePath {
            parts: parts.each_ref().map(|part| part.curve().clone()),
            common: correlation.sqrt(),
            own: (1.0 - correlation).sqrt(),
        };
        Solved {
            path,
            parts,
            whole,
            correlation,
        }
    }

    pub(super) fn hermite(&self) -> Hermite {
        Hermite::sum(self.parts.each_ref().map(|part| Hermite::of(part.curve())).iter())
    }

    pub(super) fn sd_ns(&self) -> f64 {
        if let Some(whole) = &self.whole {
            return whole.sd_ns();
        }
        let (alone, pairs) = variance(&self.parts);
        (alone + pairs.at(self.correlation)).sqrt()
    }
}
