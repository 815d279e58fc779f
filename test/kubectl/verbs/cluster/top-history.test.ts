import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../../../src/api/meta/status.ts';
import type { System } from '../../../../src/kubectl/port.ts';
import { runVerb } from '../../../../src/kubectl/run.ts';
import { VERBS } from '../../../../src/kubectl/verbs.ts';

type Handler = (path: string) => unknown;

/** Runs the client against a server that answers each request with the given function. */
async function run(
  args: readonly string[],
  handler: Handler,
  terminal?: { readonly columns: number; readonly locale: string },
): Promise<{ code: number; stdout: string; stderr: string; paths: string[] }> {
  let [stdout, stderr] = ['', ''];
  const paths: string[] = [];
  const system = {
    now: () => 0,
    readCache: async () => undefined,
    writeCache: async () => {},
    environment: (name: string) => (name === 'LANG' ? terminal?.locale : undefined),
    connect: async () => ({
      server: 'https://test',
      namespace: 'shop',
      client: {
        request: async (_method: string, path: string) => {
          paths.push(path);
          return handler(path);
        },
      },
      close: () => {},
    }),
  } as unknown as System;
  const code = await runVerb({
    verbs: VERBS,
    program: 'hyperedge',
    argv: args,
    signal: new AbortController().signal,
    system,
    io: {
      out: (text) => {
        stdout += String(text);
      },
      err: (text) => {
        stderr += String(text);
      },
      drained: () => undefined,
      readAll: async () => '',
      stdin: (async function* () {})(),
      isInputTerminal: false,
      isOutputTerminal: terminal !== undefined,
      size: () => (terminal === undefined ? undefined : { columns: terminal.columns, rows: 40 }),
      onResize: () => () => {},
      raw: () => () => {},
    },
  });
  return { code, stdout, stderr, paths };
}

const metric = (unit: string, average: unknown) => ({ unit, average, max: average });
const cluster =
  (history: (path: string) => unknown, nodes = ['edge-1', 'edge-2']): Handler =>
  (path) => {
    if (path === '/api' || path === '/apis')
      return {
        kind: 'APIGroupDiscoveryList',
        items:
          path === '/apis'
            ? []
            : [
                {
                  metadata: { name: '' },
                  versions: [
                    {
                      version: 'v1',
                      resources: [
                        {
                          resource: 'nodes',
                          responseKind: { kind: 'Node' },
                          scope: 'Cluster',
                          singularResource: 'node',
                          verbs: ['list'],
                        },
                      ],
                    },
                  ],
                },
              ],
      };
    if (path.includes('/metrics/history?')) return history(path);
    if (path.startsWith('/api/v1/nodes')) return { items: nodes.map((name) => ({ metadata: { name } })) };
    throw new Error(path);
  };
const nodeAnswer = {
  kind: 'UsageHistory',
  series: [{ metrics: { cpu: metric('cores', [0.5, null, 1.5]), memory: metric('bytes', [null, null, null]) } }],
};

