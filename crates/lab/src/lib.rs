//! Experiments: scenario, plan, run, measure, report.
