//! What a run leaves behind: one writer for each file, over plain data.
//!
//! Nothing here knows scenarios, simulators or protocols: callers bring numbers, frames and texts. [`folder`] owns
//! the output folder and its files; the other writers take any `Write`.

pub mod folder;
pub mod html;
pub mod pcapng;
pub mod plot;
pub mod samples;
mod scale;
mod svg;
pub mod timeline;

pub use scale::{Axis, significant};
