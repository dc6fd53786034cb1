//! Experiments: scenario, plan, run, measure, report.

pub mod record;
pub mod report;
pub mod stats;
