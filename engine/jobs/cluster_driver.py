"""The process that drives a Ray cluster for a job: `python -m engine.jobs.cluster_driver DESCRIPTOR`."""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection

from engine.jobs.cluster import drive

if __name__ == "__main__":
    drive(Connection(int(sys.argv[1])))
