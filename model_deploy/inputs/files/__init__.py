"""Files of datasets: downloads, archives, TFRecords with random access, records that are corrupt."""
