/**
 * Every command of etcdctl 3.4 against this store and Debian's etcd. Exit code and output must be equal except for IDs.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type Peer, startPeerEtcd } from '../conformance/etcd/peer.ts';
import { freePorts } from '../support/ports.ts';
import { DEBIAN_ETCD, isInstalled, remove, startHere, temporaryDirectory } from './harness.ts';

const ETCDCTL = '/usr/bin/etcdctl';
const skip = !(await isInstalled(ETCDCTL)) || !(await isInstalled(DEBIAN_ETCD));

interface Outcome {
  readonly code: number | null;
  readonly output: string;
}

/** Runs etcdctl. `enough` ends it once its output matches. Its own log lines are removed. */
function etcdctl(endpoint: string, args: readonly string[], input = '', enough?: RegExp): Promise<Outcome> {
  const child = spawn(ETCDCTL, ['--endpoints', endpoint.replace('http://', ''), ...args], {
    env: { ...process.env, ETCDCTL_API: '3' },
  });
  let output = '';
  const collect = (chunk: Buffer): void => {
    output += chunk;
    if (enough?.test(output)) child.kill('SIGTERM');
  };
  child.stdout.on('data', collect);
  child.stderr.on('data', collect);
  // A command without input may have exited before the write.
  child.stdin.on('error', () => {});
  // An interactive watch ends with its input.
  if (enough === undefined) child.stdin.end(input);
  else child.stdin.write(input);
  const timer = setTimeout(() => child.kill('SIGKILL'), 20_000);
  return new Promise((resolve) => {
    child.on('close', (code) => {
      clearTimeout(timer);
      const lines = output.split('\n').filter((line) => !line.startsWith('{"level"'));
      resolve({ code, output: lines.join('\n') });
    });
  });
}

const normalised = ({ code, output }: Outcome): Outcome => ({
  code,
  output: output
    // Table widths depend on their content, and IDs have no leading zeros.
    .replaceAll(/-{3,}/g, '---')
    .replaceAll(/\b(?:https?:\/\/)?127\.0\.0\.1:\d+/g, 'ENDPOINT')
    .replaceAll(/\b[0-9a-f]{14,16}\b/g, 'ID')
    .replaceAll(/"(cluster_id|member_id|ID|leader|lease|id|ttl|raft_term|raftIndex|raftTerm)":-?\d+/g, '"$1":N')
    .replaceAll(/"(ClusterID|MemberID)" : \d+/g, '"$1" : N')
    .replaceAll(/took = .*/g, 'took')
    .replaceAll(/remaining\(\d+s\)/g, 'remaining(N)')
    .replaceAll(/ +/g, ' '),
});

const TXN = 'value("t") = "1"\n\nput t "2"\nget t\ndel u\n\nput t "never"\n\n';

/** Commands in order. Later commands use the state that earlier ones leave. */
const COMMANDS: ReadonlyArray<readonly [args: readonly string[], input?: string, enough?: RegExp]> = [
  [['put', 'foo', 'bar']],
  [['get', 'foo']],
  [['get', 'foo', '-w', 'json']],
  [['get', 'foo', '-w', 'fields']],
  [['put', 'foo', 'bar2', '--prev-kv']],
  [['put', 'foo2'], 'from standard input'],
  [['put', 'none', '--ignore-value']],
  [['get', 'f', '--prefix', '--keys-only']],
  [['get', 'f', 'g', '--sort-by=MODIFY', '--order=DESCEND', '--limit=1']],
  [['get', 'foo', '--rev=2', '--print-value-only']],
  [['get', 'foo', '--rev=99']],
  [['get', 'foo2', '--from-key', '--consistency=s']],
  [['put', 't', '1']],
  [['txn', '-i'], TXN],
  [['txn'], TXN],
  [['del', 'foo2', '--prev-kv']],
  [['del', 'nothing']],
  [['watch', 'foo', '--rev=2', '--prev-kv'], '', /bar2\n$/],
  [['watch', '-i'], 'watch foo --rev=2\n', /bar2\n$/],
  [['lease', 'grant', '100']],
  [['lease', 'list']],
  [['lease', 'timetolive', '1234']],
  [['lease', 'revoke', '1234']],
  [['lease', 'keep-alive', '--once', '1234']],
  [['put', 'leased', 'v', '--lease=1234']],
  [['lock', 'mutex', 'echo', 'held']],
  [['elect', 'office', 'me'], '', /me\n$/],
  [['endpoint', 'health']],
  [['endpoint', 'health', '--cluster']],
  [['member', 'list', '-w', 'table']],
  [['member', 'remove', '1234']],
  [['member', 'promote', '1234']],
  [['member', 'update', '1234', '--peer-urls=http://127.0.0.1:1']],
  [['move-leader', '1234']],
  [['alarm', 'list']],
  [['alarm', 'disarm']],
  [['defrag']],
  [['compaction', '4']],
  [['compaction', '4']],
  [['compaction', '999']],
  [['compaction', '--physical', '5']],
  [['get', 'foo', '--rev=2']],
  [['user', 'list']],
  [['role', 'list']],
  [['auth', 'enable']],
  [['version']],
];

describe('etcdctl', { skip: skip ? 'etcd and etcdctl are not installed' : false }, () => {
  let directory = '';
  let ours = '';
  let peer: Peer | undefined;
  const stops: Array<() => Promise<void>> = [];
  before(async () => {
    directory = await temporaryDirectory();
    stops.push(() => remove(directory));
    peer = await startPeerEtcd(directory);
    stops.push(peer.stop);
    // The advertised addresses must be reachable for commands that contact all members.
    const [port = 0] = await freePorts(1);
    const data = await temporaryDirectory();
    stops.push(() => remove(data));
    const urls = [`http://127.0.0.1:${port}`];
    const running = await startHere(data, undefined, { clientUrls: urls, peerUrls: urls }, port);
    ours = running.endpoint;
    stops.push(() => running.server.stop());
  });
  after(async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
  });

  it('etcdctl commands return the same results with this store as with etcd', async () => {
    for (const [args, input, enough] of COMMANDS) {
      const run = (endpoint: string) => etcdctl(endpoint, args, input, enough).then(normalised);
      assert.deepEqual(await run(ours), await run(peer?.endpoint ?? ''), args.join(' '));
    }
  });

  it('etcdctl shows status, hashes and snapshots in the same format as with etcd', async () => {
    const fields = async (endpoint: string, args: readonly string[]): Promise<string[]> => {
      const { code, output } = await etcdctl(endpoint, args);
      assert.equal(code, 0, output);
      const [answer] = JSON.parse(output);
      return [...Object.keys(answer), ...Object.keys(answer.Status ?? answer.HashKV ?? {})].sort();
    };
    for (const args of [
      ['endpoint', 'status', '-w', 'json'],
      ['endpoint', 'hashkv', '-w', 'json'],
    ]) {
      assert.deepEqual(await fields(ours, args), await fields(peer?.endpoint ?? '', args), args.join(' '));
    }
    const file = join(directory, 'snapshot.db');
    assert.deepEqual(normalised(await etcdctl(ours, ['snapshot', 'save', file])), {
      code: 0,
      output: `Snapshot saved at ${file}\n`,
    });
    // The file is an SQLite database, which etcdctl cannot read.
    assert.equal((await etcdctl(ours, ['snapshot', 'status', file])).code, 1);
  });
});
