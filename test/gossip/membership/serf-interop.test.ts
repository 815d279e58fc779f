/**
 * A stock serf agent as peer, which verifies compatibility with memberlist's wire format. Everything runs on loopback.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { promisify } from 'node:util';
import type { PeerAddress } from '../../../src/gossip/core/port.ts';
import type { RingEvent } from '../../../src/gossip/membership/deps.ts';
import { freePort } from '../../support/ports.ts';
import { eventually, ringMember, stateOf } from './ring.ts';

const run = promisify(execFile);
const missing = await run('serf', ['version']).then(
  () => false,
  () => 'there is no serf on this host (Debian package serf)',
);

class Agent {
  readonly #child: ChildProcess;
  readonly #rpc: string;
  output = '';

  private constructor(child: ChildProcess, rpc: string) {
    this.#child = child;
    this.#rpc = rpc;
    const keep = (chunk: Buffer): void => {
      this.output = (this.output + chunk.toString()).slice(-100_000);
    };
    child.stdout?.on('data', keep);
    child.stderr?.on('data', keep);
  }

  static async start(name: string, key: Uint8Array | undefined, join: PeerAddress): Promise<Agent> {
    const rpc = `127.0.0.1:${await freePort()}`;
    const args = [
      'agent',
      `-node=${name}`,
      `-bind=127.0.0.1:${await freePort()}`,
      `-rpc-addr=${rpc}`,
      '-profile=local',
    ];
    args.push('-log-level=debug', `-join=${join.ip}:${join.port}`);
    if (key !== undefined) args.push(`-encrypt=${Buffer.from(key).toString('base64')}`);
    const agent = new Agent(spawn('serf', args, { stdio: ['ignore', 'pipe', 'pipe'] }), rpc);
    await eventually('serf answers', () =>
      agent.ask('members').then(
        () => true,
        () => false,
      ),
    );
    return agent;
  }

  async ask(command: string, ...args: string[]): Promise<string> {
    return (await run('serf', [command, `-rpc-addr=${this.#rpc}`, ...args])).stdout;
  }

  /** Status of a member as `serf members` prints it. */
  async status(name: string): Promise<string | undefined> {
    const line = (await this.ask('members')).split('\n').find((each) => each.startsWith(`${name} `));
    return line?.split(/\s+/)[2];
  }

  async tags(name: string): Promise<string> {
    return (await this.ask('members')).split('\n').find((each) => each.startsWith(`${name} `)) ?? '';
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill(signal);
    await ended;
  }
}

for (const [label, key] of [
  ['without encryption', undefined],
  ['with encryption', randomBytes(32)],
] as const)
  test(`a stock serf agent joins a ring of gossip members ${label}`, { skip: missing, timeout: 120_000 }, async () => {
    const options = key === undefined ? {} : { key };
    const a = ringMember('a', options);
    const b = ringMember('b', options);
    const agents: Agent[] = [];
    try {
      const address = await a.start();
      await b.start();
      await b.join([address]);
      const events: RingEvent[] = [];
      a.subscribe((event) => events.push(event));

      const one = await Agent.start('s1', key, address);
      agents.push(one);
      for (const name of ['a', 'b', 's1'])
        await eventually(`serf lists ${name}`, async () => (await one.status(name)) === 'alive');
      assert.match(await one.tags('a'), /role=etcd\+api/);
      await eventually('this member lists serf', () => stateOf(a, 's1') === 'alive' && stateOf(b, 's1') === 'alive');

      await one.ask('event', '-coalesce=false', 'deploy', 'now');
      await eventually('the event arrives', () =>
        events.find((event) => event.kind === 'user-event' && event.name === 'deploy'),
      );
      a.sendEvent('rollout', Buffer.from('x'));
      await eventually('our event arrives', () => one.output.includes('Received event: user-event: rollout'));
      await one.ask('query', '-timeout=300ms', 'anyone').catch(() => '');

      await b.leave();
      await b.stop();
      await eventually('serf receives the leave message', async () => (await one.status('b')) === 'left');

      const two = await Agent.start('s2', key, address);
      agents.push(two);
      await eventually('this member lists the second', () => stateOf(a, 's2') === 'alive');
      await two.ask('leave');
      await eventually('this member receives the leave message', () => stateOf(a, 's2') === 'left');
      // Observed long enough to detect an unanswered probe.
      assert.equal(stateOf(a, 's1'), 'alive');
      assert.equal(await one.status('a'), 'alive');

      await one.kill('SIGKILL');
      await eventually('this member lists serf as failed', () => stateOf(a, 's1') === 'dead', 20_000);
      assert.ok(!events.some((event) => event.kind === 'failed' && event.member.name !== 's1'));
      assert.doesNotMatch(one.output, /\[ERR\].*(decode|decrypt|Failed to receive|Received invalid)/i);
    } finally {
      await Promise.all([a.stop(), b.stop()]);
      for (const agent of agents) await agent.kill('SIGKILL');
    }
  });

test('a stock serf agent detects the failure and the return of a built-in member', {
  skip: missing,
  timeout: 60_000,
}, async () => {
  // Two members only, because with more the agent waits for confirmations.
  const a = ringMember('a');
  let agent: Agent | undefined;
  try {
    const address = await a.start();
    agent = await Agent.start('s1', undefined, address);
    const peerAgent = agent;
    const status = (name: string): Promise<string | undefined> => peerAgent.status(name);
    await eventually('serf lists this member', async () => (await status('a')) === 'alive');
    const peer = a.member('s1')?.address;
    assert.ok(peer !== undefined);
    await a.stop();
    await eventually('serf lists this member as failed', async () => (await status('a')) === 'failed', 20_000);
    const again = ringMember('a', { port: address.port });
    try {
      await again.start();
      await again.join([peer]);
      await eventually('serf lists this member as alive', async () => (await status('a')) === 'alive');
      assert.ok((again.member('a')?.incarnation ?? 0) > 1, 'we outbid our own death');
    } finally {
      await again.stop();
    }
  } finally {
    await a.stop();
    await agent?.kill('SIGKILL');
  }
});
