//! Experiments: scenario, plan, run, measure, report.

pub mod report;
pub mod stats;
