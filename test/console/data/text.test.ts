import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { DEPLOYMENTS, NODES } from '../../../src/console/data/api/resources.ts';
import {
  ageText,
  bytesText,
  coresText,
  quantityNumber,
  resourceText,
  shareText,
  timeText,
} from '../../../src/console/data/format.ts';
import {
  describeCommand,
  execCommand,
  getCommand,
  logsCommand,
  shellQuote,
} from '../../../src/console/data/kubectl.ts';
import { sanitizeLines, sanitizeText } from '../../../src/console/data/plain-text.ts';
import { followLog, LogBuffer, levelOf } from '../../../src/console/data/pods/logs.ts';
import { LineSplitter, LineTooLong } from '../../../src/console/data/watch/lines.ts';
import { settle } from '../../client/clocks.ts';
import { scene } from './fake-api.ts';

suite('quantities and times', () => {
  test('formats quantities with the unit of their resource', () => {
    assert.equal(bytesText(1536 * 1024 * 1024), '1.5 GiB');
    assert.equal(bytesText(0), '0 B');
    assert.equal(coresText(0), '0');
    assert.equal(coresText(0.0001), '0.001 cores');
    assert.equal(coresText(0.25), '0.25 cores');
    for (const cores of [10, 12, 20, 100]) assert.equal(coresText(cores), `${cores} cores`);
    assert.equal(coresText(1), '1 core');
    assert.equal(coresText(2.5), '2.5 cores');
    assert.equal(resourceText('limits.memory', 1 << 20), '1 MiB');
    assert.equal(resourceText('pods', 110), '110');
    assert.equal(quantityNumber('500m'), 0.5);
    assert.equal(quantityNumber('nonsense'), undefined);
    assert.equal(shareText(1, 4), '25 %');
    assert.equal(shareText(1, 0), '–');
  });

  test('shows times without fractions of seconds, and other texts without changes', () => {
    assert.equal(timeText('2026-01-01T08:00:05.123Z'), '2026-01-01 08:00:05 UTC');
    assert.equal(timeText('2026-01-01T08:00:05Z'), '2026-01-01 08:00:05 UTC');
    assert.equal(timeText('yesterday'), 'yesterday');
    assert.equal(timeText(''), '');
  });

  test('a time in the future, from a wrong clock, has the age 0', () => {
    const nowMs = Date.parse('2026-01-01T00:00:00Z');
    assert.equal(ageText('2025-12-31T23:55:00Z', nowMs), '5m');
    assert.equal(ageText('2026-01-01T09:00:00Z', nowMs), '0s');
    assert.equal(ageText(undefined, nowMs), '–');
  });
});

suite('kubectl commands', () => {
  test('kubectl commands have the scope and selectors of the view', () => {
    assert.equal(getCommand(DEPLOYMENTS), 'kubectl get deployments.apps -A');
    assert.equal(getCommand(NODES, { labelSelector: 'a in (b)' }), "kubectl get nodes -l 'a in (b)'");
    assert.equal(describeCommand(DEPLOYMENTS, 'web', 'n'), 'kubectl describe deployments.apps web -n n');
    assert.equal(logsCommand('n', 'p', 'c', true), 'kubectl logs -n n p -c c -f');
    assert.equal(execCommand('n', 'p', 'c', ['sh']), 'kubectl exec -it -n n p -c c -- sh');
  });

  test('kubectl commands quote names that a shell would interpret', () => {
    assert.equal(shellQuote("a'; rm -rf ~ #"), "'a'\\''; rm -rf ~ #'");
    assert.equal(shellQuote(''), "''");
    assert.equal(shellQuote('$(id)'), "'$(id)'");
  });
});