describe('top --history', () => {
  it('draws plots for all nodes in the width of the terminal', async () => {
    const { code, stdout, paths } = await run(
      ['top', '--history', '24h'],
      cluster(() => nodeAnswer),
      { columns: 60, locale: 'C.UTF-8' },
    );
    assert.equal(code, 0);
    assert.match(stdout, /^node edge-1\n {2}cpu: average 1, highest 1.5\n/);
    assert.match(stdout, /\nnode edge-2\n/);
    assert.match(stdout, /█/);
    assert.doesNotMatch(stdout, /memory/);
    for (const line of stdout.split('\n')) assert.ok([...line].length <= 60, line);
    const history = paths.filter((path) => path.includes('history'));
    assert.equal(history.length, 2);
    assert.match(
      history[0] ?? '',
      /^\/api\/v1\/nodes\/edge-1\/proxy\/metrics\/history\?since=24h&metric=cpu.*&points=48/,
    );
  });

  it('accepts the flag --history after the kind, and prints a table if the output is no terminal', async () => {
    for (const args of [
      ['top', 'node', 'edge-1', '--history', '7d'],
      ['top', '--history=7d', 'node', 'edge-1'],
    ]) {
      const { code, stdout } = await run(
        args,
        cluster(() => nodeAnswer),
      );
      assert.equal(code, 0);
      assert.match(
        stdout,
        /^OBJECT +NODE +METRIC +AVERAGE +HIGHEST +LATEST\nnode\/edge-1 +edge-1 +cpu +1 +1.5 +1.5\n$/,
      );
    }
  });

  it('searches all nodes for the history of a pod, which may have been deleted', async () => {
    const answer = (path: string) => ({
      kind: 'UsageHistory',
      series: path.includes('edge-2')
        ? [{ namespace: 'shop', pod: 'web', metrics: { cpu: metric('cores', [0.1, 0.2]) } }]
        : [],
    });
    const found = await run(['top', 'pod', 'web', '--history', '1h'], cluster(answer));
    assert.equal(found.code, 0);
    assert.match(found.stdout, /pod\/shop\/web +edge-2 +cpu/);
    assert.ok(found.paths.some((path) => path.includes('scope=pod&namespace=shop&pod=web')));
    const absent = await run(
      ['top', 'pod', 'other', '--history', '1h'],
      cluster(() => ({ series: [] })),
    );
    assert.equal(absent.code, 1);
    assert.match(absent.stderr, /no history of pod other in the last 1h/);
  });

  it('prints JSON, and reports nodes without a history', async () => {
    const handler = cluster((path) => {
      if (path.includes('edge-2')) throw new ApiError('NotFound', 'not here');
      return nodeAnswer;
    });
    const { code, stdout, stderr } = await run(['top', '--history', '24h', '-o', 'json'], handler);
    assert.equal(code, 0);
    assert.deepEqual(JSON.parse(stdout).items, [nodeAnswer]);
    assert.match(stderr, /node edge-2: the node does not exist, or keeps no history/);
  });

  it('reports the error of one kubelet, and continues with other nodes', async () => {
    const rejected = await run(
      ['top', '--history', '10x'],
      cluster(() => {
        throw ApiError.fromStatus({ message: 'since: "10x" is not a duration' }, 400);
      }),
    );
    assert.equal(rejected.code, 1);
    assert.equal(rejected.stderr.match(/since: "10x" is not a duration/g)?.length, 1);
    const down = await run(
      ['top', '--history', '1h'],
      cluster((path) => {
        if (path.includes('edge-1')) throw new ApiError('ServiceUnavailable', 'connection refused');
        return nodeAnswer;
      }),
    );
    assert.equal(down.code, 0);
    assert.match(down.stderr, /^node edge-1: connection refused\n$/);
    assert.match(down.stdout, /node\/edge-2/);
  });

  it('rejects unsupported formats, unsupported kinds and missing flags', async () => {
    for (const [args, message] of [
      [['top', '--history', '24h', '-o', 'yaml'], /--output accepts only json/],
      [['top', '--history', '24h', 'services'], /"services": --history accepts nodes and pods/],
      [['top', '--metric', 'cpu'], /give --history/],
      [['top', 'services'], /unknown command "services"/],
    ] as const) {
      const { code, stderr } = await run(
        args,
        cluster(() => nodeAnswer),
      );
      assert.equal(code, 1);
      assert.match(stderr, message);
    }
  });

  it('prints no control characters of a hostile server, and ignores responses of another form', async () => {
    const hostile = {
      series: [
        {
          namespace: 'a\n\u001b[2J',
          pod: '\u202ex',
          metrics: { 'cpu\u001b[31m': metric('cores\u0007', [1, '2', {}, [], Number.MAX_VALUE]), __proto__: 5 },
        },
        ...[null, 7, 'x', { metrics: [] }, { metrics: { cpu: { average: 'long', max: 3 } } }],
      ],
    };
    for (const terminal of [undefined, { columns: 80, locale: 'C' }]) {
      const { code, stdout } = await run(
        ['top', 'pods', '--history', '1h'],
        cluster(() => hostile, ['edge-1']),
        terminal,
      );
      assert.equal(code, 0);
      assert.match(stdout, /\^\[\[31m/);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters must not be printed
      assert.doesNotMatch(stdout, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/);
    }
  });
});
