"""API priority and fairness: which requests run, wait or are refused."""
