"""Tables of rows and columns in files, CSV and Parquet, in the order and shards of all examples."""
