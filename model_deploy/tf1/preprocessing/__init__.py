"""`preprocessing` of TF-Slim: `from preprocessing import preprocessing_factory`."""
