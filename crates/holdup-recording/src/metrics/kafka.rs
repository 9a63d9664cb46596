//! Metrics of Kafka, from its own protocol. Figures of a topic are sums over its partitions.

metrics! {
    "kafka", "Kafka", "kafka_";

    Gauge END_OFFSET: Count = "kafka_end_offset", "Sum of the ends of the partitions' logs, by `topic`: it grows with each record";
    Gauge COMMITTED_OFFSET: Count = "kafka_committed_offset", "Sum of the committed offsets, by `group` and `topic`: it grows with each record that a group has done with";
    Gauge BACKLOG: Count = "kafka_backlog", "Records behind the committed offsets, by `group` and `topic`";
    Gauge LAG: Seconds = "kafka_lag_seconds", "Time since the first record behind the committed offset came, in the worst partition, by `group` and `topic`";
    Gauge WORST_PARTITION: Count = "kafka_worst_partition", "The number of that partition, by `group` and `topic`";
    Gauge WORST_PARTITION_BACKLOG: Count = "kafka_worst_partition_backlog", "Its records behind the committed offset, by `group` and `topic`";
    Gauge GROUP_MEMBERS: Count = "kafka_group_members", "Consumers in a `group`";
    Counter GROUP_REBALANCES: Count = "kafka_group_rebalances_total", "Rebalances that holdup saw, by `group`: other members, or another assignment";
    Gauge PARTITIONS: Count = "kafka_partitions", "Partitions that holdup may see, without Kafka's own topics";
    Gauge UNDER_REPLICATED_PARTITIONS: Count = "kafka_under_replicated_partitions", "Of them, those with fewer copies in sync than they should have";
    Gauge LEADERLESS_PARTITIONS: Count = "kafka_leaderless_partitions", "Of them, those without a leader: no producer and no consumer can use them";
}
