//! How a profile that is put together from measured and assumed parts says how these depend on each other.
//!
//! A profile holds two numbers of dependence: the standard deviation of a path, which is the dependence of its parts,
//! and the correlation of the two paths. Who measures parts knows another: the correlation of the parts measured. In
//! the model one load acts on all parts of a path, so the one follows from the other.

use super::build::{Builder, variance};
use super::copula::Hermite;
use super::error::ProfileError;
use super::profile::Profile;

/// What is known of the dependence between the request path and the confirm path of acked frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dependence {
    /// Pearson correlation of t4 - t1 and t9 - t8: of the whole request path and the last part of the confirm path.
    RequestApi(f64),
    /// Pearson correlation of t4 - t1 and t9 - t5: of both paths as a whole.
    Paths(f64),
}

impl Profile {
    /// Sets the standard deviations of the confirm paths and `correlation.request_confirm` such that the model has the
    /// stated dependence, or comes as near as it can. The confirm paths must be given part by part; their parts depend
    /// on each other as much as those of `base`, or more where the stated dependence needs it. Returns the correlation
    /// reached, of the same latencies as the stated one.
    ///
    /// # Errors
    /// What is wrong with this profile or with `base`.
    pub fn depend(&mut self, base: &Profile, stated: Dependence) -> Result<f64, ProfileError> {
        let paths = |c: &mut super::Confirm, sd: [Option<f64>; 3]| {
            (
                c.acked.total_sd_us,
                c.timeout.total_sd_us,
                c.ack_corrupt.total_sd_us,
            ) = (sd[0], sd[1], sd[2]);
        };
        paths(&mut self.confirm, [None; 3]);
        self.correlation.request_confirm = 0.0;
        let base_common = Builder::new(base).confirms()?.map(|path| path.path.common);
        let alone = Builder::new(self).confirms()?;
        let request = Builder::new(self).request()?;
        let api = Hermite::of(alone[0].parts[3].curve());
        let with_api = request.hermite().covariance(&api);
        let api_scale = request.sd_ns() * alone[0].parts[3].sd_ns();
        // Correlation of the normal numbers of request and api.
        let numbers = match stated {
            Dependence::RequestApi(r) if api_scale > 0.0 => {
                with_api.solve(r * api_scale, request.path.common)
            }
            _ => 0.0,
        };
        let needed = if numbers > 0.0 {
            numbers / request.path.common
        } else {
            0.0
        };
        let mut sd_us = [None; 3];
        for ((sd_us, path), base) in sd_us.iter_mut().zip(&alone).zip(base_common) {
            let (alone, pairs) = variance(&path.parts);
            let common = base.max(needed);
            let added = pairs.at(common * common);
            *sd_us = (added > 0.0).then(|| (alone + added).sqrt() / 1e3);
        }
        paths(&mut self.confirm, sd_us);
        let [acked, ..] = Builder::new(self).confirms()?;
        let covariance = request.hermite().covariance(&acked.hermite());
        let scale = request.sd_ns() * acked.sd_ns();
        let strongest = request.path.common * acked.path.common;
        if scale == 0.0 {
            return Ok(0.0);
        }
        let most = covariance.at(strongest) / scale;
        let r = match stated {
            Dependence::RequestApi(_) => covariance.at(numbers) / scale,
            Dependence::Paths(r) => r,
        };
        let r = (r.clamp(0.0, most.clamp(0.0, 1.0)) * 1e6).floor() / 1e6;
        self.correlation.request_confirm = r;
        Ok(match stated {
            Dependence::RequestApi(_) if api_scale > 0.0 => with_api.at(numbers) / api_scale,
            Dependence::RequestApi(_) => 0.0,
            Dependence::Paths(_) => r,
        })
    }
}
