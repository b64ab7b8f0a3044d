"""Strangers at open ports, and files of an attacker."""
