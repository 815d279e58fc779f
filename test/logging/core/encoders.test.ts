import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { lokiBody, nanoseconds, otlpBody, syslogMessage } from '../../../src/logging/core/encoders.ts';
import { componentOf, orderedLogs, podDirectoryOf, severityOf } from '../../../src/logging/core/log-names.ts';
import type { LogRecord } from '../../../src/logging/port.ts';

const record: LogRecord = {
  time: '2026-01-02T03:04:05.123456789Z',
  text: 'hello',
  severity: 'info',
  stream: 'stdout',
  namespace: 'shop',
  pod: 'web-1',
  uid: 'u-1',
  container: 'app',
  component: '',
};

describe('formats of log receivers', () => {
  it('syslog messages have an RFC 5424 header with microseconds', () => {
    assert.equal(
      syslogMessage(record, 'edge-1'),
      '<134>1 2026-01-02T03:04:05.123456Z edge-1 app - - ' +
        '[hyperedge@32473 namespace="shop" pod="web-1" uid="u-1" container="app" stream="stdout"] hello',
    );
    const error = syslogMessage({ ...record, severity: 'error', component: 'api' }, 'edge-1');
    assert.match(error, /^<131>1 \S+ edge-1 api - - /);
  });

  it('escapes control characters, quotes and spaces, so that a log line cannot forge a syslog message', () => {
    const hostile = { ...record, text: 'a\n<0>1 b\0\u001B[31m\tc', pod: 'x"] \\', container: `a b${'c'.repeat(60)}` };
    const message = syslogMessage(hostile, 'edge 1\n');
    assert.doesNotMatch(message, /(?!\t)\p{Cc}/u);
    assert.match(message, / edge_1_ a_bc{45} - - /);
    assert.match(message, /pod="x\\"\\\] \\\\"/);
    assert.match(message, /\] a\\x0a<0>1 b\\x00\\x1b\[31m\tc$/);
  });

  it("OTLP groups records by container and uses OpenTelemetry's semantic conventions", () => {
    const body = JSON.parse(otlpBody([record, { ...record, text: 'two' }, { ...record, pod: 'web-2' }], 'edge-1', 5));
    assert.equal(body.resourceLogs.length, 2);
    const [first] = body.resourceLogs;
    const attributes = Object.fromEntries(
      first.resource.attributes.map((each: { key: string; value: { stringValue: string } }) => [
        each.key,
        each.value.stringValue,
      ]),
    );
    assert.deepEqual(attributes, {
      'service.name': 'app',
      'k8s.node.name': 'edge-1',
      'k8s.namespace.name': 'shop',
      'k8s.pod.name': 'web-1',
      'k8s.pod.uid': 'u-1',
      'k8s.container.name': 'app',
    });
    const [log, second] = first.scopeLogs[0].logRecords;
    assert.equal(log.timeUnixNano, '1767323045123456789');
    assert.equal(log.observedTimeUnixNano, '5000000');
    assert.deepEqual(log.body, { stringValue: 'hello' });
    assert.deepEqual([log.severityNumber, second.body.stringValue], [9, 'two']);
  });

  it('Loki groups records by labels and omits empty labels', () => {
    const body = JSON.parse(lokiBody([record, { ...record, stream: 'stderr' }, record], 'edge-1'));
    assert.deepEqual(body.streams[0], {
      stream: { job: 'hyperedge', node: 'edge-1', namespace: 'shop', pod: 'web-1', container: 'app', stream: 'stdout' },
      values: [
        ['1767323045123456789', 'hello'],
        ['1767323045123456789', 'hello'],
      ],
    });
    assert.equal(body.streams.length, 2);
  });

  it('converts times with a UTC offset or without a fraction to nanoseconds', () => {
    assert.equal(nanoseconds('2026-01-02T03:04:05Z'), '1767323045000000000');
    assert.equal(nanoseconds('2026-01-02T05:04:05.1+02:00'), '1767323045100000000');
    assert.equal(nanoseconds('no time'), '0');
  });
});

describe('names of log files', () => {
  it('orders log files of a container by attempt and rotation, and ignores other files', () => {
    assert.deepEqual(
      orderedLogs(['1.log', '0.log', '0.log.20260102030405000', '0.log.20260101', 'x.log', '0.log.gz']),
      ['0.log.20260101', '0.log.20260102030405000', '0.log', '1.log'],
    );
  });

  it('parses namespace, pod and UID from the name of a pod log directory', () => {
    assert.deepEqual(podDirectoryOf('shop_web-1.x_0a-1'), { namespace: 'shop', pod: 'web-1.x', uid: '0a-1' });
    for (const name of ['shop_web', 'a_b_c_d', '..', 'A_b_c', '_b_c'])
      assert.equal(podDirectoryOf(name), undefined, name);
  });

  it("returns a component name only for log files of the control plane's static pods", () => {
    const of = (namespace: string, pod: string, container: string) =>
      componentOf({ namespace, pod, uid: 'u' }, container);
    assert.equal(of('kube-system', 'master-api-edge-1', 'api'), 'api');
    assert.equal(of('shop', 'master-api-edge-1', 'api'), '');
    assert.equal(of('kube-system', 'master-api-edge-1', 'side'), '');
  });

  it('derives the severity from the level letter of component log lines, with info as the default', () => {
    assert.equal(severityOf('2026-01-02T03:04:05.678Z E api failed'), 'error');
    assert.equal(severityOf('2026-01-02T03:04:05.678Z W api slow'), 'warning');
    assert.equal(severityOf('E api'), 'info');
  });
});
