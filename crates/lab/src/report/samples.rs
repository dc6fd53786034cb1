//! Samples as Parquet: opens in polars, duckdb, pandas and R. Columns are named with their unit last, `t1_ns`.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};

/// Rows of one row group, unless said otherwise: what is held in memory before it is written.
pub const ROWS_PER_GROUP: usize = 131_072;

/// Kind of numbers in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Unsigned 32-bit.
    U32,
    /// Unsigned 64-bit.
    U64,
    /// Signed 64-bit.
    I64,
    /// Double.
    F64,
    /// True or false.
    Bool,
    /// Text from a small set of words, stored once per row group.
    Word,
}

/// A column: its name, kind, and whether a row may leave it empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    name: String,
    kind: Kind,
    optional: bool,
}

impl Column {
    /// A column that has a value in every row.
    pub fn new(name: impl Into<String>, kind: Kind) -> Self {
        Column {
            name: name.into(),
            kind,
            optional: false,
        }
    }

    /// A column that may be empty, as a plane is that nobody could see.
    pub fn optional(name: impl Into<String>, kind: Kind) -> Self {
        Column {
            optional: true,
            ..Column::new(name, kind)
        }
    }
}

/// One value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// For [`Kind::U32`].
    U32(u32),
    /// For [`Kind::U64`].
    U64(u64),
    /// For [`Kind::I64`].
    I64(i64),
    /// For [`Kind::F64`].
    F64(f64),
    /// For [`Kind::Bool`].
    Bool(bool),
    /// For [`Kind::Word`].
    Word(&'a str),
    /// No value, in an optional column.
    Empty,
}

/// Why samples cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum SamplesError {
    /// Two columns with one name, or no column.
    #[error("samples need columns with different names, not {0:?}")]
    Columns(Vec<String>),
    /// The file cannot be written.
    #[error(transparent)]
    Io(std::io::Error),
    /// The encoder gave up.
    #[error("samples cannot be encoded: {0}")]
    Encode(ParquetError),
}

impl From<ParquetError> for SamplesError {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
                Ok(io) => SamplesError::Io(*io),
                Err(other) => SamplesError::Encode(ParquetError::External(other)),
            },
            other => SamplesError::Encode(other),
        }
    }
}

/// Values of one column that wait for their row group.
enum Values {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Double(Vec<f64>),
    Bool(Vec<bool>),
    Word(Vec<ByteArray>),
}

struct Buffer {
    column: Column,
    values: Values,
    /// 1 for a value, 0 for none; stays empty in a column that always has one.
    present: Vec<i16>,
    /// Each word once, so that rows share its bytes.
    words: BTreeMap<String, ByteArray>,
}

/// Writes rows to a Parquet file, compressed with snappy.
pub struct SampleWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    buffers: Vec<Buffer>,
    rows_per_group: usize,
    waiting: usize,
    rows: u64,
}

