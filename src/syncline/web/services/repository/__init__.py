"""RepositoryService and RepoCredsService, in parts; begin at :mod:`syncline.web.services.repository.declaring`."""
