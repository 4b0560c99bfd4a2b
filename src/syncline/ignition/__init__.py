"""The languages in which machines are configured: Ignition, and Butane in ``ignition/butane``. Pure: text in, text and
a report out."""
