"""The claims of the SMaT paper (Fernandes et al., 2022, sections 5 and 6), tried on students that are taught here."""
