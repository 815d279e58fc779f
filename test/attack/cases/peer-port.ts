/**
 * The store's peer port gives access to every key, so it must not respond to callers without a member's certificate.
 */
import assert from 'node:assert/strict';
import type { AttackCase } from '../port.ts';

export const cases: readonly AttackCase[] = [
  {
    finding: 23,
    title: 'the peer port of a single-member store rejects clients without a certificate',
    attack: async (lab) => {
      for (const [address, options] of [
        ['http://127.0.0.1:2380', ['--http2-prior-knowledge']],
        ['https://127.0.0.1:2380', ['--http2']],
      ] as const) {
        const path = '/hyperedge.Peer/Members';
        const answer = await lab.curl(`${address}${path}`, [
          ...options,
          ...['-X', 'POST', '-H', 'content-type: application/grpc', '-H', 'te: trailers'],
          ...['--data-binary', '\\x00\\x00\\x00\\x00\\x00'],
        ]);
        assert.equal(answer.code, 0, `${address}: ${answer.code} ${answer.body}`);
        assert.equal(answer.body, '');
      }
      const listening = await lab.appliance.inside('ss', ['-Hltn', 'sport = :2380']);
      assert.match(listening.stdout, /(?:0\.0\.0\.0|127\.0\.0\.1):2380/);
    },
  },
];
