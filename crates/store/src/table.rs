//! Writes and reads the columns of a Parquet file, independent of their meaning.

use crate::error::{Error, Result};
use crate::panics::catch;
use crate::{bounds, pages};
use bytes::Bytes;
use parquet::basic::{Compression, ConvertedType, Encoding, Repetition, Type as Physical};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A column's type on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Unsigned 32-bit numbers (`UINT_32`).
    U32,
    /// Unsigned 64-bit numbers (`UINT_64`).
    U64,
    /// Parquet type `UINT_64`, mostly ascending: stored as differences.
    Ascending,
    /// Text in UTF-8 (`UTF8`).
    Text,
    /// Parquet type `UINT_32`, nullable.
    MaybeU32,
    /// Floating-point numbers of double precision (`DOUBLE`).
    F64,
    /// Parquet type `DOUBLE`, nullable.
    MaybeF64,
}

impl Kind {
    fn is_optional(self) -> bool {
        matches!(self, Self::MaybeU32 | Self::MaybeF64)
    }
}

/// Column names and types, in order.
pub type Schema = [(&'static str, Kind)];

/// The values of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    U32(Vec<u32>),
    U64(Vec<u64>),
    Text(Vec<String>),
    MaybeU32(Vec<Option<u32>>),
    F64(Vec<f64>),
    MaybeF64(Vec<Option<f64>>),
}

impl Column {
    pub fn len(&self) -> usize {
        match self {
            Self::U32(v) => v.len(),
            Self::U64(v) => v.len(),
            Self::Text(v) => v.len(),
            Self::MaybeU32(v) => v.len(),
            Self::F64(v) => v.len(),
            Self::MaybeF64(v) => v.len(),
        }
    }

    /// The values of a column that was read as [`Kind::U32`].
    pub fn u32(&self) -> &[u32] {
        match self {
            Self::U32(v) => v,
            _ => unreachable!("read as the schema says"),
        }
    }

    /// The values of a column that was read as [`Kind::U64`] or [`Kind::Ascending`].
    pub fn u64(&self) -> &[u64] {
        match self {
            Self::U64(v) => v,
            _ => unreachable!("read as the schema says"),
        }
    }

    /// The values of a column that was read as [`Kind::Text`].
    pub fn text(&self) -> &[String] {
        match self {
            Self::Text(v) => v,
            _ => unreachable!("read as the schema says"),
        }
    }

    /// The values of a column that was read as [`Kind::MaybeU32`].
    pub fn maybe_u32(&self) -> &[Option<u32>] {
        match self {
            Self::MaybeU32(v) => v,
            _ => unreachable!("read as the schema says"),
        }
    }

    /// The values of a column that was read as [`Kind::F64`].
    pub fn f64(&self) -> &[f64] {
        match self {
            Self::F64(v) => v,
            _ => unreachable!("read as the schema says"),
        }
    }

    /// The values of a column that was read as [`Kind::MaybeF64`].
    pub fn maybe_f64(&self) -> &[Option<f64>] {
        match self {
            Self::MaybeF64(v) => v,
            _ => unreachable!("read as the schema says"),
        }
    }
}

/// A finished file as the manifest lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// File name in the profile's folder.
    pub file: String,
    /// Rows that the file holds, as its footer says.
    pub rows: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// CRC-32 of the whole file.
    pub crc32: u32,
}

/// A file that counts the bytes written to it and computes their CRC-32.
struct CountingFile {
    file: File,
    bytes: u64,
    crc: crc32fast::Hasher,
}

