"""ApplicationService, in parts; begin at :mod:`syncline.web.services.application.finding`."""
