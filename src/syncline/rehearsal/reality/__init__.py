"""What really happened, beside what was rehearsed: records of operations, their replay, and how they drift."""
