"""The objects of a cluster group, by theme; each function returns those of one part of the chart."""
