"""Templates of ApplicationSets: texts, whole Applications, patches. Pure."""
