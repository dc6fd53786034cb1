//! Experiments: scenario, plan, run, measure, report.

pub mod plan;
pub mod qualify;
pub mod record;
pub mod report;
pub mod run;
pub mod scenario;
pub mod stats;
