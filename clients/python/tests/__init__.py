"""Tests of the client against a running server, whose address is in SEMEL_URL."""
