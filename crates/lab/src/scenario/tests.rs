//! Tests of scenario files.
