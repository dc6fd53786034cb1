//! Experiments: scenario, plan, run, measure, report.

pub mod report;
pub mod reproduce;
pub mod stats;
