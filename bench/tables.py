"""Tables of a profile, written from queries."""

import zlib


def write(database, query, file):
    """A query's rows as a file of the profile, and what the manifest says of it."""
    database.execute(f"CREATE OR REPLACE TABLE written AS {query}")
    for (column,) in database.execute("SELECT column_name FROM duckdb_columns() WHERE table_name = 'written'").fetchall():
        database.execute(f"ALTER TABLE written ALTER COLUMN {column} SET NOT NULL")  # as the format has them
    file.unlink(missing_ok=True)
    database.execute(f"COPY written TO '{file}' (FORMAT parquet, COMPRESSION lz4_raw)")
    ((rows,),) = database.execute("SELECT count(*) FROM written").fetchall()
    data = file.read_bytes()
    return {"file": file.name, "rows": rows, "bytes": len(data), "crc32": zlib.crc32(data)}