impl<W: Write + Send> SampleWriter<W> {
    /// Starts a file with these columns. `about` goes to the metadata of the file: seed, scenario, version.
    /// `rows_per_group` bounds the memory; [`ROWS_PER_GROUP`] suits.
    pub fn new(
        out: W,
        columns: Vec<Column>,
        about: &[(&str, &str)],
        rows_per_group: usize,
    ) -> Result<Self, SamplesError> {
        let mut names: Vec<_> = columns.iter().map(|c| c.name.clone()).collect();
        names.sort();
        if names.is_empty() || names.windows(2).any(|w| w[0] == w[1]) {
            return Err(SamplesError::Columns(names));
        }
        let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
        let schema = Type::group_type_builder("samples").with_fields(fields).build()?;
        let about = about
            .iter()
            .map(|(k, v)| KeyValue::new((*k).into(), (*v).to_string()))
            .collect();
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("sdmac ", env!("CARGO_PKG_VERSION")).into())
            .set_key_value_metadata(Some(about))
            .set_dictionary_enabled(false);
        for column in &columns {
            let path = ColumnPath::from(column.name.as_str());
            properties = match column.kind {
                Kind::Word => properties.set_column_dictionary_enabled(path, true),
                // stamps grow slowly: their differences take a fraction of the space
                Kind::U32 | Kind::U64 | Kind::I64 => {
                    properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
                }
                Kind::F64 | Kind::Bool => properties,
            };
        }
        let properties = Arc::new(properties.build());
        Ok(SampleWriter {
            file: SerializedFileWriter::new(out, Arc::new(schema), properties)?,
            buffers: columns.into_iter().map(Buffer::new).collect(),
            rows_per_group: rows_per_group.max(1),
            waiting: 0,
            rows: 0,
        })
    }

    /// Takes in one row, one cell for each column in order; writes a row group when enough rows wait.
    ///
    /// # Panics
    /// When the cells do not fit the columns in number or kind.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), SamplesError> {
        assert_eq!(cells.len(), self.buffers.len(), "one cell for each column");
        for (buffer, cell) in self.buffers.iter_mut().zip(cells) {
            buffer.push(cell);
        }
        self.waiting += 1;
        self.rows += 1;
        if self.waiting == self.rows_per_group {
            self.write_group()?;
        }
        Ok(())
    }

    /// Writes what waits and the footer; hands the writer back with the number of rows.
    pub fn finish(mut self) -> Result<(W, u64), SamplesError> {
        self.write_group()?;
        Ok((self.file.into_inner()?, self.rows))
    }

    fn write_group(&mut self) -> Result<(), SamplesError> {
        if self.waiting == 0 {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for buffer in &mut self.buffers {
            let mut column = group.next_column()?.expect("as many columns as the schema");
            let present = buffer.column.optional.then_some(buffer.present.as_slice());
            match &buffer.values {
                Values::Int32(v) => column.typed::<Int32Type>().write_batch(v, present, None)?,
                Values::Int64(v) => column.typed::<Int64Type>().write_batch(v, present, None)?,
                Values::Double(v) => column.typed::<DoubleType>().write_batch(v, present, None)?,
                Values::Bool(v) => column.typed::<BoolType>().write_batch(v, present, None)?,
                Values::Word(v) => column.typed::<ByteArrayType>().write_batch(v, present, None)?,
            };
            column.close()?;
            buffer.clear();
        }
        group.close()?;
        self.waiting = 0;
        Ok(())
    }
}

impl Buffer {
    fn new(column: Column) -> Self {
        Buffer {
            values: match column.kind {
                Kind::U32 => Values::Int32(Vec::new()),
                Kind::U64 | Kind::I64 => Values::Int64(Vec::new()),
                Kind::F64 => Values::Double(Vec::new()),
                Kind::Bool => Values::Bool(Vec::new()),
                Kind::Word => Values::Word(Vec::new()),
            },
            present: Vec::new(),
            words: BTreeMap::new(),
            column,
        }
    }

    fn push(&mut self, cell: &Cell<'_>) {
        match (&mut self.values, self.column.kind, *cell) {
            // Parquet stores unsigned numbers as the signed ones with the same bits.
            (Values::Int32(v), Kind::U32, Cell::U32(x)) => v.push(x as i32),
            (Values::Int64(v), Kind::U64, Cell::U64(x)) => v.push(x as i64),
            (Values::Int64(v), Kind::I64, Cell::I64(x)) => v.push(x),
            (Values::Double(v), Kind::F64, Cell::F64(x)) => v.push(x),
            (Values::Bool(v), Kind::Bool, Cell::Bool(x)) => v.push(x),
            (Values::Word(v), Kind::Word, Cell::Word(x)) => v.push(match self.words.get(x) {
                Some(word) => word.clone(),
                None => {
                    let word = ByteArray::from(x);
                    self.words.insert(x.into(), word.clone());
                    word
                }
            }),
            (_, _, Cell::Empty) if self.column.optional => {
                self.present.push(0);
                return;
            }
            (_, kind, cell) => panic!("column {:?} is {kind:?}, the cell is {cell:?}", self.column.name),
        }
        if self.column.optional {
            self.present.push(1);
        }
    }

    fn clear(&mut self) {
        match &mut self.values {
            Values::Int32(v) => v.clear(),
            Values::Int64(v) => v.clear(),
            Values::Double(v) => v.clear(),
            Values::Bool(v) => v.clear(),
            Values::Word(v) => v.clear(),
        }
        self.present.clear();
        self.words.clear();
    }
}

