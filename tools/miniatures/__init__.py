"""The tiny team that ships with the repository, and how it is rebuilt."""
