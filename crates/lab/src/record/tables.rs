//! The tables: one row for each confirm, one row for each payload of a flow that was delivered.

use std::collections::BTreeMap;

use radio::{Confirm, Msdu, Plane};
use sim::traffic::parse_header;

use super::{CONFIRMS, DELIVERIES, RecordError, outcome_word};
use crate::report::folder::{AtomicFile, Folder, FolderError};
use crate::report::samples::{Cell, Column, Kind, SampleWriter, SamplesError};

/// Rows that wait in memory, of each table.
const ROWS_PER_GROUP: usize = 32_768;

pub(super) struct Tables {
    confirms: SampleWriter<AtomicFile>,
    deliveries: SampleWriter<AtomicFile>,
    /// Node that a flow comes from, and one more than its highest number so far.
    flows: BTreeMap<u32, (u32, u32)>,
    folder: std::path::PathBuf,
}

impl Tables {
    pub(super) fn new(folder: &Folder, about: &[(&str, &str)]) -> Result<Tables, RecordError> {
        let start = |name: &str, columns| {
            let file = folder.file(name)?;
            SampleWriter::new(file, columns, about, ROWS_PER_GROUP)
                .map_err(|e| error(&folder.path().join(name), e))
        };
        Ok(Tables {
            confirms: start(CONFIRMS, confirm_columns())?,
            deliveries: start(DELIVERIES, delivery_columns())?,
            flows: BTreeMap::new(),
            folder: folder.path().to_owned(),
        })
    }

    /// Of a flow that comes from elsewhere every number may arrive.
    pub(super) fn expect(&mut self, flow: u32, from: u32) {
        self.flows.insert(flow, (from, u32::MAX));
    }

    pub(super) fn submitted(&mut self, node: u32, msdu: &Msdu<'_>) {
        if let Some((flow, number, _)) = parse_header(msdu.payload) {
            self.flows.insert(flow, (node, number.saturating_add(1)));
        }
    }

    pub(super) fn delivered(&mut self, now_ns: u64, to: u32, msdu: &Msdu<'_>) -> Result<(), RecordError> {
        // payloads that are not of a flow (measurement tasks have their own) say nothing that was submitted
        let Some((flow, number, then_ns)) = parse_header(msdu.payload) else {
            return Ok(());
        };
        let Some(&(from, numbers)) = self.flows.get(&flow) else {
            return Ok(());
        };
        if number >= numbers || then_ns > now_ns {
            return Ok(());
        }
        let row = [
            Cell::U32(flow),
            Cell::U32(number),
            Cell::U32(from),
            Cell::U32(to),
            Cell::U64(now_ns),
            Cell::U64(now_ns - then_ns),
        ];
        let written = self.deliveries.row(&row);
        written.map_err(|e| error(&self.folder.join(DELIVERIES), e))
    }

    pub(super) fn confirmed(
        &mut self,
        now_ns: u64,
        node: u32,
        c: &Confirm,
        exchange_ns: Option<(u64, u64)>,
    ) -> Result<(), RecordError> {
        let rate = c.rate.to_string();
        let optional = |ns: Option<u64>| ns.map_or(Cell::Empty, Cell::U64);
        let mut row = vec![
            Cell::U32(node),
            Cell::U64(c.token.0),
            Cell::Word(outcome_word(c.outcome)),
            Cell::U32(c.attempts.into()),
            Cell::Word(&rate),
        ];
        row.extend(
            Plane::ALL
                .iter()
                .map(|p| optional(c.stamps.get_host(*p).map(|t| t.as_ns()))),
        );
        row.extend([
            optional(exchange_ns.map(|e| e.0)),
            optional(exchange_ns.map(|e| e.1)),
            Cell::U64(now_ns),
        ]);
        let written = self.confirms.row(&row);
        written.map_err(|e| error(&self.folder.join(CONFIRMS), e))
    }

    /// Rows of confirms, rows of deliveries.
    pub(super) fn finish(self, folder: &Folder) -> Result<(u64, u64), RecordError> {
        let confirms = self.confirms.finish();
        let (file, confirms) = confirms.map_err(|e| error(&self.folder.join(CONFIRMS), e))?;
        folder.commit(file)?;
        let deliveries = self.deliveries.finish();
        let (file, deliveries) = deliveries.map_err(|e| error(&self.folder.join(DELIVERIES), e))?;
        folder.commit(file)?;
        Ok((confirms, deliveries))
    }
}

/// Stamps are on the node's clock, the other times are true.
fn confirm_columns() -> Vec<Column> {
    let mut columns = vec![
        Column::new("node", Kind::U32),
        Column::new("token", Kind::U64),
        Column::new("outcome", Kind::Word),
        Column::new("attempts", Kind::U32),
        Column::new("rate", Kind::Word),
    ];
    columns.extend(
        Plane::ALL
            .iter()
            .map(|p| Column::optional(format!("{p}_ns"), Kind::U64)),
    );
    columns.extend([
        Column::optional("exchange_start_ns", Kind::U64),
        Column::optional("exchange_end_ns", Kind::U64),
        Column::new("confirmed_ns", Kind::U64),
    ]);
    columns
}

fn delivery_columns() -> Vec<Column> {
    vec![
        Column::new("flow", Kind::U32),
        Column::new("number", Kind::U32),
        Column::new("from", Kind::U32),
        Column::new("to", Kind::U32),
        Column::new("delivered_ns", Kind::U64),
        Column::new("latency_ns", Kind::U64),
    ]
}

fn error(path: &std::path::Path, error: SamplesError) -> RecordError {
    match error {
        SamplesError::Io(source) => FolderError::io(path, source).into(),
        other => RecordError::Samples(other),
    }
}