fn field(column: &Column) -> Result<Arc<Type>, ParquetError> {
    let unsigned = |bits| Some(LogicalType::integer(bits, false));
    let (physical, logical) = match column.kind {
        Kind::U32 => (Physical::INT32, unsigned(32)),
        Kind::U64 => (Physical::INT64, unsigned(64)),
        Kind::I64 => (Physical::INT64, None),
        Kind::F64 => (Physical::DOUBLE, None),
        Kind::Bool => (Physical::BOOLEAN, None),
        Kind::Word => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let repetition = if column.optional {
        Repetition::OPTIONAL
    } else {
        Repetition::REQUIRED
    };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(field))
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::*;

    fn columns() -> Vec<Column> {
        vec![
            Column::new("node", Kind::U32),
            Column::new("t1_ns", Kind::U64),
            Column::optional("t5_ns", Kind::U64),
            Column::new("error_ns", Kind::I64),
            Column::new("snr_db", Kind::F64),
            Column::new("met", Kind::Bool),
            Column::new("outcome", Kind::Word),
        ]
    }

    fn write<W: Write + Send>(out: W, rows: u64, per_group: usize) -> Result<(W, u64), SamplesError> {
        let mut w = SampleWriter::new(out, columns(), &[("seed", "42")], per_group)?;
        for i in 0..rows {
            w.row(&[
                Cell::U32(u32::MAX - i as u32),
                Cell::U64(u64::MAX - i),
                if i % 3 == 0 { Cell::Empty } else { Cell::U64(i) },
                Cell::I64(-(i as i64)),
                Cell::F64(i as f64 / 2.0),
                Cell::Bool(i % 2 == 0),
                Cell::Word(["acked", "data lost", "ACK lost"][i as usize % 3]),
            ])?;
        }
        w.finish()
    }

    #[test]
    fn what_goes_in_comes_out() {
        let (bytes, rows) = write(Vec::new(), 10, 4).unwrap();
        assert_eq!(rows, 10);
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let meta = reader.metadata();
        let groups: Vec<_> = meta.row_groups().iter().map(|g| g.num_rows()).collect();
        assert_eq!(groups, [4, 4, 2]);
        let about = meta.file_metadata().key_value_metadata().unwrap();
        assert_eq!(
            (about[0].key.as_str(), about[0].value.as_deref()),
            ("seed", Some("42"))
        );
        for (i, row) in reader.get_row_iter(None).unwrap().enumerate() {
            let row: Vec<_> = row.unwrap().into_columns().into_iter().map(|(_, f)| f).collect();
            let blind = if i % 3 == 0 {
                Field::Null
            } else {
                Field::ULong(i as u64)
            };
            let expected = [
                Field::UInt(u32::MAX - i as u32),
                Field::ULong(u64::MAX - i as u64),
                blind,
                Field::Long(-(i as i64)),
                Field::Double(i as f64 / 2.0),
                Field::Bool(i % 2 == 0),
                Field::Str(["acked", "data lost", "ACK lost"][i % 3].into()),
            ];
            assert_eq!(row, expected);
        }
    }

    #[test]
    fn no_rows_are_a_valid_file() {
        let (bytes, _) = write(Vec::new(), 0, 4).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
    }

    #[test]
    fn columns_are_checked() {
        let twice = vec![Column::new("a", Kind::U32), Column::new("a", Kind::Bool)];
        assert!(matches!(
            SampleWriter::new(Vec::new(), twice, &[], 1),
            Err(SamplesError::Columns(_))
        ));
        assert!(matches!(
            SampleWriter::new(Vec::new(), vec![], &[], 1),
            Err(SamplesError::Columns(_))
        ));
    }

    #[test]
    #[should_panic(expected = "column \"a\" is U32")]
    fn a_wrong_cell_is_a_mistake_of_the_caller() {
        let columns = vec![Column::new("a", Kind::U32)];
        let _ = SampleWriter::new(Vec::new(), columns, &[], 1)
            .unwrap()
            .row(&[Cell::Empty]);
    }

    #[test]
    fn a_full_disk_is_an_error() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0 = self
                    .0
                    .checked_sub(bytes.len())
                    .ok_or(std::io::ErrorKind::StorageFull)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        for room in [0, 10, 3000] {
            match write(Full(room), 100_000, 1000) {
                Err(SamplesError::Io(e)) => assert_eq!(e.kind(), std::io::ErrorKind::StorageFull),
                other => panic!("{:?}", other.map(|(_, rows)| rows)),
            }
        }
    }
}
