import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { humanDuration, since } from '../../../src/api/printing/duration.ts';
import { restartsText, summarizePod } from '../../../src/api/printing/pod-status.ts';
import { at, context, created, type Document, kindNamed } from '../kinds/samples.ts';

const NOW = context.nowMs;

test('prints durations like upstream', () => {
  const second = 1000;
  const minute = 60 * second;
  const hour = 60 * minute;
  const day = 24 * hour;
  const cases: [number, string][] = [
    [-2 * second, '<invalid>'],
    [-second, '0s'],
    [0, '0s'],
    [119 * second, '119s'],
    [2 * minute, '2m'],
    [2 * minute + 3 * second, '2m3s'],
    [10 * minute + 3 * second, '10m'],
    [3 * hour - second, '179m'],
    [3 * hour, '3h'],
    [7 * hour + 59 * minute, '7h59m'],
    [8 * hour + 59 * minute, '8h'],
    [47 * hour, '47h'],
    [48 * hour, '2d'],
    [50 * hour, '2d2h'],
    [8 * day, '8d'],
    [729 * day, '729d'],
    [730 * day, '2y'],
    [800 * day, '2y70d'],
    [365 * 8 * day, '8y'],
  ];
  for (const [milliseconds, text] of cases) assert.equal(humanDuration(milliseconds), text, String(milliseconds));
  assert.equal(since(undefined, NOW), '<unknown>');
  assert.equal(since('garbage', NOW), '<unknown>');
});

function row(kind: string, document: Document): Record<string, string | number | bigint | boolean | null> {
  document.metadata['creationTimestamp'] = '2026-01-02T03:00:05Z';
  return Object.fromEntries(kindNamed(kind).columns.map((column) => [column.name, column.cell(document, NOW)]));
}

test('prints rows like upstream', () => {
  assert.deepEqual(
    row(
      'Deployment',
      created('Deployment', (d) => {
        at(d, 'spec')['replicas'] = 3;
      }),
    ),
    {
      Name: 'x',
      Ready: '0/3',
      'Up-to-date': 0,
      Available: 0,
      Age: '4m',
      Containers: 'main',
      Images: 'example.com/app:1',
      Selector: 'app=x',
    },
  );
  const service = created('Service', (d) => {
    Object.assign(at(d, 'spec'), { type: 'LoadBalancer', clusterIP: '172.30.0.1' });
  });
  at(service, 'spec', 'ports', 0)['nodePort'] = 30000;
  assert.deepEqual(row('Service', service), {
    Name: 'x',
    Type: 'LoadBalancer',
    'Cluster-IP': '172.30.0.1',
    'External-IP': '<pending>',
    'Port(s)': '80:30000/TCP',
    Age: '4m',
    Selector: 'app=x',
  });
  const node = created('Node', (d) => {
    d.metadata['labels'] = { 'node-role.kubernetes.io/master': '', 'kubernetes.io/role': 'node' };
  });
  at(node, 'spec')['unschedulable'] = true;
  assert.deepEqual(row('Node', node), {
    Name: 'x',
    Status: 'Ready,SchedulingDisabled',
    Roles: 'master,node',
    Age: '4m',
    Version: 'v1.36.0',
    'Internal-IP': '192.0.2.1',
    'External-IP': '<none>',
    'OS-Image': 'Debian',
    'Kernel-Version': '6.1',
    'Container-Runtime': 'r://1',
  });
  assert.deepEqual(
    row(
      'Endpoints',
      created('Endpoints', (d) => {
        d['subsets'] = [
          { addresses: ['1', '2', '3', '4'].map((each) => ({ ip: `10.0.0.${each}` })), ports: [{ port: 80 }] },
        ];
      }),
    ),
    { Name: 'x', Endpoints: '10.0.0.1:80,10.0.0.2:80,10.0.0.3:80 + 1 more...', Age: '4m' },
  );
  assert.deepEqual(
    row(
      'Event',
      created('Event', (d) => {
        Object.assign(d, {
          lastTimestamp: '2026-01-02T03:03:05Z',
          firstTimestamp: '2026-01-02T02:03:05Z',
          count: 4,
          source: { component: 'kubelet', host: 'n' },
        });
      }),
    ),
    {
      'Last Seen': '60s',
      Type: 'Normal',
      Reason: 'Started',
      Object: 'pod/x',
      Subobject: '',
      Source: 'kubelet, n',
      Message: 'm',
      'First Seen': '61m',
      Count: 4,
      Name: 'x',
    },
  );
  assert.deepEqual(row('ClusterRoleBinding', created('ClusterRoleBinding')), {
    Name: 'x',
    Role: 'ClusterRole/system:x',
    Age: '4m',
    Users: 'u',
    Groups: '',
    ServiceAccounts: 'ns/sa',
  });
  assert.deepEqual(row('Role', created('Role')), { Name: 'x', 'Created At': '2026-01-02T03:00:05Z' });
  assert.deepEqual(row('CertificateSigningRequest', created('CertificateSigningRequest')), {
    Name: 'x',
    Age: '4m',
    SignerName: 'example.com/signer',
    Requestor: 'alice',
    RequestedDuration: '<none>',
    Condition: 'Pending',
  });
  assert.deepEqual(row('EndpointSlice', created('EndpointSlice')), {
    Name: 'x',
    AddressType: 'IPv4',
    Ports: '80',
    Endpoints: '10.1.2.3',
    Age: '4m',
  });
  assert.deepEqual(row('ConfigMap', created('ConfigMap')), { Name: 'x', Data: 2, Age: '4m' });
  assert.deepEqual(row('DaemonSet', created('DaemonSet'))['Node Selector'], '<none>');
});

