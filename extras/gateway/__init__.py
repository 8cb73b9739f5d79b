"""Programs that call a chat endpoint play the roles."""

from coterie.cli.extras import EnvironmentKind, Extra

_KIND = EnvironmentKind("httptools", "", "coterie.extras.gateway.kinds", options=False)

EXTRA = Extra("gateway", environments={"harness": _KIND, "command": _KIND})
