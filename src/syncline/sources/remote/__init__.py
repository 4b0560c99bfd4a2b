"""Remote addresses: who may read them, with which credentials, at which pace."""
