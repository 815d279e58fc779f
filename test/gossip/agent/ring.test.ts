import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { followRing, serveAgent } from '../../../src/gossip/agent/index.ts';
import type { AgentMember, AgentService } from '../../../src/gossip/membership/agent-port.ts';
import { clock, eventually } from '../membership/ring.ts';

const member = (name: string, id: string, leader: string, state: AgentMember['state'] = 'alive'): AgentMember => ({
  name,
  address: '127.0.0.1:7946',
  state,
  self: false,
  forMs: 0,
  roles: ['etcd'],
  version: 'v1',
  addresses: {},
  tags: {},
  store: { memberId: id.repeat(16), state: 'up', leaderSeen: leader.repeat(16) },
});

test('reports the leader that most stores report', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'ring-'));
  const socket = join(directory, 'agent.sock');
  const members = [
    member('m1', 'a', 'b'),
    member('m2', 'b', 'b'),
    member('m3', 'c', 'a'),
    member('m4', 'd', 'a', 'dead'),
    member('m5', 'e', 'a', 'left'),
  ];
  const service: AgentService = {
    open: () => ({
      request: async (_method, _params, emit) => {
        emit({ kind: 'members', members });
        return {};
      },
      closed: () => {},
    }),
  };
  const server = await serveAgent({ socket, service, log: silentLog });
  const ring = followRing({ socket, clock, log: silentLog });
  try {
    assert.equal(ring.storeLeader(), undefined);
    await eventually('the leader', () => ring.storeLeader() === 'm2');
  } finally {
    ring.stop();
    await server.stop();
    await rm(directory, { recursive: true, force: true });
  }
});
