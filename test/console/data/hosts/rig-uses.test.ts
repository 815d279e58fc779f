import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { AnyObject } from '../../../../src/console/data/api/resources.ts';
import {
  downloadRecording,
  readRecordings,
  recordingText,
  timelineOf,
  USE_SPANS,
  usesOf,
} from '../../../../src/console/data/hosts/rig-uses.ts';
import { FakeApi, json } from '../fake-api.ts';

const NOW = Date.parse('2026-01-02T00:00:00Z');
const at = (hour: number): string => new Date(NOW - (24 - hour) * 3_600_000).toISOString();
const rig = (...history: object[]) => ({ metadata: { name: 'bench' }, status: { history } }) as unknown as AnyObject;
const use = (name: string, requester: string, from: number, to?: number) => ({
  namespace: 'lab',
  name,
  uid: name,
  requester,
  grantedAt: at(from),
  ...(to === undefined ? {} : { endedAt: at(to), reason: 'Released' }),
});

suite('uses of a rig', () => {
  test('uses of a rig become bars on a timeline with a colour for each requester', () => {
    const uses = usesOf(
      rig(use('c', 'ann', 18), use('b', 'bob', 6, 12), use('a', 'ann', -6, 6), use('z', 'zoe', -9, -8)),
      NOW,
    );
    assert.deepEqual(
      uses.map(({ claim, duration, state }) => [claim, duration, state]),
      [
        ['lab/c', '6h', 'in use'],
        ['lab/b', '6h', 'Released'],
        ['lab/a', '12h', 'Released'],
        ['lab/z', '60m', 'Released'],
      ],
    );
    const { bars, requesters } = timelineOf(uses, USE_SPANS['24h'], NOW);
    assert.deepEqual(
      bars.map(({ from, width, colour }) => [from, width, colour]),
      [
        [0, 0.25, 1],
        [0.25, 0.25, 2],
        [0.75, 0.25, 1],
      ],
    );
    assert.deepEqual(
      requesters.map(({ name }) => name),
      ['ann', 'bob'],
    );
    assert.equal(timelineOf(uses, USE_SPANS['7d'], NOW).bars.length, 4);
  });

  test('bars of the uses of a rig stay visible inside the timeline, also if clocks differ', () => {
    const uses = usesOf(
      rig(use('future', 'a', 23.999), use('short', 'a', 3, 3), use('late', 'a', 30), { grantedAt: 'x' }),
      NOW,
    );
    for (const { from, width } of timelineOf(uses, USE_SPANS['24h'], NOW).bars)
      assert.ok(from >= 0 && width >= 0.004 && from + width <= 1 + 1e-9, `${from} ${width}`);
    assert.equal(timelineOf(uses, USE_SPANS['24h'], NOW).bars.length, 2);
    const [hostile] = usesOf(rig({ ...use('x', '\u202eann\u001b[2J', 1) }), NOW);
    assert.equal(hostile?.requester, '\\u{202e}ann');
    assert.deepEqual(usesOf({ status: { history: 'none' } } as unknown as AnyObject, NOW), []);
  });
});

suite('recordings of a rig', () => {
  test('recordings of a rig are listed and read from the subresource, with encoded names', async () => {
    const server = new FakeApi();
    const file = { name: 'f.log', start: at(1), bytes: 3, isOpen: true };
    server.answer = () => json({ items: [{ node: 'n1', ...file }, file], failures: [{ node: 'n2', message: 'off' }] });
    const signal = new AbortController().signal;
    const { items, failures } = await readRecordings(server.api, 'bench', signal);
    assert.deepEqual(
      [items.map(({ name, node }) => [name, node]), failures],
      [
        [
          ['f.log', 'n1'],
          ['f.log', undefined],
        ],
        [{ node: 'n2', message: 'off' }],
      ],
    );
    server.answer = () => new Response('up\r\n');
    assert.equal((await downloadRecording(server.api, 'bench', { name: '../a&b', node: 'n1' })).size, 4);
    await downloadRecording(server.api, 'bench', { name: 'f.log' });
    assert.deepEqual(
      server.requests.map(({ url }) => url.pathname + url.search),
      [
        '/apis/rig.hyperedge.dev/v1alpha1/rigs/bench/recordings',
        '/apis/rig.hyperedge.dev/v1alpha1/rigs/bench/recordings?file=..%2Fa%26b&node=n1',
        '/apis/rig.hyperedge.dev/v1alpha1/rigs/bench/recordings?file=f.log',
      ],
    );
    server.answer = () => json({ items: [] });
    assert.deepEqual(await readRecordings(server.api, 'bench', signal), { items: [], failures: [] });
    server.answer = () => json({ items: [{ name: 1 }] });
    await assert.rejects(readRecordings(server.api, 'bench', signal));
    server.answer = () => new Response('x', { headers: { 'content-length': String(1 << 30) } });
    await assert.rejects(downloadRecording(server.api, 'bench', { name: 'f.log' }), /too large/);
  });

  test('recordings are shown without control sequences; long recordings are cut at a line near their end', async () => {
    const shown = await recordingText(new Blob(['\u001b[31mred\u001b[0m\r\nbell\u0007\n\u202eevil']));
    assert.deepEqual(shown, { text: 'red\nbell\\x07\n\\u{202e}evil', isCut: false });
    const long = await recordingText(new Blob(['line of text\n'.repeat(50_000)]));
    assert.equal(long.isCut, true);
    assert.ok(long.text.length <= 256 * 1024);
    assert.match(long.text, /^line of text\nline/);
  });
});
