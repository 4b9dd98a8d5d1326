//! One row for each trial in Apache Parquet, for questions over many runs: with all that is known of it, or its value and its place only.
//!
//! Source of the layout: "Apache Parquet Format", version 2. Numbers with a fraction are split into streams of bytes, which compress
//! better, and all pages are compressed with zstd. Counts are signed, so that differences of columns can be negative.

use std::sync::Arc;

use ::parquet::basic::{
    Compression, ConvertedType, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel,
};
use ::parquet::column::writer::ColumnWriter;
use ::parquet::data_type::ByteArray;
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::{ColumnPath, Type};

use super::cell_columns;
use super::trial_columns::{Kind, TrialRows};
use super::value::Value;
use crate::view::stem;
use crate::{Piece, ReportError, View};

/// Rows of a group: readers skip whole groups by the lowest and highest values of their columns.
const GROUP: usize = 65_536;

pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    view.some_run("parquet")?;
    let table = TrialRows::new(view.runs);
    let rows = table.rows().map(|row| table.values(&row).collect());
    piece(view, file("trials", &table.head(), rows))
}

/// The trials with their values and places only.
pub(super) fn render_cells(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    view.some_run("cells")?;
    piece(view, file("cells", &cell_columns::head(view.runs), cell_columns::rows(view.runs)))
}

fn piece(view: &View<'_>, bytes: Result<Vec<u8>, ParquetError>) -> Result<Vec<Piece>, ReportError> {
    let bytes = bytes.map_err(|error| ReportError::Parquet { why: error.to_string() })?;
    Ok(vec![Piece::new(stem(view.runs), "parquet", bytes)])
}

fn file(
    name: &str,
    head: &[(String, Kind)],
    rows: impl Iterator<Item = Vec<Option<Value>>>,
) -> Result<Vec<u8>, ParquetError> {
    let fields = head.iter().map(|(name, kind)| field(name, *kind).map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
    let schema = Type::group_type_builder(name).with_fields(fields).build()?;
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("throughline {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(ZstdLevel::default()));
    for (name, kind) in head {
        let encoding = match kind {
            Kind::Number => Encoding::BYTE_STREAM_SPLIT,
            // Times grow from row to row.
            Kind::Time => Encoding::DELTA_BINARY_PACKED,
            _ => continue,
        };
        // A level's name may have dots: the path of a column is its name alone.
        let path = ColumnPath::new(vec![name.clone()]);
        properties = properties.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path, encoding);
    }
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties.build()))?;
    let mut rows = rows.peekable();
    while rows.peek().is_some() {
        let mut group = writer.next_row_group()?;
        write_group(&mut group, head, rows.by_ref().take(GROUP))?;
        group.close()?;
    }
    writer.into_inner()
}

/// A column that may be null.
fn field(name: &str, kind: Kind) -> Result<Type, ParquetError> {
    let (physical, logical) = match kind {
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Count => (Physical::INT64, None),
        Kind::Number => (Physical::DOUBLE, None),
        Kind::Flag => (Physical::BOOLEAN, None),
        Kind::Time => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
    };
    Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .with_converted_type(ConvertedType::NONE)
        .build()
}

/// The values of a column that are not null.
enum Values {
    Texts(Vec<ByteArray>),
    Wholes(Vec<i64>),
    Numbers(Vec<f64>),
    Flags(Vec<bool>),
}

/// A column of a group.
struct Column {
    values: Values,
    /// 1 for each value, 0 for each null.
    levels: Vec<i16>,
}

impl Column {
    fn new(kind: Kind) -> Self {
        let values = match kind {
            Kind::Text => Values::Texts(Vec::new()),
            Kind::Count | Kind::Time => Values::Wholes(Vec::new()),
            Kind::Number => Values::Numbers(Vec::new()),
            Kind::Flag => Values::Flags(Vec::new()),
        };
        Self { values, levels: Vec::new() }
    }

    /// Adds a value; one of another type than the column's is null.
    fn push(&mut self, value: Option<Value>) {
        let is_there = match (&mut self.values, value) {
            (Values::Texts(all), Some(Value::Text(text))) => {
                all.push(text.into_bytes().into());
                true
            }
            (Values::Wholes(all), Some(Value::Count(count))) => {
                all.push(i64::try_from(count).unwrap_or(i64::MAX));
                true
            }
            (Values::Wholes(all), Some(Value::Time(unix_ns))) => {
                all.push(i64::try_from(unix_ns / 1_000).unwrap_or(i64::MAX));
                true
            }
            (Values::Numbers(all), Some(Value::Number(number))) => {
                all.push(number);
                true
            }
            (Values::Flags(all), Some(Value::Flag(is))) => {
                all.push(is);
                true
            }
            _ => false,
        };
        self.levels.push(is_there.into());
    }

