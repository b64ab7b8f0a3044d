"""Where the time of steps goes, in each worker; which worker is slow, and by which part."""
