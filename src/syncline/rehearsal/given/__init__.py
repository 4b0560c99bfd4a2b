"""What a rehearsal is given: files of a repository, Applications, a world."""
