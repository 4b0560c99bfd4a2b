"""From a tree to objects: types of sources, Butane, Jsonnet, plugins, the render cache."""
