"""Tables: of a profile, written from queries; and in Markdown."""

import zlib


def markdown(heads, rows, left=None):
    """A table in Markdown. Its first `left` columns, or all of them, begin at the left, the others end at the right."""
    marks = [":--" if left is None or i < left else "---:" for i in range(len(heads))]
    return "\n".join("| " + " | ".join(map(cell, line)) + " |" for line in [heads, marks, *rows]) + "\n"


def cell(text):
    """On one line, without what ends a cell."""
    return " ".join(str(text).replace("|", "\\|").split())


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
