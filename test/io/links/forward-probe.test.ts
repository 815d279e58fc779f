import assert from 'node:assert/strict';
import { test } from 'node:test';
import { droppedBy } from '../../../src/io/links/forward-probe.ts';

test('reads table, chain and rule or policy from the last verdict of a trace', () => {
  const passed = [
    'trace id 6a1 ip he-pods source_guard packet: iif "ve0a80" ip saddr 10.128.0.1',
    'trace id 6a1 inet probe first rule iifname "ve" meta nftrace set 1 counter packets 1 bytes 29 (verdict continue)',
  ];
  const drop =
    'trace id 6a1 ip filter DOCKER-ISOLATION rule oifname "docker0" counter packets 7 bytes 9 drop (verdict drop)';
  const policy = 'trace id 6a1 inet firewalld filter_FORWARD verdict continue ';
  assert.equal(droppedBy(passed.join('\n')), undefined);
  assert.equal(
    droppedBy([...passed, drop].join('\n')),
    'table ip filter, chain DOCKER-ISOLATION, rule "oifname "docker0" counter drop"',
  );
  assert.equal(
    droppedBy([...passed, policy, 'trace id 6a1 inet firewalld filter_FORWARD policy drop '].join('\n')),
    'table inet firewalld, chain filter_FORWARD, policy drop',
  );
});