    fn write(&self, writer: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = Some(self.levels.as_slice());
        match (writer, &self.values) {
            (ColumnWriter::ByteArrayColumnWriter(writer), Values::Texts(all)) => writer.write_batch(all, levels, None),
            (ColumnWriter::Int64ColumnWriter(writer), Values::Wholes(all)) => writer.write_batch(all, levels, None),
            (ColumnWriter::DoubleColumnWriter(writer), Values::Numbers(all)) => writer.write_batch(all, levels, None),
            (ColumnWriter::BoolColumnWriter(writer), Values::Flags(all)) => writer.write_batch(all, levels, None),
            _ => Err(ParquetError::General("a column has another type than its values".to_owned())),
        }
        .map(drop)
    }
}

fn write_group(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    head: &[(String, Kind)],
    rows: impl Iterator<Item = Vec<Option<Value>>>,
) -> Result<(), ParquetError> {
    let mut columns: Vec<Column> = head.iter().map(|(_, kind)| Column::new(*kind)).collect();
    for row in rows {
        columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
    }
    for column in &columns {
        let Some(mut writer) = group.next_column()? else { break };
        column.write(writer.untyped())?;
        writer.close()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::Field;
    use bytes::Bytes;

    use super::*;
    use crate::sample;

    /// The rows as this library reads them: name and value.
    fn read(bytes: Vec<u8>) -> Vec<Vec<(String, Field)>> {
        let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        rows.map(|row| row.unwrap().get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect())
            .collect()
    }

    #[test]
    fn trials_read_back() {
        let runs = [sample::stream(), sample::rr(), sample::planned()];
        let bytes = render(&View::new(&runs)).unwrap().remove(0).bytes;
        let rows = read(bytes);
        let trials: Vec<_> = runs.iter().flat_map(|run| &run.outcomes).flat_map(|outcome| &outcome.trials).collect();
        assert_eq!(rows.len(), trials.len());
        let of = |row: &[(String, Field)], name: &str| row.iter().find(|(head, _)| head == name).unwrap().1.clone();
        for (row, trial) in rows.iter().zip(&trials) {
            assert_eq!(of(row, "value"), trial.value.map_or(Field::Null, Field::Double));
        }
        assert_eq!(of(&rows[0], "run"), Field::Str(runs[0].header.id.clone()));
        let started = i64::try_from(runs[0].header.started_unix_ns / 1_000).unwrap();
        assert_eq!(of(&rows[0], "started"), Field::TimestampMicros(started));
        assert_eq!(of(&rows[0], "rtt_p50_ns"), Field::Null);
        assert_ne!(of(rows.last().unwrap(), "level_sndbuf"), Field::Null);
        assert_eq!(of(&rows[0], "level_sndbuf"), Field::Null);
    }

    #[test]
    fn cells_read_back_in_the_order_of_their_rounds() {
        let runs = [sample::between_hosts(), sample::stream()];
        let rows = read(render_cells(&View::new(&runs)).unwrap().remove(0).bytes);
        let of = |row: &[(String, Field)], name: &str| row.iter().find(|(head, _)| head == name).unwrap().1.clone();
        let trials: usize = runs.iter().flat_map(|run| &run.outcomes).map(|outcome| outcome.trials.len()).sum();
        assert_eq!(rows.len(), trials);
        let first: Vec<String> = rows[0].iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(
            first,
            [
                "run",
                "round",
                "started",
                "from",
                "to",
                "transport",
                "pattern",
                "block_bytes",
                "level_flows",
                "value",
                "unit",
                "verdicts"
            ]
        );
        let places = |name: &str| rows[..12].iter().map(|row| of(row, name)).collect::<Vec<_>>();
        assert_eq!((&places("from")[0], &places("to")[0]), (&Field::Str("a".into()), &Field::Str("b".into())));
        let round = |row: &Vec<(String, Field)>| match of(row, "round") {
            Field::Long(round) => Some(round),
            _ => None,
        };
        let of_mesh = rows.iter().filter(|row| of(row, "run") == Field::Str(runs[0].header.id.clone()));
        let rounds: Vec<Option<i64>> = of_mesh.map(round).collect();
        assert!(rounds.is_sorted(), "{rounds:?}");
        let values: Vec<f64> = rows
            .iter()
            .filter_map(|row| match of(row, "value") {
                Field::Double(value) => Some(value),
                _ => None,
            })
            .collect();
        assert_eq!(values.len(), trials);
    }

    #[test]
    fn the_same_runs_give_the_same_bytes() {
        let runs = [sample::curve(), sample::hostile()];
        let bytes = || render(&View::new(&runs)).unwrap().remove(0).bytes;
        assert_eq!(bytes(), bytes());
    }

    #[test]
    fn a_run_without_trials_is_an_empty_table() {
        let bytes = render(&View::new(&[sample::empty()])).unwrap().remove(0).bytes;
        assert!(read(bytes).is_empty());
    }
}
