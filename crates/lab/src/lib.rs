//! Experiments: scenario, plan, run, measure, report.

pub mod qualify;
pub mod record;
pub mod report;
pub mod stats;
