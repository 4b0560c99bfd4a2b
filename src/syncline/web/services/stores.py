"""The services of what Argo CD stores beside its own kinds, put together: :func:`handlers`."""

from __future__ import annotations

from collections.abc import Mapping

from syncline.web.parts import Parts
from syncline.web.services.applicationset import ApplicationSets
from syncline.web.services.certificate import Certificates
from syncline.web.services.gpgkey import GpgKeys
from syncline.web.services.notification import Notifications
from syncline.web.services.repository.connecting import Connections
from syncline.web.services.repository.credentials import Credentials
from syncline.web.services.repository.declaring import Repositories
from syncline.web.services.repository.reading import RepositoryReading
from syncline.web.services.repository.shelves import pushing_shelf, reading_shelf
from syncline.web.wire.calls import Handler


def handlers(parts: Parts) -> Mapping[str, Handler]:
    """Return the handlers of these services."""
    reading, pushing = reading_shelf(parts.state), pushing_shelf(parts.state)
    connections, others = Connections(parts), Connections(parts)
    return {
        **Repositories(parts, reading, connections).handlers(),
        **Repositories(parts, pushing, others, pushing=True).handlers(),
        **RepositoryReading(parts, reading).handlers(),
        **Credentials(parts.access, reading, connections).handlers(),
        **Credentials(parts.access, pushing, others, pushing=True).handlers(),
        **ApplicationSets(parts).handlers(),
        **Certificates(parts.state, parts.access).handlers(),
        **GpgKeys(parts.state, parts.access).handlers(),
        **Notifications(parts.state).handlers(),
    }
