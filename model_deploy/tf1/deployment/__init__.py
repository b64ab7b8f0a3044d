"""`deployment` of TF-Slim: `from deployment import model_deploy`."""
