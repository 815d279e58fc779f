import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { readHistory, summaryOf, sumOf, sumOfNodes, valueText } from '../../../../src/console/data/hosts/history.ts';
import { bareMetalHostOf, hardwareFacts, hostConfigOf } from '../../../../src/console/data/hosts/host.ts';
import { FakeApi, json } from '../fake-api.ts';

const signal = new AbortController().signal;
const answer = (metrics: object): object => ({
  from: '2026-01-01T00:00:00Z',
  stepSeconds: 30,
  points: 3,
  series: [{ metrics }],
});

const of = (times: number[], average: (number | null)[]) => ({
  times,
  metrics: new Map([['cpu', { unit: 'cores', average, max: average }]]),
});

suite('usage history', () => {
  test('usage history is read through the node proxy, with the times of its steps', async () => {
    const fake = new FakeApi();
    fake.answer = () => json(answer({ cpu: { unit: 'cores', average: [0.5, null, 1.5], max: [1, null, 3] } }));
    const pod = { namespace: 'shop', name: 'web-0' };
    const history = await readHistory(fake.api, 'edge/1', { metrics: ['cpu'], since: '24h', pod }, signal);
    const url = fake.requests[0]?.url;
    assert.equal(url?.pathname, '/api/v1/nodes/edge%2F1/proxy/metrics/history');
    const parameters = Object.fromEntries(url?.searchParams ?? []);
    assert.deepEqual(
      { ...parameters, points: '' },
      { scope: 'pod', namespace: 'shop', pod: 'web-0', metric: 'cpu', since: '24h', points: '' },
    );
    const start = Date.parse('2026-01-01T00:00:00Z') / 1000;
    assert.deepEqual(history?.times, [start, start + 30, start + 60]);
    const cpu = history?.metrics.get('cpu');
    assert.ok(cpu);
    assert.equal(summaryOf('used', cpu), 'used: average 1 core, highest 3 cores, latest 1.5 cores');
  });

  test('usage history has gaps where there is no sample, and rejects a malformed response with its field', async () => {
    const fake = new FakeApi();
    fake.answer = () => json({ ...answer({}), series: [] });
    assert.equal(await readHistory(fake.api, 'n', { metrics: ['cpu'], since: '1h' }, signal), undefined);
    fake.answer = () => json(answer({ cpu: { unit: 'cores', average: ['<b>'], max: [] } }));
    await assert.rejects(
      readHistory(fake.api, 'n', { metrics: ['cpu'], since: '1h' }, signal),
      /history of node n: series\[0\]\.metrics\.cpu\.average\[0\]/,
    );
    assert.equal(summaryOf('used', { unit: 'cores', average: [null, null], max: [null, null] }), undefined);
  });

  test('usage history of several nodes is the sum of the known values at each time', () => {
    const sum = sumOf([of([0, 30, 60], [1, null, 2]), of([30, 60, 90], [null, 3, 4])]);
    assert.deepEqual(sum?.times, [0, 30, 60, 90]);
    assert.deepEqual(sum?.metrics.get('cpu')?.average, [1, null, 5, 4]);
    assert.equal(sumOf([]), undefined);
  });

  test('usage history of several nodes names the nodes whose history is not in the sum', () => {
    const history = of([0, 30], [1, 2]);
    const value = { status: 'fulfilled', value: history } as const;
    const failed = { status: 'rejected', reason: new Error('timed out') } as const;
    assert.equal(sumOfNodes(['a', 'b'], [value, value])?.note, undefined);
    const partial = sumOfNodes(['a', 'b', 'c'], [failed, value, failed]);
    assert.match(partial?.note ?? '', /^The usage of a, c is not included/);
    assert.deepEqual(partial?.metrics.get('cpu')?.average, [1, 2]);
    assert.throws(() => sumOfNodes(['a', 'b'], [failed, { status: 'fulfilled', value: undefined }]), /timed out/);
  });

  test('values of the usage history have the unit of their metric', () => {
    assert.equal(valueText(2048, 'bytes/s'), '2 KiB/s');
    assert.equal(valueText(0.0512, 'ratio'), '5.1 %');
    assert.equal(valueText(51.6, 'celsius'), '52 °C');
  });
});

suite('host details of a node', () => {
  const node = (annotations: Record<string, string>) => ({
    metadata: {
      name: 'n',
      annotations: Object.fromEntries(
        Object.entries(annotations).map(([name, value]) => [`machineconfiguration.openshift.io/${name}`, value]),
      ),
    },
  });

  test('the details of a host contain the state and the drift of its configuration', () => {
    assert.deepEqual(hostConfigOf({}).state, 'not managed');
    const done = { state: 'Done', currentConfig: 'a', desiredConfig: 'a' };
    assert.deepEqual([hostConfigOf(node(done)).level, hostConfigOf(node(done)).drift], ['good', 'none']);
    const waiting = hostConfigOf(node({ ...done, desiredConfig: 'b' }));
    assert.deepEqual([waiting.level, waiting.drift], ['warn', 'to b']);
    const reason = 'unexpected on-disk state validating against a: /etc/x: content differs';
    const drifted = hostConfigOf(node({ ...done, state: 'Degraded', reason }));
    assert.deepEqual([drifted.level, drifted.drift, drifted.reason], ['bad', 'files differ', reason]);
  });

  test('the details of a host contain the hardware facts of its BareMetalHost', () => {
    const spec = { providerID: 'baremetalhost:///openshift-machine-api/edge-1/uid' };
    assert.deepEqual(bareMetalHostOf({ spec }), { namespace: 'openshift-machine-api', name: 'edge-1' });
    assert.equal(bareMetalHostOf({ spec: { providerID: 'aws:///x/y/z' } }), undefined);
    const hardware = {
      systemVendor: { manufacturer: 'Raspberry', productName: 'Pi 5' },
      cpu: { model: 'A76', clockMegahertz: 2400 },
      storage: [{ name: 'nvme0n1', sizeBytes: 2 ** 39 }],
    };
    assert.deepEqual(hardwareFacts({ status: { hardware } }), [
      ['System', 'Raspberry Pi 5'],
      ['Processor', 'A76 2400 MHz'],
      ['Disk nvme0n1', '512 GiB'],
    ]);
    assert.deepEqual(hardwareFacts(undefined), []);
  });
});
