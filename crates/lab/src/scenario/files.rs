//! What a scenario reads from other files: host profiles, error rates, traces of losses.

use std::collections::BTreeMap;
use std::sync::Arc;

use sim::host::{HostModel, Profile};
use sim::medium::{PathLossTrace, PerTable};
use sim::{ErrorModel, Process};
use toml::Spanned;

use super::check::Check;
use super::source::ScenarioError;
use super::{file, world};

/// Largest file that a scenario names, octets.
const MAX_CSV_OCTETS: u64 = 64 << 20;

/// Models by the name in the scenario: groups with the same host share one.
pub(super) type Models = BTreeMap<String, Arc<HostModel>>;

impl Check<'_> {
    /// The model of a group's host; built once for each name.
    pub(super) fn host(
        &self,
        group: &file::Group,
        models: &mut Models,
    ) -> Result<Option<Arc<HostModel>>, ScenarioError> {
        let Some(name) = &group.host else {
            return Ok(None);
        };
        if let Some(known) = models.get(name.get_ref()) {
            return Ok(Some(known.clone()));
        }
        let model = HostModel::new(&self.profile(name)?).map_err(|e| self.source.at(name.span(), e))?;
        let model = Arc::new(model);
        models.insert(name.get_ref().clone(), model.clone());
        Ok(Some(model))
    }

    fn profile(&self, name: &Spanned<String>) -> Result<Profile, ScenarioError> {
        if let Some(known) = Profile::built_in(name.get_ref()) {
            return Ok(known);
        }
        let path = self.source.folder().join(name.get_ref());
        if !path.exists() {
            let what = format!(
                "there is no host profile {:?}: the names are {}, or name a file beside the scenario",
                name.get_ref(),
                Profile::names()
            );
            return Err(self.source.at(name.span(), what));
        }
        Profile::load(&path).map_err(|e| self.source.at(name.span(), e))
    }

    pub(super) fn process(&self, process: &world::Process) -> Result<Process, ScenarioError> {
        Ok(match process {
            world::Process::Fixed(p) => Process::Fixed(p.0),
            world::Process::GilbertElliott {
                good,
                bad,
                good_loss,
                bad_loss,
            } => {
                self.positive(good, "a state")?;
                self.positive(bad, "a state")?;
                Process::GilbertElliott {
                    good_ns: good.get_ref().0 as f64,
                    bad_ns: bad.get_ref().0 as f64,
                    good_loss: good_loss.0,
                    bad_loss: bad_loss.0,
                }
            }
            world::Process::Trace(csv) => {
                Process::trace_from_csv(&self.text(csv)?).map_err(|e| self.in_file(csv, e))?
            }
        })
    }

    pub(super) fn error_model(&self) -> Result<Option<ErrorModel>, ScenarioError> {
        Ok(match &self.file.medium.error {
            None => None,
            Some(file::ErrorModel::Nist) => Some(ErrorModel::Nist),
            Some(file::ErrorModel::Perfect) => Some(ErrorModel::Perfect),
            Some(file::ErrorModel::ThresholdDb(db)) => Some(ErrorModel::Threshold(db.0)),
            Some(file::ErrorModel::Table { csv, octets }) => {
                let table = PerTable::from_csv(&self.text(csv)?, octets.0.into());
                Some(ErrorModel::Table(table.map_err(|e| self.in_file(csv, e))?))
            }
        })
    }

    /// The loss of a path over time.
    pub(super) fn path_loss(&self, csv: &Spanned<String>) -> Result<Arc<PathLossTrace>, ScenarioError> {
        let trace = PathLossTrace::from_csv(&self.text(csv)?);
        trace.map(Arc::new).map_err(|e| self.in_file(csv, e))
    }

    fn in_file(&self, csv: &Spanned<String>, what: String) -> ScenarioError {
        self.source.at(csv.span(), format!("{:?}, {what}", csv.get_ref()))
    }

    fn text(&self, csv: &Spanned<String>) -> Result<String, ScenarioError> {
        let path = self.source.folder().join(csv.get_ref());
        let unreadable = |e: std::io::Error| {
            self.source
                .at(csv.span(), format!("cannot read {}: {e}", path.display()))
        };
        let text = sim::text::read_at_most(&path, MAX_CSV_OCTETS).map_err(unreadable)?;
        text.ok_or_else(|| {
            let what = format!("{} has more than {MAX_CSV_OCTETS} octets", path.display());
            self.source.at(csv.span(), what)
        })
    }
}
