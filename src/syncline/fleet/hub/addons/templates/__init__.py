"""AddOnTemplates: manifests with variables, and what a deployment config changes in them."""
