"""What commands print: values in, text out."""
