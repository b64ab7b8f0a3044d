"""What the tasks of a run are doing: a file in its folder, and `python -m model_deploy.status`.

It needs no TensorFlow, and no connection to the run.
"""

from model_deploy.status.file import STATUS_FILE, Status, TaskStatus, read_status, write_status
from model_deploy.status.table import status_report

__all__ = [
    "STATUS_FILE",
    "Status",
    "TaskStatus",
    "read_status",
    "status_report",
    "write_status",
]
