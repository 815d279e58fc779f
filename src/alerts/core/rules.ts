/**
 * Alerting rules of this product. Every host evaluates them, and examples/monitoring/prometheus-rules.yaml contains
 * them.
 */
import type { Severity } from '../port.ts';

/** Alerting rule in the format of Prometheus. */
export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  /** Duration for which the expression must be true before the alert fires. Default: the alert fires immediately. */
  readonly for?: string;
  readonly labels: { readonly severity: Severity };
  /** Texts of the alert. `action` describes how to fix the cause. */
  readonly annotations: { readonly summary: string; readonly action: string };
}

export interface RuleGroup {
  readonly name: string;
  readonly rules: readonly AlertRule[];
}

export const ruleGroups: readonly RuleGroup[] = [
  {
    name: 'hyperedge-store',
    rules: [
      {
        alert: 'StoreHasNoLeader',
        expr: 'etcd_server_has_leader == 0',
        for: '1m',
        labels: { severity: 'critical' },
        annotations: {
          summary: 'The store member {{ $labels.instance }} has no leader.',
          action: 'Run "hyperedge members" on a master and start the members that are down.',
        },
      },
      {
        alert: 'StoreIsAlmostFull',
        expr: 'etcd_mvcc_db_total_size_in_bytes / etcd_server_quota_backend_bytes > 0.8',
        for: '10m',
        labels: { severity: 'warning' },
        annotations: {
          summary: 'The store of {{ $labels.instance }} uses more than 80 % of its quota.',
          action: 'Delete objects that are no longer needed, then compact and defragment.',
        },
      },
      {
        alert: 'StoreDiskIsFull',
        expr: 'hyperedge_etcd_disk_full == 1',
        labels: { severity: 'critical' },
        annotations: {
          summary: 'The disk of {{ $labels.instance }} is full, so the store accepts no writes.',
          action: 'Free space on the file system of /var/lib/origin.',
        },
      },
      {
        alert: 'StoreDiskIsSlow',
        expr: 'histogram_quantile(0.99, rate(etcd_disk_wal_fsync_duration_seconds_bucket[5m])) > 0.1',
        for: '10m',
        labels: { severity: 'warning' },
        annotations: {
          summary: 'One of 100 writes of {{ $labels.instance }} takes more than 100 ms to reach the disk.',
          action: 'Run "hyperedge doctor" on the host, and replace a worn SD card.',
        },
      },
      {
        alert: 'StoreChangesLeaderOften',
        expr: 'increase(etcd_server_leader_changes_seen_total[1h]) > 4',
        labels: { severity: 'warning' },
        annotations: {
          summary: 'The store changed its leader more than four times within an hour.',
          action: 'Check the network between the masters and the load of their disks.',
        },
      },
      {
        alert: 'StoreProposalsFail',
        expr: 'rate(etcd_server_proposals_failed_total[15m]) > 0',
        for: '15m',
        labels: { severity: 'warning' },
        annotations: {
          summary: 'Writes to the store of {{ $labels.instance }} fail.',
          action: 'Run "hyperedge members" on a master.',
        },
      },
    ],
  },
  {
    name: 'hyperedge-api',
    rules: [
      {
        alert: 'ComponentDoesNotAnswer',
        expr: 'up{job=~"hyperedge-.*"} == 0',
        for: '5m',
        labels: { severity: 'critical' },
        annotations: {
          summary: '{{ $labels.job }} of {{ $labels.instance }} does not answer.',
          action: 'Run "hyperedge status" on the host, and follow the runbook "a component does not come up".',
        },
      },
      {
        alert: 'ApiServerErrors',
        expr: 'sum by (instance) (rate(apiserver_request_total{code=~"5.."}[5m])) / sum by (instance) (rate(apiserver_request_total[5m])) > 0.05',
        for: '10m',
        labels: { severity: 'warning' },
        annotations: {
          summary: 'More than 5 % of the requests to {{ $labels.instance }} fail.',
          action: 'Read the log with "master-logs api api".',
        },
      },
      {
        alert: 'ApiServerRejectsRequests',
        expr: 'increase(apiserver_flowcontrol_rejected_requests_total[10m]) > 0',
        for: '10m',
        labels: { severity: 'warning' },
        annotations: {
          summary: 'A priority level of {{ $labels.instance }} is full.',
          action: 'Find the client in "kubectl get --raw /debug/api_priority_and_fairness/dump_requests".',
        },
      },
      {
        alert: 'WebhookFailsOpen',
        expr: 'increase(apiserver_admission_webhook_fail_open_count[10m]) > 0',
        labels: { severity: 'warning' },
        annotations: {
          summary: 'The admission webhook {{ $labels.name }} was ignored because it did not respond.',
          action: 'Check the pods behind the webhook.',
        },
      },
    ],
  },
  {
    name: 'hyperedge-node',
    rules: [
      {
        alert: 'NodeMemoryIsAlmostUsedUp',
        expr: 'node_memory_working_set_bytes / on (instance) machine_memory_bytes > 0.9',
        for: '15m',
        labels: { severity: 'warning' },
        annotations: {
          summary: 'The node {{ $labels.instance }} uses more than 90 % of its memory.',
          action: 'Set memory limits, or move pods to another node.',
        },
      },
      {
        alert: 'ProcessRestartsOften',
        expr: 'changes(process_start_time_seconds[1h]) > 3',
        labels: { severity: 'warning' },
        annotations: {
          summary: 'A component of {{ $labels.instance }} restarted more than three times within an hour.',
          action: 'Follow the runbook "a component does not come up".',
        },
      },
      {
        alert: 'LogReceiverIsDown',
        expr: 'hyperedge_log_forward_receiver_up == 0',
        for: '10m',
        labels: { severity: 'warning' },
        annotations: {
          summary: 'The log receiver of {{ $labels.instance }} does not accept records.',
          action: 'Read the error in "journalctl -u hyperedge", and check the receiver and logging.forward.',
        },
      },
      {
        alert: 'LogRecordsAreDropped',
        expr: 'increase(hyperedge_log_forward_dropped_records_total[10m]) > 0',
        labels: { severity: 'warning' },
        annotations: {
          summary: 'Log records of {{ $labels.instance }} were dropped because the buffer was full.',
          action: 'Check the log receiver, or raise logging.forward.bufferMiB.',
        },
      },
      {
        alert: 'RouterHasNoBackend',
        expr: 'increase(hyperedge_router_unrouted_requests_total[10m]) > 100',
        for: '10m',
        labels: { severity: 'info' },
        annotations: {
          summary: 'The router of {{ $labels.instance }} receives requests for hosts without a route.',
          action: 'Check the DNS names of the routes.',
        },
      },
    ],
  },
];

/** PrometheusRule object for the Prometheus operator. */
export const prometheusRule = () => ({
  apiVersion: 'monitoring.coreos.com/v1',
  kind: 'PrometheusRule',
  metadata: { name: 'hyperedge', namespace: 'monitoring' },
  spec: { groups: ruleGroups },
});
