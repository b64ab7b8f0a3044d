"""Profiles of steps: where the time goes, by device and type of op; a picture of a step."""

from model_deploy.profile.recording import ProfileHook, parse_steps

__all__ = ["ProfileHook", "parse_steps"]
