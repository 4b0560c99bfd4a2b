"""What is written: Applications, Events about them, their deletion, and the guard on it; pure."""
