"""What a hub gives its managed cluster groups: values in, Kubernetes objects out, as the acm chart renders them."""
