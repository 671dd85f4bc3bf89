"""Settings of the command: the environment variables `WEIR_TOPICS_<NAME>`."""

from __future__ import annotations

from pydantic import Field, PositiveFloat, PositiveInt
from pydantic_settings import SettingsConfigDict
from weir.topics import Sizes, topics
from weir_service.settings import KafkaSettings

from weir_ingest.topics.plan import Wanted


class Settings(KafkaSettings):
    """What the command is told from outside."""

    model_config = SettingsConfigDict(env_prefix="WEIR_TOPICS_", frozen=True)

    events_partitions: PositiveInt = Field(
        default=Sizes.events_partitions,
        description="Partitions of weir.events: the most that the engine reads at once.",
    )
    events_days: PositiveInt = Field(
        default=Sizes.events_days,
        description="How long events are kept, in days; metrics can be counted this far back.",
    )
    quarantine_days: PositiveInt = Field(
        default=Sizes.quarantine_days,
        description="How long events that could not be used are kept, in days.",
    )
    alerts_days: PositiveInt = Field(
        default=Sizes.alerts_days,
        description="How long transitions and deliveries of alerts are kept, in days.",
    )
    corrections_days: PositiveInt = Field(
        default=Sizes.corrections_days, description="How long corrections are kept, in days."
    )
    replication_factor: PositiveInt = Field(
        default=1, description="How many brokers hold each partition."
    )
    min_insync_replicas: PositiveInt | None = Field(
        default=None,
        description="How many of them must have a record before it is acknowledged; "
        "by default all but one.",
    )
    allow_grow: bool = Field(
        default=False,
        description="Add partitions to topics that exist; opens a gap of one dedup horizon.",
    )
    allow_shorten: bool = Field(
        default=False, description="Shorten retentions; what is older is deleted."
    )
    wait_s: PositiveFloat = Field(
        default=120.0, description="How long to wait for the brokers and for what is done, seconds."
    )

    def wanted(self) -> list[Wanted]:
        """Return every topic as it is wanted."""
        sizes = Sizes(
            events_partitions=self.events_partitions,
            events_days=self.events_days,
            quarantine_days=self.quarantine_days,
            alerts_days=self.alerts_days,
            corrections_days=self.corrections_days,
        )
        replicas = self.replication_factor
        min_isr = self.min_insync_replicas or max(replicas - 1, 1)
        return [Wanted(topic, replicas, min_isr) for topic in topics(sizes)]
