"""Operators that race: every order of what they do, a bad one played, and the smallest ordering that rules it out."""
