"""Files of datasets: downloads, archives, TFRecords with random access, corrupt records."""
