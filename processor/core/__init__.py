"""The rules, pure: no clock, no I/O, standard library only."""
