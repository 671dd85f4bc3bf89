"""Where dedup runs are kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from weir_analytics.panes.states import dedup_folder, forget_lanes

from .log_frames import batch_of


@pytest.mark.parametrize("topic_id", ["/zM3ftIlTvCjGcdSGGqfow", "zM3f/IlTv/CjGcdSGGqfow", "zM3+"])
def test_an_id_of_the_log_names_one_folder(topic_id: str, tmp_path: Path) -> None:
    """An id is base64: as it is, one in 64 began at the root of the disk."""
    live = replace(batch_of(tmp_path, 1), topic_id=topic_id)
    lane = replace(live, lane="7")
    for batch in (live, lane):
        dedup_folder(batch, 0).mkdir(parents=True)

    (log,) = tmp_path.iterdir()
    assert {folder.name for folder in log.iterdir()} == {"live", "7"}
    forget_lanes(tmp_path, topic_id, {"live"})
    assert {folder.name for folder in log.iterdir()} == {"live"}
