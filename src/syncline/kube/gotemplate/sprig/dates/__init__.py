"""Go's times, durations and layouts, and sprig's functions of dates."""
