"""Built-in and dynamic admission of valid objects; see :mod:`syncline.cluster.admission.chain`."""

from syncline.cluster.admission.attempt import Attempt, forbid
from syncline.cluster.admission.chain import Admission

__all__ = ["Admission", "Attempt", "forbid"]
