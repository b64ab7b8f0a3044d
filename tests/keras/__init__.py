"""`model_deploy.keras`."""
