"""Policies that play expert roles: servers, other models, scripts."""