suite('text of logs', () => {
  test('complete and unterminated escape sequences are removed from the text of logs', () => {
    assert.equal(sanitizeText('\u001b[31mred\u001b[0m \u001b]0;title\u0007x \u001b]8;;http://a\u001b\\y'), 'red x y');
    assert.equal(sanitizeText('a\u001b[2J\u001b[H\u009b1mb\u001bc'), 'ab');
    assert.equal(sanitizeText('safe\u001bP1$r hidden'), 'safe');
  });

  test('control and direction characters are escaped in the text of logs', () => {
    assert.equal(sanitizeText('a\u0008b\rc'), 'a\\x08b\\x0dc');
    assert.equal(sanitizeLines('plain\n\u001b[2Jtext\u202ereversed\r\n'), 'plain\ntext\\u{202e}reversed\\x0d\n');
    assert.equal(sanitizeText('user\u202enimda\u2066x\u200b'), 'user\\u{202e}nimda\\u{2066}x\\u{200b}');
    assert.equal(sanitizeText('tab\tand ümläut 漢字 🙂'), 'tab\tand ümläut 漢字 🙂');
  });

  test('each line of a log gets a severity level', () => {
    assert.equal(levelOf('2026 ERROR: broken'), 'error');
    assert.equal(levelOf('{"level":"warn","msg":"x"}'), 'warning');
    assert.equal(levelOf('W0102 03:04:05 file.go:1] slow'), 'warning');
    assert.equal(levelOf('GET / 200'), 'none');
  });
});

suite('lines of a stream', () => {
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

  test('lines of a stream are joined from chunks, also if a chunk ends within a character', () => {
    const splitter = new LineSplitter(100, 'cut');
    const [first, second] = [bytes('aü').subarray(0, 2), bytes('aü').subarray(2)];
    assert.deepEqual(splitter.push(first), []);
    assert.deepEqual(splitter.push(second), []);
    assert.deepEqual(splitter.push(bytes('b\r\nc')), ['aüb']);
    assert.equal(splitter.end(), 'c');
  });

  test('lines of a stream are cut after their limit, with bounded memory', () => {
    const splitter = new LineSplitter(1_000, 'cut');
    const chunk = bytes('x'.repeat(1 << 20));
    for (let index = 0; index < 10; index++) assert.deepEqual(splitter.push(chunk), []);
    const [line = ''] = splitter.push(bytes('\n'));
    assert.ok(line.startsWith('x'.repeat(1_000)));
    assert.match(line, /\[10484760 characters cut\]$/);
  });

  test('reading lines of a stream fails at the length limit if no text may be dropped', () => {
    assert.throws(() => new LineSplitter(3, 'fail').push(bytes('abcd')), LineTooLong);
  });
});

suite('a followed log', () => {
  test('a followed log keeps the newest lines and counts dropped lines', () => {
    const buffer = new LogBuffer();
    buffer.push(Array.from({ length: 25_000 }, (_, index) => `line ${index}`));
    assert.equal(buffer.lines.length, 20_000);
    assert.equal(buffer.dropped, 5_000);
    assert.equal(buffer.lines.at(-1)?.text, 'line 24999');
    assert.equal(buffer.lines.at(-1)?.number, 25_000);
    buffer.push(Array.from({ length: 200 }, () => 'x'.repeat(100_000)));
    assert.ok(buffer.lines.length < 100, `${buffer.lines.length} long lines`);
  });

  test('a followed log continues after a broken stream without repeated lines', async () => {
    const { server, clock, random } = scene();
    const stamp = (second: number, text: string) => `2026-01-01T00:00:0${second}.000000000Z ${text}\n`;
    let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
    server.answer = () =>
      new Response(
        new ReadableStream<Uint8Array>({
          start: (each) => {
            controller = each;
          },
        }),
      );
    const lines: string[] = [];
    const states: string[] = [];
    const stop = new AbortController();
    const done = followLog(
      { namespace: 'n', pod: 'p', container: 'c' },
      {
        api: server.api,
        clock,
        random,
        onLines: (each) => lines.push(...each),
        onState: (state) => states.push(state),
      },
      stop.signal,
    );
    const write = (text: string): void => controller?.enqueue(new TextEncoder().encode(text));
    await settle();
    write(stamp(1, 'a') + stamp(2, 'b') + stamp(2, 'd'));
    await settle();
    controller?.error(new TypeError('network error'));
    await settle();
    await clock.advance(1_000);
    assert.equal(server.requests[1]?.url.searchParams.get('sinceTime'), '2026-01-01T00:00:02.000000000Z');
    write(stamp(2, 'b') + stamp(3, 'c'));
    await settle();
    controller?.close();
    await done;
    assert.deepEqual(
      lines.map((line) => line.slice(-1)),
      ['a', 'b', 'd', 'c'],
    );
    assert.deepEqual(states, ['open', 'retrying', 'open', 'ended']);
  });
});
