"""ApplicationSets: generators make rows, templates make an Application of each, a plan writes and rolls them out."""
