"""Generators of ApplicationSets: rows of parameters from elements, facts and answers. Pure."""
