//! Experiments: scenario, plan, run, measure, report.

pub mod measure;
pub mod record;
pub mod report;
pub mod stats;
