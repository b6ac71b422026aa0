"""One reader: whatever has columns gives batches of them, one function codes a column, statistics are made of codes.

The interface, from data to statistics::

    open_source(data)                       sources.py     a Source: of a path, a frame, a relation, a stream
    source.names, source.positions(names)                  public facts; ValueError for columns that are not there
    source.check_types(names)                              refusals by declared type
    source.batches(names, spelled)          producers.py   lists of columns: arrays of Arrow, or Cells of objects
    Variable(schema, name).marks(column)    variables.py   what each cell counts as; `codes` of marks
    read_records(source, schema)            records.py     CodedRecords: counts(scopes), codes(), matched(), ...
    Owners().add(column), .numbered()       owners.py      whose each record is: exact, by the identifier's content
    numbers(column), keyed(columns)         arrow_cells.py doubles; positions in a list of match keys

Everything is read once, when private data are made, hence before anything is charged; codes, numbers and owners are
kept. Only files of our own reading (`source.is_ours`) may be read again, above a fixed public number of cells, and are
checked to be the same file. No statistic knows where data came from.

Privacy
-------
A cell's code is a function of that cell and of the public schema. So data that are neighbours give codes that are.
Nothing here raises, warns or logs because of a cell.
"""
