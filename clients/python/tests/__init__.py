"""Tests of the client against a running server: its address is in SEMEL_URL, a token for the scope `tests` in SEMEL_TOKEN."""
