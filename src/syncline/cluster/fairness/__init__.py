"""API priority and fairness: whose requests are answered, whose wait, and whose are refused."""
