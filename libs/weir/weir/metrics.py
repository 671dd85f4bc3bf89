"""The name of every Prometheus metric that Weir's services expose.

Written here and nowhere else: `weir_<service>_<what>_<unit>[_total]`. Labels come
from closed sets; no label is a word that a client can choose.
"""

from __future__ import annotations

# ── ingest ──────────────────────────────────────────────────────────────────
INGEST_REQUESTS = "weir_ingest_requests_total"
INGEST_EVENTS = "weir_ingest_events_total"
INGEST_REFUSED = "weir_ingest_refused_total"
INGEST_BODY_BYTES = "weir_ingest_body_bytes_total"
INGEST_IN_FLIGHT_BYTES = "weir_ingest_in_flight_bytes"
INGEST_UNACKNOWLEDGED = "weir_ingest_unacknowledged_records"
INGEST_DELIVERY_SECONDS = "weir_ingest_delivery_seconds"
INGEST_DELIVERY_FAILURES = "weir_ingest_delivery_failures_total"
INGEST_TAIL_EVENTS = "weir_ingest_tail_events_total"
INGEST_KEYS = "weir_ingest_keys_count"

# ── panes ───────────────────────────────────────────────────────────────────
PANES_EVENTS = "weir_panes_events_total"
PANES_TICKS = "weir_panes_ticks_total"
PANES_VERDICTS = "weir_panes_verdicts_total"
PANES_BATCH_SECONDS = "weir_panes_batch_seconds"
PANES_LAG = "weir_panes_lag_records"
PANES_REVISION = "weir_panes_revision_count"
PANES_EPOCH = "weir_panes_epoch_count"
PANES_PROCESSED_THROUGH = "weir_panes_processed_through_seconds"
PANES_CLOCK_AHEAD = "weir_panes_broker_clock_ahead_seconds"
PANES_CORRECTIONS = "weir_panes_corrections_total"
PANES_FRESHNESS_SECONDS = "weir_panes_freshness_seconds"
PANES_RSS = "weir_panes_resident_memory_bytes"
PANES_THREADS = "weir_panes_threads_count"
PANES_OPEN_FILES = "weir_panes_open_files_count"
PANES_DEDUP = "weir_panes_dedup_bytes"
PANES_CHECKPOINT = "weir_panes_checkpoint_files_count"
PANES_LOG_LEFT = "weir_panes_log_left_seconds"
PANES_LOG_KEPT = "weir_panes_log_kept_seconds"

# ── alerts ──────────────────────────────────────────────────────────────────
ALERTS_PROCESSED_THROUGH = "weir_alerts_processed_through_seconds"
ALERTS_DUE = "weir_alerts_due_count"
ALERTS_OLDEST_DUE = "weir_alerts_oldest_due_seconds"
ALERTS_FAILING_CHANNELS = "weir_alerts_failing_channels_count"
ALERTS_RULES_REFUSED = "weir_alerts_rules_refused_count"
ALERTS_LEDGER_DIFFERENCE = "weir_alerts_ledger_difference_count"
ALERTS_REDIS_MEMORY = "weir_alerts_redis_memory_ratio"
ALERTS_RECOUNTING = "weir_alerts_recounting_count"

# ── dashboard ───────────────────────────────────────────────────────────────
DASHBOARD_REQUESTS = "weir_dashboard_requests_total"
DASHBOARD_REFUSED = "weir_dashboard_refused_total"
DASHBOARD_SOCKETS = "weir_dashboard_sockets_count"
DASHBOARD_SOCKETS_CLOSED = "weir_dashboard_sockets_closed_total"
DASHBOARD_FEEDS = "weir_dashboard_feeds_count"
DASHBOARD_FRAMES = "weir_dashboard_frames_total"
DASHBOARD_FRAMES_HELD_BACK = "weir_dashboard_frames_held_back_total"
DASHBOARD_EVALUATION_SECONDS = "weir_dashboard_evaluation_seconds"
DASHBOARD_PROCESSED_THROUGH = "weir_dashboard_processed_through_seconds"