const waiting = (reason: string) => ({ waiting: { reason } });
const ended = (exitCode: number, reason?: string) => ({
  terminated: { exitCode, ...(reason === undefined ? {} : { reason }) },
});
const running = { running: {} };

/** Container statuses in pod order: init containers (`init` and the sidecar), then the main container. */
function pod(status: object, metadata: object = {}): Pod {
  const base = created('Pod') as unknown as Pod;
  return { ...base, metadata: { ...base.metadata, ...metadata }, status: { ...base.status, ...status } };
}

const init = (state: object, restartCount = 0, more = {}) => ({
  name: 'init',
  state,
  restartCount,
  ready: false,
  ...more,
});
const sidecar = (state: object, more = {}) => ({
  name: 'sidecar',
  state,
  restartCount: 0,
  ready: true,
  started: true,
  ...more,
});
const main = (state: object, more = {}) => ({ name: 'main', state, restartCount: 0, ready: true, ...more });

test('shows the status of a pod like kubectl', () => {
  const done = init(ended(0, 'Completed'));
  const initialized = { conditions: [{ type: 'Initialized', status: 'True' }] };
  const cases: [Pod, string, string][] = [
    [pod({}), '0/2', 'Pending'],
    [pod({ initContainerStatuses: [init(waiting('PodInitializing'))] }), '0/2', 'Init:0/2'],
    [pod({ initContainerStatuses: [init(waiting('CrashLoopBackOff'), 3)] }), '0/2', 'Init:CrashLoopBackOff'],
    [pod({ initContainerStatuses: [init(ended(1, 'Error'))] }), '0/2', 'Init:Error'],
    [pod({ initContainerStatuses: [init(ended(7))] }), '0/2', 'Init:ExitCode:7'],
    [
      pod({
        phase: 'Running',
        ...initialized,
        initContainerStatuses: [done, sidecar(running)],
        containerStatuses: [main(running)],
      }),
      '2/2',
      'Running',
    ],
    [
      pod({
        phase: 'Running',
        ...initialized,
        initContainerStatuses: [done, sidecar(running)],
        containerStatuses: [main(waiting('ImagePullBackOff'), { ready: false })],
      }),
      '1/2',
      'ImagePullBackOff',
    ],
    [
      pod({ phase: 'Running', containerStatuses: [main(ended(137, 'OOMKilled'), { ready: false })] }),
      '0/2',
      'OOMKilled',
    ],
    [
      pod({ phase: 'Succeeded', containerStatuses: [main(ended(0, 'Completed'), { ready: false })] }),
      '0/2',
      'Completed',
    ],
    [pod({ phase: 'Failed', reason: 'Evicted' }), '0/2', 'Evicted'],
    [
      pod({ phase: 'Running', containerStatuses: [main(running)] }, { deletionTimestamp: '2026-01-02T03:04:05Z' }),
      '1/2',
      'Terminating',
    ],
    [pod({ phase: 'Running', reason: 'NodeLost' }, { deletionTimestamp: '2026-01-02T03:04:05Z' }), '0/2', 'Unknown'],
    [
      pod({ conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }] }),
      '0/2',
      'SchedulingGated',
    ],
  ];
  for (const [each, ready, status] of cases) {
    const summary = summarizePod(each);
    assert.deepEqual([`${summary.ready}/${summary.total}`, summary.status], [ready, status]);
  }
});

test('counts restarts of main containers and sidecars, with the time of the last one', () => {
  const summary = summarizePod(
    pod({
      phase: 'Running',
      conditions: [{ type: 'Initialized', status: 'True' }],
      initContainerStatuses: [init(ended(0), 9), sidecar(running, { restartCount: 1 })],
      containerStatuses: [
        main(running, {
          restartCount: 2,
          lastState: { terminated: { exitCode: 1, finishedAt: '2026-01-02T03:02:05Z' } },
        }),
      ],
    }),
  );
  assert.equal(restartsText(summary, NOW), '3 (2m ago)');
  assert.equal(restartsText({ ...summary, restarts: 0 }, NOW), '0');
});
