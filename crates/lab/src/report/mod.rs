//! Writers of what a run leaves.
