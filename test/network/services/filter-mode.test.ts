import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import type { PacketFilter } from '../../../src/network/services/core/port.ts';
import { createFilterMode } from '../../../src/network/services/filter-mode.ts';
import { ManualClock } from '../../client/clocks.ts';

test('replaces an nftables table that another program changed even if all chains and rules are present', async () => {
  const applied: string[] = [];
  const packetFilter: PacketFilter = {
    probe: async () => undefined,
    apply: async (program) => void applied.push(program),
    elements: async () => [],
    timedMembers: async () => new Map(),
    outline: async () => 'complete',
    routeServices: async () => {},
  };
  const mode = createFilterMode({
    packetFilter,
    log: silentLog,
    clock: new ManualClock(),
    config: {
      nodeName: 'one',
      serviceCidrs: ['172.30.0.0/16', 'fd00:172::/112'],
      clusterCidrs: ['10.128.0.0/14'],
      mode: 'nftables',
      reservedPorts: [],
      hostAddresses: () => [],
      table: 'own',
    },
  });
  const sync = async (damaged?: string): Promise<string> => {
    applied.length = 0;
    if (damaged !== undefined) mode.verify?.(new Set([damaged]));
    await mode.sync(() => []);
    return (
      applied
        .join('')
        .match(/^delete table .*$/gm)
        ?.join() ?? ''
    );
  };
  assert.equal(await sync(), 'delete table ip own,delete table ip6 own');
  assert.equal(await sync('ip other'), '');
  assert.equal(await sync('ip6 own'), 'delete table ip6 own');
  assert.equal(await sync(), '');
});
