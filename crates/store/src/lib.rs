//! Profiles on disk: Parquet tables, versions, recovery.
