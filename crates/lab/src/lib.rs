//! Experiments: scenario, plan, run, measure, report.

pub mod conformance;
#[cfg(test)]
mod counting;
pub mod deploy;
pub mod guard;
pub mod measure;
pub mod mesh;
pub mod plan;
pub mod qualify;
pub mod record;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod scenario;
pub mod stats;
pub mod testbed;
