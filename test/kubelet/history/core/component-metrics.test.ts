import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  componentRates,
  NO_RATES,
  readApiCounters,
  readStoreCounters,
} from '../../../../src/kubelet/history/core/component-metrics.ts';

const API = `# HELP apiserver_request_total Counter
# TYPE apiserver_request_total counter
apiserver_request_total{verb="GET",code="200"} 10
apiserver_request_total{code="503",verb="GET"} 2
apiserver_request_total{verb="LIST",code="500",resource="code=\\"500\\""} 1
apiserver_request_total_other{code="500"} 99
apiserver_request_duration_seconds_sum{code="500"} 99
apiserver_request_total{verb="GET",code="404"} broken`;

describe('metrics of components', () => {
  it('metrics of a component are summed over all lines of the metric', () => {
    assert.deepEqual(readApiCounters(API), { requests: 13, errors: 3 });
    assert.deepEqual(readApiCounters(''), { requests: 0, errors: 0 });
    assert.deepEqual(readApiCounters('apiserver_request_total{code="500"} 4'), { requests: 4, errors: 4 });
    const store = 'x 1\netcd_disk_wal_fsync_duration_seconds_sum 2.5\netcd_disk_wal_fsync_duration_seconds_count 100\n';
    assert.deepEqual(readStoreCounters(store), { flushes: 100, flushSeconds: 2.5 });
    assert.equal(readStoreCounters('other 1'), undefined);
  });

  it('metrics of components become rates, also after a counter reset, and are absent without two readings', () => {
    const before = { api: { requests: 100, errors: 5 }, store: { flushes: 10, flushSeconds: 1 } };
    const after = { api: { requests: 160, errors: 5 }, store: { flushes: 40, flushSeconds: 1.3 } };
    const { storeLatency = 0, ...rates } = componentRates(before, after, 60_000);
    assert.deepEqual(rates, { apiRequests: 1, apiErrors: 0, storeFlushes: 0.5 });
    assert.ok(Math.abs(storeLatency - 0.01) < 1e-9);
    const restarted = { api: { requests: 30, errors: 0 }, store: undefined };
    assert.deepEqual(componentRates(before, restarted, 60_000), { ...NO_RATES, apiRequests: 0.5, apiErrors: 0 });
    assert.equal(componentRates(before, before, 60_000).storeLatency, undefined);
    assert.deepEqual(componentRates(before, after, 0), NO_RATES);
  });
});
