"""Controllers of OLM: they observe the cluster, ask the state machines, and write what follows."""
