"""What commands and pages show, as values: texts of one field, rows, layouts. Values in, values out."""
