import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { RequireLeader } from '../../../src/store/services/require-leader.ts';
import { RpcCode, type StreamCall, type UnaryCall } from '../../../src/wire/grpc/port.ts';
import { type ClusterMember, runningCluster } from '../cluster-harness.ts';
import { clock } from '../harness.ts';

describe('member without a leader', () => {
  const answers: string[] = [];
  let leader = true;
  const required = new RequireLeader({ clock, hasLeader: () => leader, electionMs: () => 20 });
  const call = (metadata: Readonly<Record<string, string>>): UnaryCall & StreamCall => ({
    metadata: (name) => metadata[name],
    peerCommonName: () => '',
    whenCancelled: () => {},
    reply: () => answers.push('reply'),
    fail: (code, message) => answers.push(`${code} ${message}`),
    send: () => true,
    pause: () => {},
    resume: () => {},
    end: (code, message) => answers.push(`${code} ${message}`),
  });
  const unary = required.unary({ '/a': (_message, { reply }) => reply(new Uint8Array()) })['/a'];
  const inner = { message: () => {}, ended: () => {}, drained: () => {}, closed: () => answers.push('closed') };
  const stream = required.streams({ '/b': () => inner })['/b'];
  const refusal = `${RpcCode.unavailable} etcdserver: no leader`;
  const used = (): string[] => answers.splice(0);

  it('without a leader, rejects only calls and streams with the metadata hasleader', () => {
    leader = false;
    unary?.(new Uint8Array(), call({ hasleader: 'true' }));
    unary?.(new Uint8Array(), call({}));
    stream?.(call({ hasleader: 'true' }));
    assert.deepEqual(used(), [refusal, 'reply', refusal]);
    leader = true;
    unary?.(new Uint8Array(), call({ hasleader: 'true' }));
    assert.deepEqual(used(), ['reply']);
  });

  it('ends streams that require a leader after three election timeouts without a leader', async () => {
    stream?.(call({}));
    stream?.(call({ hasleader: 'true' }))?.closed();
    assert.deepEqual(used(), ['closed']);
    stream?.(call({ hasleader: 'true' }));
    leader = false;
    required.leaderChanged();
    leader = true;
    required.leaderChanged();
    await new Promise((resolve) => setTimeout(resolve, 120));
    assert.deepEqual(used(), []);
    leader = false;
    required.leaderChanged();
    await new Promise((resolve) => setTimeout(resolve, 120));
    assert.deepEqual(used(), [refusal]);
    required.stop();
  });
});

describe('etcdctl with a required leader', () => {
  let running: Awaited<ReturnType<typeof runningCluster>>;
  before(async () => {
    running = await runningCluster(3);
  });
  after(() => running.remove());

  it('etcdctl watch ends with the error "no leader" when its member is partitioned', async () => {
    const [first, second, third] = running.members as [ClusterMember, ClusterMember, ClusterMember];
    const watching = new Promise<string>((resolve) => {
      const env = { ...process.env, ETCDCTL_API: '3' };
      const child = execFile('etcdctl', [`--endpoints=${first.endpoint}`, 'watch', 'a'], { env, timeout: 20_000 });
      let output = '';
      child.stderr?.on('data', (data: string) => {
        output += data;
        if (output.includes('no leader')) child.kill();
      });
      child.once('close', () => resolve(output));
    });
    // Waits until the watch exists.
    for (let count = 0; count < 100; count += 1) {
      const metrics = await fetch(`${first.endpoint}/metrics`);
      if (/etcd_debugging_mvcc_watcher_total 1\b/.test(await metrics.text())) break;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await Promise.all([second.stop(), third.stop()]);
    assert.match(await watching, /etcdserver: no leader/);
  });
});