impl Write for CountingFile {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        let n = self.file.write(data)?;
        self.crc.update(&data[..n]);
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// Writes a Parquet file under a temporary name; [`TableWriter::finish`] renames it to its own.
pub struct TableWriter {
    folder: PathBuf,
    name: String,
    rows: u64,
    inner: SerializedFileWriter<CountingFile>,
}

impl TableWriter {
    pub fn create(folder: &Path, name: &str, schema: &Schema) -> Result<Self> {
        let path = folder.join(partial(name));
        let file = File::create_new(&path).map_err(|e| Error::io(&path, "create", &e))?;
        let file = CountingFile {
            file,
            bytes: 0,
            crc: crc32fast::Hasher::new(),
        };
        let inner = SerializedFileWriter::new(file, parquet_schema(schema), properties(schema))
            .map_err(|e| write_error(&path, &e))?;
        Ok(Self {
            folder: folder.to_owned(),
            name: name.to_owned(),
            rows: 0,
            inner,
        })
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Appends one row group.
    pub fn append(&mut self, columns: &[Column]) -> Result<()> {
        let rows = columns.first().map_or(0, Column::len);
        append(&mut self.inner, columns).map_err(|e| write_error(&self.folder.join(&self.name), &e))?;
        self.rows += rows as u64;
        Ok(())
    }

    /// Writes the footer, renames the file to its own name, and returns its entry for the manifest. `sync`: it must survive a
    /// crash of the host, too.
    pub fn finish(self, sync: bool) -> Result<Entry> {
        let path = self.folder.join(&self.name);
        let file = self.inner.into_inner().map_err(|e| write_error(&path, &e))?;
        if sync {
            file.file.sync_data().map_err(|e| Error::io(&path, "write", &e))?;
        }
        std::fs::rename(self.folder.join(partial(&self.name)), &path)
            .map_err(|e| Error::io(&path, "rename", &e))?;
        Ok(Entry {
            file: self.name,
            rows: self.rows,
            bytes: file.bytes,
            crc32: file.crc.finalize(),
        })
    }
}

/// Name of a file until it is complete.
pub fn partial(name: &str) -> String {
    format!("{name}.partial")
}

fn write_error(path: &Path, error: &ParquetError) -> Error {
    Error::io(path, "write", &std::io::Error::other(error.to_string()))
}

fn parquet_schema(schema: &Schema) -> Arc<Type> {
    let fields = schema.iter().map(|(name, kind)| {
        let (physical, converted) = match kind {
            Kind::U32 | Kind::MaybeU32 => (Physical::INT32, ConvertedType::UINT_32),
            Kind::U64 | Kind::Ascending => (Physical::INT64, ConvertedType::UINT_64),
            Kind::F64 | Kind::MaybeF64 => (Physical::DOUBLE, ConvertedType::NONE),
            Kind::Text => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
        };
        let repetition = match kind.is_optional() {
            true => Repetition::OPTIONAL,
            false => Repetition::REQUIRED,
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_converted_type(converted)
            .with_repetition(repetition);
        Arc::new(field.build().expect("the schemas of this crate are valid"))
    });
    let root = Type::group_type_builder("nodewise").with_fields(fields.collect());
    Arc::new(root.build().expect("the schemas of this crate are valid"))
}

fn properties(schema: &Schema) -> Arc<WriterProperties> {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::LZ4_RAW)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(format!("nodewise {}", env!("CARGO_PKG_VERSION")));
    for (name, _) in schema.iter().filter(|(_, kind)| *kind == Kind::Ascending) {
        properties = properties
            .set_column_dictionary_enabled(ColumnPath::from(*name), false)
            .set_column_encoding(ColumnPath::from(*name), Encoding::DELTA_BINARY_PACKED);
    }
    Arc::new(properties.build())
}

fn append(writer: &mut SerializedFileWriter<CountingFile>, columns: &[Column]) -> ParquetResult<()> {
    let mut group = writer.next_row_group()?;
    for column in columns {
        append_column(&mut group, column)?;
    }
    group.close()?;
    Ok(())
}

fn append_column(
    group: &mut SerializedRowGroupWriter<'_, CountingFile>,
    column: &Column,
) -> ParquetResult<()> {
    let Some(mut writer) = group.next_column()? else {
        return Err(ParquetError::General("more columns than the schema has".into()));
    };
    match column {
        Column::U32(v) => writer
            .typed::<Int32Type>()
            .write_batch(bytemuck::cast_slice(v), None, None)?,
        Column::U64(v) => writer
            .typed::<Int64Type>()
            .write_batch(bytemuck::cast_slice(v), None, None)?,
        Column::Text(v) => {
            let bytes: Vec<ByteArray> = v.iter().map(|s| ByteArray::from(s.as_str())).collect();
            writer.typed::<ByteArrayType>().write_batch(&bytes, None, None)?
        }
        Column::MaybeU32(v) => {
            let values: Vec<i32> = v.iter().flatten().map(|x| x.cast_signed()).collect();
            writer
                .typed::<Int32Type>()
                .write_batch(&values, Some(&levels(v)), None)?
        }
        Column::F64(v) => writer.typed::<DoubleType>().write_batch(v, None, None)?,
        Column::MaybeF64(v) => {
            let values: Vec<f64> = v.iter().flatten().copied().collect();
            writer
                .typed::<DoubleType>()
                .write_batch(&values, Some(&levels(v)), None)?
        }
    };
    writer.close()
}

/// Definition levels of nullable values: 1 where there is a value, 0 where it is null.
fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
    values.iter().map(|x| i16::from(x.is_some())).collect()
}

/// A Parquet file held in memory, checked against the manifest.
pub struct Table {
    path: PathBuf,
    reader: SerializedFileReader<Bytes>,
    /// Content of the whole file.
    data: Bytes,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Table {
    /// Reads the file and compares size, checksum and number of rows.
    pub fn open(folder: &Path, entry: &Entry) -> Result<Self> {
        let path = folder.join(&entry.file);
        let data = nodewise_input::bytes(&path, entry.bytes).map_err(|e| unreadable(&path, entry, &e))?;
        if data.len() as u64 != entry.bytes {
            return Err(Error::damaged(&path, other_size(entry)));
        }
        if crc32fast::hash(&data) != entry.crc32 {
            return Err(Error::damaged(&path, "its checksum differs from the manifest's"));
        }
        let data = Bytes::from(data);
        let reader = decoded(&path, || SerializedFileReader::new(data.clone()))?;
        let rows = reader.metadata().row_groups().iter();
        let rows = rows.map(|g| u64::try_from(g.num_rows()).ok());
        let all = rows.map(|n| n.unwrap_or(u64::MAX)).try_fold(0, u64::checked_add);
        if all != Some(entry.rows) {
            return Err(Error::damaged(
                &path,
                "its number of rows differs from the manifest's",
            ));
        }
        Ok(Self { path, reader, data })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a small table as a whole; it may have at most `density` rows per byte.
    pub fn columns(&self, schema: &Schema, density: u64) -> Result<Vec<Column>> {
        self.check_density(density)?;
        let mut whole: Vec<Column> = schema.iter().map(|(_, kind)| empty(*kind)).collect();
        for group in 0..self.groups() {
            for (all, part) in whole.iter_mut().zip(self.group(group, schema)?) {
                extend(all, part);
            }
        }
        Ok(whole)
    }

    /// Refuses a table of more than `density` rows per byte.
    pub fn check_density(&self, density: u64) -> Result<()> {
        let rows = self.reader.metadata().row_groups().iter();
        let rows = rows.map(|g| g.num_rows().cast_unsigned()).sum::<u64>();
        match rows > bounds::MIN_ROWS.saturating_add(density.saturating_mul(self.data.len() as u64)) {
            true => Err(Error::damaged(
                &self.path,
                format!("{rows} rows in {} bytes", self.data.len()),
            )),
            false => Ok(()),
        }
    }

    /// Number of rows of a row group.
    pub fn group_rows(&self, index: usize) -> u64 {
        self.reader.metadata().row_group(index).num_rows().cast_unsigned()
    }

    /// Number of row groups.
    pub fn groups(&self) -> usize {
        self.reader.num_row_groups()
    }

    /// Reads the schema's columns of one row group, in parallel; all have the same length.
    pub fn group(&self, index: usize, schema: &Schema) -> Result<Vec<Column>> {
        decoded(&self.path, || {
            let group = self.reader.get_row_group(index)?;
            let columns = schema.par_iter();
            // The suppression of panic messages is per thread, so it is set in each.
            let read = |name, kind| catch(|| read_column(&*group, &self.data, name, kind));
            let columns = columns.map(|(name, kind)| read(name, *kind).unwrap_or_else(|| Err(undecodable())));
            let mut columns = columns.collect::<ParquetResult<Vec<_>>>()?;
            let rows = columns.first().map_or(0, Column::len);
            for column in &mut columns {
                // The column is newer than the profile.
                if let Column::MaybeU32(values) = column
                    && values.is_empty()
                {
                    values.resize(rows, None);
                }
            }
            Ok(columns)
        })
    }
}

/// Runs a decoder that may panic on damaged data; a panic means that the file is damaged.
fn decoded<T>(path: &Path, decode: impl FnOnce() -> ParquetResult<T>) -> Result<T> {
    let result = catch(decode).unwrap_or_else(|| Err(undecodable()));
    result.map_err(|e| match e {
        ParquetError::General(what) => Error::damaged(path, what),
        other => Error::damaged(path, other),
    })
}

fn undecodable() -> ParquetError {
    ParquetError::General("it cannot be decoded".into())
}

fn other_size(entry: &Entry) -> String {
    format!("its size is not the {} bytes of the manifest", entry.bytes)
}

fn unreadable(path: &Path, entry: &Entry, error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::FileTooLarge => Error::damaged(path, other_size(entry)),
        std::io::ErrorKind::InvalidInput => Error::damaged(path, error),
        _ => Error::io(path, "read", error),
    }
}

fn read_column(group: &dyn RowGroupReader, file: &[u8], name: &str, kind: Kind) -> ParquetResult<Column> {
    let bad = |what: &str| ParquetError::General(format!("column `{name}` {what}"));
    let columns = group.metadata().columns();
    let Some(index) = columns.iter().position(|c| c.column_path().string() == name) else {
        return match kind {
            Kind::MaybeU32 => Ok(Column::MaybeU32(Vec::new())),
            _ => Err(bad("is missing")),
        };
    };
    let optional = columns[index].column_descr().max_def_level();
    if optional != i16::from(kind.is_optional()) || columns[index].column_descr().max_rep_level() != 0 {
        return Err(bad("has another shape"));
    }
    let rows = usize::try_from(group.metadata().num_rows()).map_err(|_| bad("has no length"))?;
    pages::check(file, &columns[index], rows as u64)
        .map_err(|what| bad(&format!("is impossible: {what}")))?;
    let column = match (group.get_column_reader(index)?, kind) {
        (ColumnReader::Int32ColumnReader(mut reader), Kind::U32) => {
            let mut values = Vec::new();
            reader.read_records(rows, None, None, &mut values)?;
            Column::U32(values.into_iter().map(i32::cast_unsigned).collect())
        }
        (ColumnReader::Int32ColumnReader(mut reader), Kind::MaybeU32) => {
            let (mut levels, mut values) = (Vec::new(), Vec::new());
            reader.read_records(rows, Some(&mut levels), None, &mut values)?;
            Column::MaybeU32(at_levels(&levels, values.into_iter().map(i32::cast_unsigned)))
        }
        (ColumnReader::DoubleColumnReader(mut reader), Kind::F64) => {
            let mut values = Vec::new();
            reader.read_records(rows, None, None, &mut values)?;
            Column::F64(values)
        }
        (ColumnReader::DoubleColumnReader(mut reader), Kind::MaybeF64) => {
            let (mut levels, mut values) = (Vec::new(), Vec::new());
            reader.read_records(rows, Some(&mut levels), None, &mut values)?;
            Column::MaybeF64(at_levels(&levels, values.into_iter()))
        }
        (ColumnReader::Int64ColumnReader(mut reader), Kind::U64 | Kind::Ascending) => {
            let mut values = Vec::new();
            reader.read_records(rows, None, None, &mut values)?;
            Column::U64(values.into_iter().map(i64::cast_unsigned).collect())
        }
        (ColumnReader::ByteArrayColumnReader(mut reader), Kind::Text) => {
            let mut values: Vec<ByteArray> = Vec::new();
            reader.read_records(rows, None, None, &mut values)?;
            let bytes: u64 = values.iter().map(|v| v.len() as u64).sum();
            if bytes > (bounds::TEXT * file.len() as u64).max(bounds::MIN_ROWS << 10) {
                return Err(bad("has more text than its file can hold"));
            }
            let text = values.iter().map(|v| v.as_utf8().map(ToOwned::to_owned));
            Column::Text(text.collect::<ParquetResult<_>>()?)
        }
        _ => return Err(bad("has another type")),
    };
    (column.len() == rows)
        .then_some(column)
        .ok_or_else(|| bad("ends early"))
}

/// Distributes the non-null values to the positions that their definition levels name.
fn at_levels<T>(levels: &[i16], mut values: impl Iterator<Item = T>) -> Vec<Option<T>> {
    levels
        .iter()
        .map(|l| (*l > 0).then(|| values.next()).flatten())
        .collect()
}

fn empty(kind: Kind) -> Column {
    match kind {
        Kind::U32 => Column::U32(Vec::new()),
        Kind::U64 | Kind::Ascending => Column::U64(Vec::new()),
        Kind::Text => Column::Text(Vec::new()),
        Kind::MaybeU32 => Column::MaybeU32(Vec::new()),
        Kind::F64 => Column::F64(Vec::new()),
        Kind::MaybeF64 => Column::MaybeF64(Vec::new()),
    }
}

fn extend(all: &mut Column, part: Column) {
    match (all, part) {
        (Column::U32(a), Column::U32(b)) => a.extend(b),
        (Column::U64(a), Column::U64(b)) => a.extend(b),
        (Column::Text(a), Column::Text(b)) => a.extend(b),
        (Column::MaybeU32(a), Column::MaybeU32(b)) => a.extend(b),
        (Column::F64(a), Column::F64(b)) => a.extend(b),
        (Column::MaybeF64(a), Column::MaybeF64(b)) => a.extend(b),
        _ => unreachable!("one schema, one type"),
    }
}
